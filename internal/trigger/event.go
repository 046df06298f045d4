package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Subscription is which events a trigger fires on.
type Subscription struct {
	WorkflowID string // that of the trigger
	ID         string
	Events     []string `json:"events"`
	Workflows  []string `json:"workflows"`
}

// ParseSubscription reads the events from the written form of a trigger.
func ParseSubscription(workflowID, id string, spec []byte) (Subscription, error) {
	s := Subscription{WorkflowID: workflowID, ID: id}
	err := json.Unmarshal(spec, &s)
	s.WorkflowID, s.ID = workflowID, id
	return s, err
}

// Wants tells whether the trigger fires on an event. What happens to its own
// workflow counts only if that is named.
func (s Subscription) Wants(e event.Event) bool {
	if !slices.Contains(s.Events, string(e.Type)) {
		return false
	}
	if s.Workflows == nil {
		return e.WorkflowID != s.WorkflowID
	}
	return slices.Contains(s.Workflows, e.WorkflowID)
}

// Occasion is an event that a trigger is to start a run for. It was written with
// the event, and is gone with the run.
type Occasion struct {
	Of    Trigger
	Event event.Event
}

// OccasionStore keeps occasions.
type OccasionStore interface {
	// DueOccasions reads those whose time has come, the earliest first.
	DueOccasions(ctx context.Context, now time.Time, limit int) ([]Occasion, error)
	// NextOccasion is the earliest time that any of them has.
	NextOccasion(ctx context.Context) (*time.Time, error)
	// SettleOccasion puts one off to a time, or does without it if next is nil,
	// and says why.
	SettleOccasion(ctx context.Context, o Occasion, next *time.Time, idle Note) error
}

// Responder starts runs for events.
type Responder struct {
	*Ticker[Occasion]
	store OccasionStore
	runs  Runs
}

// NewResponder makes a responder on a store.
func NewResponder(store OccasionStore, runs Runs, log *slog.Logger) *Responder {
	r := &Responder{store: store, runs: runs}
	r.Ticker = newTicker(work[Occasion]{name: workflow.EventTrigger, due: store.DueOccasions, next: store.NextOccasion, handle: r.respond}, log)
	return r
}

// respond starts the run of an occasion, or settles why there is none.
func (r *Responder) respond(ctx context.Context, o Occasion, now time.Time) error {
	t, e := o.Of, o.Event
	depth := e.Depth
	if e.RunID != "" {
		depth++ // the run that it tells of stands above
	}
	_, err := r.runs.Fire(ctx, run.Firing{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID, Depth: depth,
		Trigger: run.Trigger{Type: t.Type, ID: t.ID, Payload: e.Body},
		Fire:    run.Fire{At: now, EventID: e.ID},
	})
	idle := refusal(err, now)
	switch {
	case errors.Is(err, run.ErrNotArmed):
		return r.store.SettleOccasion(ctx, o, nil, Note{At: now, Code: CodeNotActive, Message: "the workflow was not active any more when " + string(e.Type) + " was to start a run"})
	case lost(err):
		return nil
	case idle == nil:
		return err
	}
	return r.store.SettleOccasion(ctx, o, postponed(err, e.At, now), *idle)
}

// patience is how long an occasion waits for room in the queue.
const patience = 24 * time.Hour

// postponed is when an occasion that was refused is tried again: the longer it
// has waited, the later. Nil means never, as for all that does not pass.
func postponed(err error, since, now time.Time) *time.Time {
	waited := now.Sub(since)
	if !fault.Is(err, fault.RunQueueFull) || waited > patience {
		return nil
	}
	next := now.Add(min(max(waited/2, time.Second), 5*time.Minute))
	return &next
}
