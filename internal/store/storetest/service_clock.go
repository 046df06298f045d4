package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// testServiceClock records the steady time. After a change of the correction, steps that
// wait until a time of day are adjusted, others are not.
func testServiceClock(t *testing.T, w *harness) {
	ctx := t.Context()
	equal(t, "the clock of a new installation", must(w.Installation.ServiceClock(ctx))(t).Correction, 0)
	wf, now := w.workflow(t, w.workspace(t).ID), clock.Now()
	until := now.Add(30 * time.Minute)
	waits := func(awaits action.Awaits, deadline *time.Time) run.Run {
		r, step := w.start(t, wf, "node_1"), newStep("wait", 1, run.StepWaiting)
		step.WakeAt, step.Deadline, step.Awaits = &until, deadline, awaits
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{step}, Release: true, WakeAt: until, WaitingStep: "wait"}))(t, "commit", true)
		return r
	}
	forTime, forDuration := waits(action.AwaitsTime, &until), waits("", nil)
	wakeAt := func(r run.Run) time.Time { return *must(w.Leases.Snapshot(ctx, r.ID))(t).Steps[0].WakeAt }
	isDue := func(r run.Run) bool {
		return w.count(t, `SELECT count(*) FROM run_queue WHERE run_id = $1 AND wake_at <= $2`, r.ID, clock.Steady().Add(time.Minute)) == 1
	}
	returns(w.Installation.SettleServiceClock(ctx))(t, "before a jump", false)
	equal(t, "the wait until a time, before a jump", wakeAt(forTime), until)

	record := clock.Record{Correction: -time.Hour, Seen: now, Boot: "b", BootedAt: now.Add(-time.Minute)}
	for range 2 {
		if err := w.Installation.SetServiceClock(ctx, record); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "the recorded clock", must(w.Installation.ServiceClock(ctx))(t), record)
	returns(w.Installation.SettleServiceClock(ctx))(t, "after a jump", false)
	equal(t, "the wait until a time", wakeAt(forTime), until.Add(-time.Hour))
	equal(t, "the wait for a duration", wakeAt(forDuration), until)
	equal(t, "whether the first is due", isDue(forTime), true)
	equal(t, "whether the second is due", isDue(forDuration), false)
	equal(t, "rows to settle", w.count(t, `SELECT count(*) FROM service_clock WHERE settled <> correction`), 0)

	// Back by an hour. An interval goes on, and cron waits for the clock.
	every, daily := scheduled("every", "1", now.Add(time.Hour+time.Minute)), scheduled("daily", "2", now.Add(time.Hour+time.Minute))
	every.Spec, daily.Spec = `{"every":"5m"}`, `{"cron":"0 3 * * *"}`
	of := w.withTriggers(t, wf.WorkspaceID, every, daily)
	record.Correction = 0
	if err := w.Installation.SetServiceClock(ctx, record); err != nil {
		t.Fatal(err)
	}
	returns(w.Installation.SettleServiceClock(ctx))(t, "after a jump back", false)
	nextAt := func(id string) int {
		return w.count(t, `SELECT next_at FROM triggers WHERE workflow_id = $1 AND trigger_id = $2`, of.ID, id)
	}
	equal(t, "the interval", nextAt("every"), int(now.Add(time.Minute).UnixMicro()))
	equal(t, "cron", nextAt("daily"), int(now.Add(time.Hour+time.Minute).UnixMicro()))
}
