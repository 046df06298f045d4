package api

import (
	"context"
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
)

type followRunRequest struct {
	ID          string `path:"id"`
	LastEventID string `header:"Last-Event-ID"`
}

func (h *runs) follow(ctx context.Context, in *followRunRequest) (*transport.Reply, error) {
	feed, err := h.runs.Follow(ctx, transport.Actor(ctx), in.ID, in.LastEventID)
	if err != nil {
		return nil, err
	}
	if feed.SeenEnd() {
		// 204 tells an EventSource not to reconnect.
		return &transport.Reply{Status: http.StatusNoContent}, nil
	}
	return &transport.Reply{Stream: &runFeed{feed: feed}}, nil
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

func (f *runFeed) Changes() <-chan struct{} { return f.feed.Changes }

func (f *runFeed) OnHeartbeat(*transport.EventStream) {}

func (f *runFeed) Next(ctx context.Context, out *transport.EventStream) (transport.FeedState, error) {
	changes, err := f.feed.Next(ctx)
	switch {
	case err != nil:
		return transport.Done, err
	case changes == nil:
		return transport.Done, out.Object(ctx, "end", run.End, endBody{"deleted"})
	}
	if f.lastSent == nil {
		if err := f.sendRun(ctx, out, changes.Detail); err != nil {
			return transport.Done, err
		}
	}
	for _, change := range changes.List {
		if err := sendChange(ctx, out, change); err != nil {
			return transport.Done, err
		}
	}
	if changes.More {
		return transport.More, nil
	}
	if err := f.sendRun(ctx, out, changes.Detail); err != nil || changes.Status == run.Running {
		return transport.Idle, err
	}
	return transport.Done, out.Object(ctx, "end", run.End, endBody{"finished"})
}

func sendChange(ctx context.Context, out *transport.EventStream, c run.Change) error {
	id := ""
	if c.Complete {
		id = c.After.String()
	}
	if l := c.Line; l != nil {
		return out.Object(ctx, "log", id, logLine{l.Path, l.Attempt, clock.Format(l.At), l.Level, l.Message})
	}
	return out.Object(ctx, "step", id, showStepSummary(*c.Step, c.Attempts))
}

// sendRun sends the run if it has changed.
func (f *runFeed) sendRun(ctx context.Context, out *transport.EventStream, d run.Detail) error {
	summary := showRunSummary(d)
	now := stableJSON(summary)
	if f.lastSent != nil && *f.lastSent == now {
		return nil
	}
	f.lastSent = &now
	return out.Object(ctx, "run", "", summary)
}

// stableJSON encodes a run without the fields that change with time alone.
func stableJSON(summary runSummary) string {
	summary.DurationMS = 0
	return string(transport.EncodeJSON(summary))
}
