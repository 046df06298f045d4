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

// catchUpGrace is how late a schedule may fire. A restart must not skip a daily
// run.
const catchUpGrace = 5 * time.Minute

// Programs returns compiled versions of workflows.
type Programs interface {
	Get(ctx context.Context, workflowID string, version int) (*workflow.Program, error)
}

// Scheduler fires schedules.
type Scheduler struct {
	*Ticker[Trigger]
	store    Store
	programs Programs
	runs     Runs
}

// NewScheduler returns a scheduler on a store.
func NewScheduler(store Store, programs Programs, runs Runs, log *slog.Logger) *Scheduler {
	s := &Scheduler{store: store, programs: programs, runs: runs}
	s.Ticker = newTicker(ofType(store, workflow.ScheduleTrigger, s.tick), log)
	return s
}

// tick fires a schedule that is due, or moves it to its next time if it must not fire.
func (s *Scheduler) tick(ctx context.Context, t Trigger, now time.Time) error {
	compiled, err := compiledTrigger(ctx, s.store, s.programs, t, now)
	if err != nil || compiled == nil {
		return err
	}
	d := dueAction(*compiled, *t.NextAt, jitter(t.WorkflowID, *compiled), now)
	if !d.fires {
		failpoint.Hit(failpoint.BeforeTickCommit, t.ID)
		_, err := s.store.MoveTrigger(ctx, Move{Of: t, Next: &d.next, NotFired: d.missed})
		return err
	}
	payload, err := schedulePayload(d.at)
	if err != nil {
		return err
	}
	f := run.Firing{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID,
		Trigger: run.Trigger{Type: t.Type, ID: t.ID, Payload: payload},
		Fire:    run.Fire{At: now, Was: t.NextAt, Next: &d.next},
	}
	if d.missed != nil {
		f.Fire.NotFired = &run.NotFired{Code: d.missed.Code, Message: d.missed.Message}
	}
	failpoint.Hit(failpoint.BeforeTickCommit, t.ID)
	_, err = s.runs.Fire(ctx, f)
	failpoint.Hit(failpoint.AfterTickCommit, t.ID)
	if notFired := permanentRejection(err, now); notFired != nil {
		_, err = s.store.MoveTrigger(ctx, Move{Of: t, Next: &d.next, NotFired: notFired})
	}
	if obsolete(err) {
		return nil
	}
	return err
}

// compiledTrigger returns the compiled definition of a trigger. A trigger whose
// definition is missing or unreadable is stopped.
func compiledTrigger(ctx context.Context, store Store, programs Programs, t Trigger, now time.Time) (*workflow.CompiledTrigger, error) {
	program, err := programs.Get(ctx, t.WorkflowID, t.Version)
	if err != nil && !errors.Is(err, workflow.ErrCorrupt) {
		return nil, err
	}
	if program != nil {
		if found := program.Trigger(t.ID); found != nil && found.Type == t.Type {
			return found, nil
		}
	}
	note := &Note{At: now, Code: CodeCorrupt, Message: "the definition of the trigger cannot be read: save the workflow again"}
	_, err = store.MoveTrigger(ctx, Move{Of: t, Error: note})
	return nil, err
}

// decision is the outcome for a schedule that is due.
type decision struct {
	fires  bool
	at     time.Time // the scheduled time that it fires for
	next   time.Time // when it is due next
	missed *Note     // set if times were skipped
}

// dueAction decides whether a schedule fires. All times are shifted by offset, the
// jitter. If several times have passed, only the last can fire; if that one is too
// long ago, the policy for missed times decides.
func dueAction(t workflow.CompiledTrigger, dueAt time.Time, offset time.Duration, now time.Time) decision {
	due, upTo := dueAt.Add(-offset), now.Add(-offset)
	d := decision{at: due}
	if last := t.Schedule.Last(due, upTo); !last.IsZero() {
		d.at = last
	}
	d.next = t.Schedule.Next(d.at).Add(offset)
	d.fires = upTo.Sub(d.at) <= catchUpGrace || t.Missed == workflow.Latest
	switch {
	case !d.fires:
		d.missed = &Note{At: now, Code: CodeMissed, Message: missedText(due, d.at)}
	case d.at.After(due):
		d.missed = &Note{At: now, Code: CodeMissed, Message: missedText(due, time.Time{})}
	}
	return d
}

// missedText describes the skipped times. A zero last means those before the time
// that fires now.
func missedText(first, last time.Time) string {
	switch {
	case last.IsZero():
		return fmt.Sprintf("the trigger could not fire from %s on; of the missed times, only the latest starts a run", clock.Format(first))
	case first.Equal(last):
		return fmt.Sprintf("the trigger could not fire at %s, which is too long ago to catch up", clock.Format(first))
	}
	return fmt.Sprintf("the trigger could not fire from %s to %s, which is too long ago to catch up", clock.Format(first), clock.Format(last))
}

// permanentRejection returns why a run was not started if retrying cannot help. It
// returns nil for temporary errors.
func permanentRejection(err error, now time.Time) *Note {
	rejected, ok := fault.As(err)
	if !ok || rejected.Code == fault.WorkflowNotFound || rejected.Code.Status() >= 500 {
		return nil
	}
	return &Note{At: now, Code: string(rejected.Code), Message: rejected.Message}
}

// obsolete reports whether there is nothing left to do: another node was faster,
// or the workflow was deleted or is not active.
func obsolete(err error) bool {
	return errors.Is(err, run.ErrNotDue) || fault.Is(err, fault.WorkflowNotFound)
}
