package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// catchUpGrace is how late a schedule may fire. A restart must not skip a daily
// run.
const catchUpGrace = 5 * time.Minute

// Scheduler fires schedules.
type Scheduler struct {
	*trigger.Ticker[trigger.Trigger]
	store    trigger.Store
	programs trigger.Programs
	runs     trigger.Runs
}

// NewScheduler returns a scheduler on a store.
func NewScheduler(store trigger.Store, programs trigger.Programs, runs trigger.Runs, log *slog.Logger) *Scheduler {
	s := &Scheduler{store: store, programs: programs, runs: runs}
	s.Ticker = trigger.NewTicker(trigger.OfType(store, workflow.ScheduleTrigger, clock.Now, s.tick), log)
	return s
}

// tick fires a schedule that is due, or moves it to its next time if it must not fire.
func (s *Scheduler) tick(ctx context.Context, t trigger.Trigger, now time.Time) error {
	compiled, err := trigger.Compiled(ctx, s.store, s.programs, t, now)
	if err != nil || compiled == nil {
		return err
	}
	config := compiled.Config.(*Config)
	d := dueAction(config, *t.NextAt, jitter(t.WorkflowID, t.ID, config), now)
	if !d.fires {
		failpoint.Hit(failpoint.BeforeTickCommit, t.ID)
		_, err := s.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &d.next, NotFired: d.missed})
		return err
	}
	payload, err := payloadAt(d.at)
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
	if notFired := trigger.Rejection(err, now); notFired != nil {
		_, err = s.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &d.next, NotFired: notFired})
	}
	if trigger.Obsolete(err) {
		return nil
	}
	return err
}

type decision struct {
	fires  bool
	at     time.Time     // the scheduled time that it fires for
	next   time.Time     // when it is due next
	missed *trigger.Note // set if times were skipped
}

// dueAction decides whether a schedule fires. All times are shifted by offset, the
// jitter. If several times have passed, only the last can fire; if that one is too
// long ago, the policy for missed times decides.
func dueAction(c *Config, dueAt time.Time, offset time.Duration, now time.Time) decision {
	due, upTo := dueAt.Add(-offset), now.Add(-offset)
	d := decision{at: due}
	if last := c.Schedule.Last(due, upTo); !last.IsZero() {
		d.at = last
	}
	d.next = c.Schedule.Next(d.at).Add(offset)
	d.fires = upTo.Sub(d.at) <= catchUpGrace || c.Missed == workflow.Latest
	switch {
	case !d.fires:
		d.missed = &trigger.Note{At: now, Code: trigger.CodeMissed, Message: missedText(due, d.at)}
	case d.at.After(due):
		d.missed = &trigger.Note{At: now, Code: trigger.CodeMissed, Message: missedText(due, time.Time{})}
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

// jitter returns the offset of a trigger's times. It is constant for a trigger
// and evenly distributed over all triggers.
func jitter(workflowID, id string, c *Config) time.Duration {
	if c.Jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(workflowID + "/" + id))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(c.Jitter)).Truncate(time.Microsecond)
}

func payloadAt(at time.Time) (json.RawMessage, error) {
	return json.Marshal(map[string]string{"scheduled_at": clock.Format(at)})
}
