package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
)

// some omits zero counts.
func some(counts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range counts {
		if n != 0 {
			out[name] = n
		}
	}
	return out
}

func wantCounts(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(want, some(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// within returns the number of values up to a bound of a histogram.
func within(s counter.Snapshot, seconds float64) (n uint64) {
	for i, bound := range s.Bounds {
		if bound <= seconds {
			n += s.Counts[i]
		}
	}
	return n
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		for _, steps := range []string{
			`[{"id": "a", "uses": "data.set", "with": {"values": {"x": 1}}}, {"id": "b", "uses": "data.set", "with": {"values": {"x": 2}}}]`,
			`[{"id": "a", "uses": "test.effect", "with": {"call": "a", "passes_after": 2, "takes": "3s", "returns": {}}}]`,
			`[{"id": "a", "uses": "test.effect", "with": {"fails": "for good"}}, {"id": "skipped", "uses": "data.set", "with": {"values": {}}}]`,
			`[{"id": "a", "uses": "flow.wait", "with": {"for": "30s"}}]`,
			`[{"id": "a", "if": "1 / 0 == 1", "uses": "data.set", "with": {"values": {}}}]`,
			`[{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ [][3].y + 1 }}"}}}]`,
			`[{"id": "a", "uses": "flow.stop", "with": {"status": "failed"}}]`,
			`[{"id": "each", "foreach": "${{ [1, 2, 3] }}", "steps": [{"id": "in", "uses": "data.set", "with": {"values": {}}}]}]`,
		} {
			w.finished(w.startRun(w.workflow(steps), "{}"))
		}
		synctest.Wait()
		stats := n.engine.Stats()
		wantCounts(t, "data.set", stats.Actions["data.set"].Outcomes, map[string]int64{"succeeded": 5, "failed": 2})
		wantCounts(t, "test.effect", stats.Actions["test.effect"].Outcomes, map[string]int64{"succeeded": 1, "retried": 2, "failed": 1})
		wantCounts(t, "flow.wait", stats.Actions["flow.wait"].Outcomes, map[string]int64{"succeeded": 1, "waiting": 1})
		wantCounts(t, "failures of steps", stats.StepFailures, map[string]int64{counter.Other: 3, "expression_failed": 2})
		wantCounts(t, "failures of runs", stats.RunFailures, map[string]int64{counter.Other: 1, "expression_failed": 2, "stopped": 1})
		took := stats.Actions["test.effect"].Duration
		if took.Total() != 4 || took.Sum != 9 || within(took, 2.5) != 1 {
			t.Errorf("the durations of three executions of 3s and one of 0s are %+v", took)
		}
		if took := stats.Actions["flow.wait"].Duration; took.Total() != 2 || took.Sum > 1 {
			t.Errorf("waits count as execution: %+v", took)
		}
		if stats.Active != 0 || stats.Stuck != 0 || stats.LeasesLost != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestStatsOfRunsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		wf := w.workflow(`[{"id": "a", "timeout": "30s", "retry": {"max_attempts": 1}, "uses": "test.effect", "with": {"gate": "never"}}]`)
		id := w.startRun(wf, "{}")
		deaf := w.startRun(w.workflow(`[{"id": "a", "timeout": "30s", "retry": {"max_attempts": 1}, "uses": "test.effect", "with": {"deaf": "stuck"}}]`), "{}")
		synctest.Wait()
		if stats := n.engine.Stats(); stats.Active != 2 || stats.Stuck != 0 {
			t.Errorf("%d active runs, %d stuck", stats.Active, stats.Stuck)
		}
		if _, err := w.runs.Cancel(context.WithoutCancel(t.Context()), w.actor, id); err != nil {
			t.Fatal(err)
		}
		w.finished(deaf)
		synctest.Wait()
		stats := n.engine.Stats()
		if stats.Active != 0 || stats.Stuck != 1 {
			t.Errorf("%d active runs, %d stuck", stats.Active, stats.Stuck)
		}
		wantCounts(t, "test.effect", stats.Actions["test.effect"].Outcomes, map[string]int64{"cancelled": 1, "failed": 1})
		wantCounts(t, "failures", stats.StepFailures, map[string]int64{"timed_out": 1})
		w.effects.open("stuck")
		synctest.Wait()
		if stuck := n.engine.Stats().Stuck; stuck != 0 {
			t.Errorf("%d stuck after the action returned", stuck)
		}
	})
}

// A commit after a takeover counts as a lost lease, and its failure of the run is not
// counted.
func TestStatsOfLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		taken := false
		st := &hooked{Store: w.store.Leases}
		st.before = func(lease run.Lease, d run.Decision) {
			if d.Finish != nil && !taken {
				taken = true
				wake := run.Wake{RunID: lease.RunID, Epoch: lease.Epoch}
				if _, ok, err := w.store.Leases.Activate(context.WithoutCancel(t.Context()), wake, "node_other"); err != nil || !ok {
					t.Error(ok, err)
				}
			}
		}
		n := w.start(st)
		w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"fails": "for good"}}]`), "{}")
		time.Sleep(time.Second)
		synctest.Wait()
		if stats := n.engine.Stats(); stats.LeasesLost != 1 || len(some(stats.RunFailures)) != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

// A step test does not count as a step of a run.
func TestStepTestIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		wf := w.workflow(`[{"id": "a", "uses": "data.set", "with": {"values": {"x": 1}}}]`)
		program, err := w.plans.Get(t.Context(), wf, 2)
		if err != nil || program == nil {
			t.Fatal(program, err)
		}
		result, err := n.engine.TestStep(t.Context(), run.StepExecution{
			WorkspaceID: w.actor.Workspace.ID, Plan: w.actor.Workspace.Plan, Step: program.Steps[0], Env: &expr.Env{Steps: map[string]expr.Step{}},
		})
		if err != nil || result.Status != run.StepSucceeded {
			t.Fatalf("%+v, %v", result, err)
		}
		for name, of := range n.engine.Stats().Actions {
			if len(some(of.Outcomes)) != 0 || of.Duration.Total() != 0 {
				t.Errorf("%s: %+v", name, of)
			}
		}
	})
}

// Retries of a failing store do not count twice.
func TestRetriedCommitCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		st := &hooked{Store: w.store.Leases}
		n := w.start(failingStore{st, new(int)})
		d := w.finished(w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"fails": "for good"}}]`), "{}"))
		synctest.Wait()
		if d.Status != run.Failed {
			t.Fatal(d.Status)
		}
		stats := n.engine.Stats()
		wantCounts(t, "failures of runs", stats.RunFailures, map[string]int64{counter.Other: 1})
		wantCounts(t, "failures of steps", stats.StepFailures, map[string]int64{counter.Other: 1})
	})
}

// failingStore rejects every other commit.
type failingStore struct {
	engine.Store
	n *int
}

func (f failingStore) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (run.Committed, error) {
	if *f.n++; *f.n%2 == 1 {
		return run.Committed{}, errInjected
	}
	return f.Store.Commit(ctx, lease, of, d)
}
