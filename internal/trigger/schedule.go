package trigger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// grace is how late a time may be and still count as kept: a restart is not
// reason enough to leave out a day.
const grace = 5 * time.Minute

// Plans finds compiled versions of workflows.
type Plans interface {
	Get(ctx context.Context, workflowID string, version int) (*workflow.Plan, error)
}

// Scheduler fires schedules.
type Scheduler struct {
	*Ticker[Trigger]
	store Store
	plans Plans
	runs  Runs
}

// NewScheduler makes a scheduler on a store.
func NewScheduler(store Store, plans Plans, runs Runs, log *slog.Logger) *Scheduler {
	s := &Scheduler{store: store, plans: plans, runs: runs}
	s.Ticker = newTicker(ofType(store, workflow.ScheduleTrigger, s.tick), log)
	return s
}

// tick fires a schedule whose time has come, or moves it on if it may not fire.
func (s *Scheduler) tick(ctx context.Context, t Trigger, now time.Time) error {
	planned, err := planned(ctx, s.store, s.plans, t, now)
	if err != nil || planned == nil {
		return err
	}
	d := decide(*planned, *t.NextAt, jitter(t.WorkflowID, *planned), now)
	if !d.fires {
		failpoint.Hit(failpoint.BeforeTickCommit, t.ID)
		_, err := s.store.MoveTrigger(ctx, Move{Of: t, Next: &d.next, Idle: d.missed})
		return err
	}
	payload, err := tick(d.at)
	if err != nil {
		return err
	}
	f := run.Firing{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID,
		Trigger: run.Trigger{Type: t.Type, ID: t.ID, Payload: payload},
		Fire:    run.Fire{At: now, Was: t.NextAt, Next: &d.next},
	}
	if d.missed != nil {
		f.Fire.Idle = &run.Idle{Code: d.missed.Code, Message: d.missed.Message}
	}
	failpoint.Hit(failpoint.BeforeTickCommit, t.ID)
	_, err = s.runs.Fire(ctx, f)
	failpoint.Hit(failpoint.AfterTickCommit, t.ID)
	if idle := refusal(err, now); idle != nil {
		_, err = s.store.MoveTrigger(ctx, Move{Of: t, Next: &d.next, Idle: idle})
	}
	if lost(err) {
		return nil
	}
	return err
}

// planned finds what the definition says of a trigger. One that it does not
// know, or that cannot be read, is put to rest.
func planned(ctx context.Context, store Store, plans Plans, t Trigger, now time.Time) (*workflow.PlannedTrigger, error) {
	plan, err := plans.Get(ctx, t.WorkflowID, t.Version)
	if err != nil && !errors.Is(err, workflow.ErrCorrupt) {
		return nil, err
	}
	if plan != nil {
		if found := plan.Trigger(t.ID); found != nil && found.Type == t.Type {
			return found, nil
		}
	}
	note := &Note{At: now, Code: CodeCorrupt, Message: "the definition of the trigger cannot be read: save the workflow again"}
	_, err = store.MoveTrigger(ctx, Move{Of: t, Error: note})
	return nil, err
}

// decision is what becomes of a schedule whose time has come.
type decision struct {
	fires  bool
	at     time.Time // the time that it fires for
	next   time.Time // when its turn comes again
	missed *Note     // times that were left out
}

// decide works out what a schedule does. Times are moved by the jitter, always
// the same. If several have passed, only the last can fire; if that is too long
// ago, it depends on what is to become of missed times.
func decide(t workflow.PlannedTrigger, dueAt time.Time, moved time.Duration, now time.Time) decision {
	due, upTo := dueAt.Add(-moved), now.Add(-moved)
	d := decision{at: due}
	if last := t.Schedule.Last(due, upTo); !last.IsZero() {
		d.at = last
	}
	d.next = t.Schedule.Next(d.at).Add(moved)
	d.fires = upTo.Sub(d.at) <= grace || t.Missed == workflow.Latest
	switch {
	case !d.fires:
		d.missed = &Note{At: now, Code: CodeMissed, Message: missedText(due, d.at)}
	case d.at.After(due):
		d.missed = &Note{At: now, Code: CodeMissed, Message: missedText(due, time.Time{})}
	}
	return d
}

// missedText tells which times were left out; without a last one, those before
// the one that is made up for.
func missedText(first, last time.Time) string {
	switch {
	case last.IsZero():
		return fmt.Sprintf("nothing could fire from %s on; of the times that passed only the latest is made up for", clock.Format(first))
	case first.Equal(last):
		return fmt.Sprintf("nothing could fire at %s, and that is too long ago", clock.Format(first))
	}
	return fmt.Sprintf("nothing could fire from %s to %s, and that is too long ago", clock.Format(first), clock.Format(last))
}

// refusal is why a run was not started, if that is for good; nil for what may
// pass by itself.
func refusal(err error, now time.Time) *Note {
	wrong, ok := fault.As(err)
	if !ok || wrong.Code == fault.WorkflowNotFound || wrong.Code.Status() >= 500 {
		return nil
	}
	return &Note{At: now, Code: string(wrong.Code), Message: wrong.Message}
}

// lost tells whether there is nothing to do any more: somebody else was faster,
// or the workflow is gone or not active.
func lost(err error) bool {
	return errors.Is(err, run.ErrNotArmed) || fault.Is(err, fault.WorkflowNotFound)
}
