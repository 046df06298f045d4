package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

const purgedRows = `SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM run_queue) + (SELECT count(*) FROM steps) + (SELECT count(*) FROM step_attempts)`

// purgeAll runs batches until there is nothing left to do, and checks that none
// deletes more rows than allowed.
func purgeAll(t *testing.T, w *harness, limit int, batch func() (bool, error)) {
	t.Helper()
	before := w.count(t, purgedRows)
	for rounds, more := 0, true; more; rounds++ {
		more = must(batch())(t)
		now := w.count(t, purgedRows)
		if before-now > limit || rounds > 10_000 {
			t.Fatalf("batch %d of up to %d rows deleted %d", rounds, limit, before-now)
		}
		before = now
	}
}

// pruner deletes old runs according to the plans.
func (w *harness) pruner() *run.Pruner {
	return run.NewPruner(w.DB.Runs, auth.Plan.Retention)
}

// workflowOn creates a workflow in a new workspace on a plan.
func (w *harness) workflowOn(t *testing.T, plan auth.Plan) workflow.Workflow {
	t.Helper()
	ws := w.workspace(t)
	w.exec(t, `UPDATE workspaces SET plan = $1 WHERE id = $2`, string(plan), ws.ID)
	return w.workflow(t, ws.ID)
}

func (w *harness) runIDs(t *testing.T, of workflow.Workflow) []string {
	t.Helper()
	return collect(t, w, `SELECT id FROM runs WHERE workflow_id = $1 ORDER BY id`, []any{of.ID}, text)
}

func testPurgeRuns(t *testing.T, w *harness) {
	ctx, now := t.Context(), clock.Now()
	const day = 24 * time.Hour
	ages := map[auth.Plan]time.Duration{auth.Free: 7 * day, auth.Pro: 30 * day, auth.Enterprise: 30 * day}
	kept, workflows := map[auth.Plan][]string{}, map[auth.Plan]workflow.Workflow{}
	for plan, age := range ages {
		wf := w.workflowOn(t, plan)
		ended := now.Add(-age)
		began := ended.Add(-time.Hour)
		ids := w.seed(t,
			seedRunSpec{of: wf, status: run.Succeeded, started: began, finished: ended.Add(-time.Microsecond), steps: 3, attempts: 2},
			seedRunSpec{of: wf, status: run.Failed, started: began, finished: ended.Add(-day)},
			seedRunSpec{of: wf, status: run.Cancelled, started: began, finished: ended.Add(-day), steps: 1},
			seedRunSpec{of: wf, status: run.Succeeded, started: began, finished: ended, steps: 1},
			seedRunSpec{of: wf, status: run.Running, started: began.Add(-300 * day), steps: 1},
			seedRunSpec{of: wf, status: run.Succeeded, started: began.Add(-300 * day), finished: now, steps: 1},
			seedRunSpec{of: wf, status: run.Failed, started: now, finished: now},
		)
		kept[plan], workflows[plan] = ids[3:], wf
	}

	t.Run("nothing has expired", func(t *testing.T) {
		rows := w.count(t, purgedRows)
		returns(w.pruner().Batch(ctx, now.Add(-3*day), 500))(t, "batch", false)
		equal(t, "rows", w.count(t, purgedRows), rows)
	})
	t.Run("by plan", func(t *testing.T) {
		pruner := w.pruner()
		purgeAll(t, w, 2, func() (bool, error) { return pruner.Batch(ctx, now, 2) })
		purgeAll(t, w, 2, func() (bool, error) { return w.Runs.PurgeRemains(ctx, 2) })
		for plan, wf := range workflows {
			equal(t, "runs on "+string(plan), w.runIDs(t, wf), kept[plan])
		}
		equal(t, "steps", w.count(t, `SELECT count(*) FROM steps`), 3*len(ages))
		equal(t, "attempts", w.count(t, `SELECT count(*) FROM step_attempts`), 0)
		equal(t, "queue", w.count(t, `SELECT count(*) FROM run_queue`), len(ages))
		equal(t, "remains", w.count(t, `SELECT count(*) FROM purged_runs`), 0)
	})
	t.Run("again", func(t *testing.T) {
		rows := w.count(t, purgedRows)
		returns(w.pruner().Batch(ctx, now, 500))(t, "batch", false)
		returns(w.Runs.PurgeRemains(ctx, 500))(t, "remains", false)
		equal(t, "rows", w.count(t, purgedRows), rows)
	})
	t.Run("never of a run that is not finished", func(t *testing.T) {
		wf := workflows[auth.Free]
		equal(t, "left", must(w.Runs.PurgeRuns(ctx, wf.ID, kept[auth.Free][1:2], 500))(t), nil)
		equal(t, "runs", w.runIDs(t, wf), kept[auth.Free])
	})
	t.Run("by number", func(t *testing.T) { testPurgeByNumber(t, w) })
	t.Run("of a run with many steps", func(t *testing.T) { testPurgeLarge(t, newHarness(t, w.open)) })
}

