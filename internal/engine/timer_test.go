package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/run"
)

// TestRunTimeout checks that the timeout only limits the execution of steps.
func TestRunTimeout(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		timeout, steps string
		failsAfter     time.Duration // zero: it succeeds
	}{
		"one step": {"1m", `[{"id": "a", "timeout": "5m", "uses": "test.effect", "with": {"takes": "2m"}}]`, time.Minute},
		"adds up over waits": {"1m", `[{"id": "poll", "repeat": {"until": "index == 3", "every": "1h"}, "steps": [
			{"id": "work", "uses": "test.effect", "with": {"takes": "25s"}}]}]`, 2*time.Hour + time.Minute},
		"enough for all rounds": {"101s", `[{"id": "poll", "repeat": {"until": "index == 3", "every": "1h"}, "steps": [
			{"id": "work", "uses": "test.effect", "with": {"takes": "25s"}}]}]`, 0},
		"parallel steps count once": {"41s", `[
			{"id": "a", "needs": [], "uses": "test.effect", "with": {"takes": "40s"}},
			{"id": "b", "needs": [], "uses": "test.effect", "with": {"takes": "40s"}},
			{"id": "c", "needs": [], "uses": "test.effect", "with": {"takes": "40s"}}]`, 0},
		"overlapping steps count once": {"61s", `[
			{"id": "a", "needs": [], "uses": "test.effect", "with": {"takes": "40s"}},
			{"id": "rest", "needs": [], "uses": "flow.wait", "with": {"for": "20s"}},
			{"id": "b", "needs": ["rest"], "uses": "test.effect", "with": {"takes": "40s"}}]`, 0},
		"overlapping steps count in full": {"59s", `[
			{"id": "a", "needs": [], "uses": "test.effect", "with": {"takes": "40s"}},
			{"id": "rest", "needs": [], "uses": "flow.wait", "with": {"for": "20s"}},
			{"id": "b", "needs": ["rest"], "uses": "test.effect", "with": {"takes": "40s"}}]`, 59 * time.Second},
		"a parallel wait does not stop the count": {"50s", `[
			{"id": "a", "needs": [], "timeout": "5m", "uses": "test.effect", "with": {"takes": "2m"}},
			{"id": "rest", "needs": [], "uses": "flow.wait", "with": {"for": "10s"}},
			{"id": "ask", "needs": [], "uses": "flow.approval", "with": {"timeout": "30s", "on_timeout": "continue"}}]`, 50 * time.Second},
		"pauses between attempts do not count": {"50s", `[
			{"id": "a", "uses": "test.effect", "with": {"call": "a", "takes": "20s", "passes_after": 9, "retry_after": "30m"}}]`, time.Hour + 50*time.Second},
		"approvals do not count": {"50s", `[
			{"id": "a", "uses": "test.effect", "with": {"takes": "20s"}},
			{"id": "ask", "uses": "flow.approval", "with": {"timeout": "3d", "on_timeout": "continue"}},
			{"id": "b", "uses": "test.effect", "with": {"takes": "20s"}}]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(w.store.Leases)
				d := w.endOf(w.startRun(w.workflowWith(tc.steps, `{"timeout": "`+tc.timeout+`"}`), "{}"))
				if tc.failsAfter == 0 {
					if d.Status != run.Succeeded {
						t.Fatalf("%s: %+v", d.Status, d.Error)
					}
					return
				}
				if d.Error == nil || d.Error.Code != run.CodeRunTimeout {
					t.Fatalf("%s: %+v", d.Status, d.Error)
				}
				if took := d.FinishedAt.Sub(d.StartedAt); took != tc.failsAfter {
					t.Errorf("failed after %s instead of %s", took, tc.failsAfter)
				}
			})
		})
	}
}

// TestRunTimeoutAddsUpOverRestarts stops the engine while a step hangs. The time before the
// restart counts.
func TestRunTimeoutAddsUpOverRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflowWith(`[{"id": "a", "timeout": "10m", "uses": "test.effect", "with": {"gate": "never"}}]`, `{"timeout": "2m"}`), "{}")
		time.Sleep(20 * time.Second)
		stopped := time.Now()
		n.end()
		if took := time.Since(stopped); took != 25*time.Second {
			t.Fatalf("the step had %s to end", took)
		}
		time.Sleep(time.Hour)
		w.start(w.store.Leases)
		again := time.Now()
		d := w.endOf(id)
		if d.Error == nil || d.Error.Code != run.CodeRunTimeout || d.FinishedAt.Sub(again) != 75*time.Second {
			t.Fatalf("%+v after %s", d.Error, d.FinishedAt.Sub(again))
		}
		if d.Steps[0].Status != run.StepCancelled || d.Steps[0].Attempt != 1 || len(d.Attempts) != 0 {
			t.Errorf("%+v", d.Steps[0])
		}
	})
}

func TestRunTimeoutExcludesQueueTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		flow := w.workflowWith(`[{"id": "a", "timeout": "10m", "uses": "test.effect", "with": {"takes": "50s"}}]`, `{"timeout": "1m", "concurrency": {"limit": 1}}`)
		ids := []string{w.startRun(flow, "{}"), w.startRun(flow, "{}"), w.startRun(flow, "{}")}
		begun := time.Now()
		if held := w.get(ids[2]).WaitingFor(); held == nil || held.Reason != "queued: the concurrency limit of the workflow is reached" {
			t.Errorf("%+v", held)
		}
		for i, id := range ids {
			d := w.endOf(id)
			if took := d.FinishedAt.Sub(begun); d.Status != run.Succeeded || took != time.Duration(i+1)*50*time.Second {
				t.Errorf("run %d: %s after %s, %+v", i, d.Status, took, d.Error)
			}
		}
	})
}

// TestStepTimeoutStopsAction has an action that stops at its timeout, and one that never
// does and gets a second of grace.
func TestStepTimeoutStopsAction(t *testing.T) {
	t.Parallel()
	for with, want := range map[string]time.Duration{`{"gate": "never"}`: 30 * time.Second, `{"deaf": "stuck"}`: 31 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.store.Leases)
			d := w.endOf(w.startRun(w.workflow(`[{"id": "a", "timeout": "30s", "retry": {"max_attempts": 1}, "uses": "test.effect", "with": `+with+`}]`), "{}"))
			step := d.Steps[0]
			if step.Status != run.StepFailed || step.Error.Code != "timed_out" {
				t.Fatalf("%s: %+v", with, step)
			}
			if took := step.FinishedAt.Sub(step.StartedAt); took != want || !d.FinishedAt.Equal(*step.FinishedAt) {
				t.Errorf("%s: ended after %s, the run after %s", with, took, d.FinishedAt.Sub(step.StartedAt))
			}
			w.effects.open("stuck")
		})
	}
}

// TestShutdownDrainsSteps has a step that ends within the drain time, and one that ignores
// the shutdown and is executed again as the same attempt.
func TestShutdownDrainsSteps(t *testing.T) {
	t.Parallel()
	for with, want := range map[string]struct {
		stop  time.Duration
		calls int
	}{
		`{"call": "a", "takes": "20s"}`:   {15 * time.Second, 1},
		`{"call": "a", "takes": "40s"}`:   {25 * time.Second, 2},
		`{"call": "a", "deaf": "$stuck"}`: {26 * time.Second, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			n := w.start(w.store.Leases)
			id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": `+with+`}, {"id": "b", "uses": "data.set", "with": {"values": {}}}]`), "{}")
			time.Sleep(5 * time.Second)
			begun := time.Now()
			n.end()
			if took := time.Since(begun); took != want.stop {
				t.Errorf("%s: the shutdown took %s", with, took)
			}
			w.effects.open("$stuck")
			w.start(w.store.Leases)
			if d := w.endOf(id); d.Status != run.Succeeded || d.Steps[0].Attempt != 1 || w.effects.count("a") != want.calls {
				t.Errorf("%s: %s after %d calls, %+v", with, d.Status, w.effects.count("a"), d.Steps)
			}
		})
	}
}

func TestApprovalTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "ask", "uses": "flow.approval", "with": {"timeout": "36h"}}]`), "{}")
		time.Sleep(10 * time.Hour)
		n.end()
		w.start(w.store.Leases)
		d := w.endOf(id)
		if took := d.FinishedAt.Sub(d.StartedAt); took != 36*time.Hour || d.Error.Code != "approval_timed_out" {
			t.Fatalf("%+v after %s", d.Error, took)
		}
	})
}

// TestBackoffGrows has attempts that fail immediately. Each pause is at most the bound of
// its attempt.
func TestBackoffGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		d := w.endOf(w.startRun(w.workflow(`[{"id": "a", "retry": {"max_attempts": 8, "initial": "1m", "factor": 3, "max_delay": "1h"},
			"uses": "test.effect", "with": {"call": "a", "passes_after": 99}}]`), "{}"))
		bounds := []time.Duration{time.Minute, 3 * time.Minute, 9 * time.Minute, 27 * time.Minute, time.Hour, time.Hour, time.Hour}
		if len(d.Attempts) != len(bounds) {
			t.Fatalf("%d attempts", len(d.Attempts))
		}
		for i, a := range d.Attempts {
			next := d.Steps[0].AttemptAt
			if i+1 < len(d.Attempts) {
				next = d.Attempts[i+1].StartedAt
			}
			if pause := next.Sub(a.FinishedAt); pause <= 0 || pause > bounds[i]+time.Millisecond {
				t.Errorf("the pause after attempt %d was %s, the bound is %s", a.Number, pause, bounds[i])
			}
		}
	})
}

// countingStore counts activations.
type countingStore struct {
	engine.Store
	activations atomic.Int64
}

func (c *countingStore) Activate(ctx context.Context, wake run.Wake, node string) (run.Lease, bool, error) {
	c.activations.Add(1)
	return c.Store.Activate(ctx, wake, node)
}

func TestLongWaitIsActivatedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		st := &countingStore{Store: w.store.Leases}
		w.start(st)
		d := w.endOf(w.startRun(w.workflow(`[{"id": "a", "uses": "flow.wait", "with": {"for": "30d"}}]`), "{}"))
		if n := st.activations.Load(); d.Status != run.Succeeded || n != 1 {
			t.Fatalf("%s, activated %d times", d.Status, n)
		}
	})
}

// TestHeldBackRunReleasesItsReservation starts a run that waits for another. Its
// reservation is released.
func TestHeldBackRunReleasesItsReservation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		flow := w.workflowWith(`[{"id": "a", "uses": "flow.wait", "with": {"for": "1h"}}]`, `{"concurrency": {"limit": 1}}`)
		first, second := w.startRun(flow, "{}"), w.startRun(flow, "{}")
		synctest.Wait()
		if d := w.get(second); !d.HeldBack {
			t.Fatalf("%+v", d)
		}
		if _, ok := n.dispatch.Reserve(w.actor.Workspace.ID, "another", 1); !ok {
			t.Error("its reservation was not released")
		}
		for _, id := range []string{first, second} {
			if d := w.endOf(id); d.Status != run.Succeeded {
				t.Errorf("%+v", d.Error)
			}
		}
	})
}
