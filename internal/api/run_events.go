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
		// 204 tells an EventSource not to reconnect.
		return &reply{status: http.StatusNoContent}, nil
	}
	return &reply{stream: &runFeed{feed: feed}}, nil
}

// runSummary is a run without its steps and payload, which can be large.
type runSummary struct {
	runFields
	Trigger triggerRef `json:"trigger"`
}

type triggerRef struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
}

func showRunSummary(d run.Detail) runSummary {
	return runSummary{runFields: showRunFields(d), Trigger: triggerRef{d.Trigger.Type, orNull(d.Trigger.ID)}}
}

// endBody tells why a stream ended.
type endBody struct {
	Reason string `json:"reason"`
}

// runFeed streams a run: the run, its steps and log lines, and its end.
type runFeed struct {
	feed     *run.Feed
	lastSent *string // the run as it was last sent
}

func (f *runFeed) changes() <-chan struct{} { return f.feed.Changes }

func (f *runFeed) onHeartbeat(*sse) {}

func (f *runFeed) next(ctx context.Context, out *sse) (feedState, error) {
	changes, err := f.feed.Next(ctx)
	switch {
	case err != nil:
		return done, err
	case changes == nil:
		return done, out.object(ctx, "end", run.End, endBody{"deleted"})
	}
	if f.lastSent == nil {
		if err := f.sendRun(ctx, out, changes.Detail); err != nil {
			return done, err
		}
	}
	for _, change := range changes.List {
		if err := sendChange(ctx, out, change); err != nil {
			return done, err
		}
	}
	if changes.More {
		return more, nil
	}
	if err := f.sendRun(ctx, out, changes.Detail); err != nil || changes.Status == run.Running {
		return idle, err
	}
	return done, out.object(ctx, "end", run.End, endBody{"finished"})
}

func sendChange(ctx context.Context, out *sse, c run.Change) error {
	id := ""
	if c.Complete {
		id = c.After.String()
	}
	if l := c.Line; l != nil {
		return out.object(ctx, "log", id, logLine{l.Path, l.Attempt, clock.Format(l.At), l.Level, l.Message})
	}
	return out.object(ctx, "step", id, showStepSummary(*c.Step, c.Attempts))
}

// sendRun sends the run if it has changed.
func (f *runFeed) sendRun(ctx context.Context, out *sse, d run.Detail) error {
	summary := showRunSummary(d)
	now := stableJSON(summary)
	if f.lastSent != nil && *f.lastSent == now {
		return nil
	}
	f.lastSent = &now
	return out.object(ctx, "run", "", summary)
}

// stableJSON encodes a run without the fields that change with time alone.
func stableJSON(summary runSummary) string {
	summary.DurationMS = 0
	return string(encodeJSON(summary))
}