func testPurgeByNumber(t *testing.T, w *harness) {
	ctx, now := t.Context(), clock.Now()
	keep := func(auth.Plan) auth.Retention { return auth.Retention{RunsPerWorkflow: 4} }
	at := func(i int) time.Time { return now.Add(time.Duration(i) * time.Millisecond) }
	seed := func(statuses ...run.Status) (workflow.Workflow, []string) {
		wf, runs := w.workflowOn(t, auth.Free), []seedRunSpec{}
		for i, status := range statuses {
			runs = append(runs, seedRunSpec{of: wf, status: status, started: at(i), finished: now.Add(time.Hour)})
		}
		return wf, w.seed(t, runs...)
	}
	const ok = run.Succeeded
	few, fewIDs := seed(ok, ok, ok, ok)
	many, manyIDs := seed(ok, run.Running, ok, ok, run.Running, ok, ok)
	pruner := run.NewPruner(w.DB.Runs, keep)
	purgeAll(t, w, 500, func() (bool, error) { return pruner.Batch(ctx, now, 500) })
	equal(t, "as many as are kept", w.runIDs(t, few), fewIDs)
	equal(t, "more than are kept", w.runIDs(t, many), append([]string{manyIDs[1]}, manyIDs[3:]...))
	equal(t, "the plan", auth.Free.Retention().RunsPerWorkflow, 10_000)
}

// testPurgeLarge deletes a run in many batches. After the first one it is no
// longer visible.
func testPurgeLarge(t *testing.T, w *harness) {
	ctx, now, wf := t.Context(), clock.Now(), w.workflowOn(t, auth.Free)
	old := now.Add(-8 * 24 * time.Hour)
	id := w.seed(t, seedRunSpec{of: wf, status: run.Succeeded, started: old, finished: old, steps: 1200, attempts: 30})[0]
	pruner := w.pruner()
	purgeAll(t, w, 100, func() (bool, error) {
		more, err := pruner.Batch(ctx, now, 100)
		missing(w.Runs.Run(ctx, wf.WorkspaceID, id))(t, "the run")
		_, exists, stepsErr := w.Runs.Steps(ctx, wf.WorkspaceID, id, run.StepFilter{}, fullPage)
		returns(exists, stepsErr)(t, "its steps", false)
		empty(w.Runs.AllRuns(ctx, wf.WorkspaceID, run.Filter{}, fullPage))(t, "all runs")
		empty(w.Runs.Runs(ctx, wf.WorkspaceID, wf.ID, "", fullPage))(t, "runs")
		return more, err
	})
	equal(t, "remains", w.count(t, `SELECT count(*) FROM purged_runs WHERE run_id = $1`, id), 1)
	purgeAll(t, w, 100, func() (bool, error) { return w.Runs.PurgeRemains(ctx, 100) })
	for _, table := range []string{"steps", "step_attempts", "purged_runs"} {
		equal(t, "left in "+table, w.count(t, `SELECT count(*) FROM `+table+` WHERE run_id = $1`, id), 0)
	}
}
