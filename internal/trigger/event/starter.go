package event

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Starter starts runs for events.
type Starter struct {
	*trigger.Ticker[trigger.PendingEvent]
	store trigger.PendingEventStore
	runs  trigger.Runs
}

// NewStarter returns a Starter on a store.
func NewStarter(store trigger.PendingEventStore, runs trigger.Runs, log *slog.Logger) *Starter {
	r := &Starter{store: store, runs: runs}
	r.Ticker = trigger.NewTicker(trigger.DueWork[trigger.PendingEvent]{
		Name: workflow.EventTrigger, Clock: clock.Steady, Due: store.DuePendingEvents, Next: store.NextPendingEvent, Handle: r.start,
	}, log)
	return r
}

// start starts the run for a pending event, or records why it cannot.
func (r *Starter) start(ctx context.Context, p trigger.PendingEvent, now time.Time) error {
	t, e := p.Of, p.Event
	depth := e.Depth
	if e.RunID != "" {
		depth++ // one below the run that caused the event
	}
	_, err := r.runs.Fire(ctx, run.Firing{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID, Depth: depth,
		Trigger: run.Trigger{Type: t.Type, ID: t.ID, Payload: e.Body},
		Fire:    run.Fire{At: now, EventID: e.ID},
	})
	notFired := trigger.Rejection(err, now)
	switch {
	case errors.Is(err, run.ErrNotDue):
		return r.store.SettlePendingEvent(ctx, p, nil, trigger.Note{At: now, Code: trigger.CodeNotActive, Message: "the event " + string(e.Type) + " did not start a run: the workflow was no longer active"})
	case trigger.Obsolete(err):
		return nil
	case notFired == nil:
		return err
	}
	return r.store.SettlePendingEvent(ctx, p, retryAt(err, e.At, now), *notFired)
}

// maxEventWait limits how long an event waits for space in the queue.
const maxEventWait = 24 * time.Hour

// retryAt returns the steady time at which to retry a rejected event: the longer it has
// waited, the later. It returns nil for errors that are permanent.
func retryAt(err error, since, now time.Time) *time.Time {
	waited := now.Sub(since)
	if !fault.Is(err, fault.RunQueueFull) || waited > maxEventWait {
		return nil
	}
	next := clock.Steady().Add(min(max(waited/2, time.Second), 5*time.Minute))
	return &next
}
