package api

import (
	"context"
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

type followRunRequest struct {
	ID          string `path:"id"`
	LastEventID string `header:"Last-Event-ID"`
}

func (s *Server) followRun(ctx context.Context, in *followRunRequest) (*reply, error) {
	feed, err := s.Runs.Follow(ctx, actorOf(ctx), in.ID, in.LastEventID)
	if err != nil {
		return nil, err
	}
	if feed.SeenEnd() {
		// This is how a reader of events is told not to come back.
		return &reply{status: http.StatusNoContent}, nil
	}
	return &reply{stream: &runFeed{feed: feed}}, nil
}

// runHead is a run without its steps and its payload, which can be large.
type runHead struct {
	runFacts
	Trigger triggerHead `json:"trigger"`
}

type triggerHead struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
}

func showRunHead(d run.Detail) runHead {
	return runHead{runFacts: showRunFacts(d), Trigger: triggerHead{d.Trigger.Type, orNull(d.Trigger.ID)}}
}

// endBody says why a stream has ended.
type endBody struct {
	Reason string `json:"reason"`
}

// runFeed shows a run: itself, its steps and log lines as they come, its end.
type runFeed struct {
	feed *run.Feed
	told *string // the run as it was told last
}

func (f *runFeed) news() <-chan struct{} { return f.feed.News }

func (f *runFeed) quiet(*sse) {}

func (f *runFeed) next(ctx context.Context, out *sse) (state, error) {
	changes, err := f.feed.Next(ctx)
	switch {
	case err != nil:
		return over, err
	case changes == nil:
		return over, out.object(ctx, "end", run.End, endBody{"deleted"})
	}
	if f.told == nil {
		if err := f.tellRun(ctx, out, changes.Detail); err != nil {
			return over, err
		}
	}
	for _, change := range changes.List {
		if err := tellChange(ctx, out, change); err != nil {
			return over, err
		}
	}
	if changes.More {
		return more, nil
	}
	if err := f.tellRun(ctx, out, changes.Detail); err != nil || changes.Status == run.Running {
		return idle, err
	}
	return over, out.object(ctx, "end", run.End, endBody{"finished"})
}

func tellChange(ctx context.Context, out *sse, c run.Change) error {
	id := ""
	if c.Complete {
		id = c.After.String()
	}
	if l := c.Line; l != nil {
		return out.object(ctx, "log", id, logLine{l.Path, l.Attempt, clock.Format(l.At), l.Level, l.Message})
	}
	return out.object(ctx, "step", id, showStepHead(*c.Step, c.Attempts))
}

// tellRun tells the run itself if there is something new about it.
func (f *runFeed) tellRun(ctx context.Context, out *sse, d run.Detail) error {
	head := showRunHead(d)
	now := summary(head)
	if f.told != nil && *f.told == now {
		return nil
	}
	f.told = &now
	return out.object(ctx, "run", "", head)
}

// summary is all of a run that does not change by itself.
func summary(head runHead) string {
	head.DurationMS = 0
	return string(encodeJSON(head))
}
