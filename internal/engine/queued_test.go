package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
)

// queuedStep is a workflow of one step whose action waits for its turn.
func queuedStep(timeout, with string) string {
	return `[{"id": "a", "timeout": "` + timeout + `", "retry": {"max_attempts": 1}, "uses": "test.queued", "with": ` + with + `}]`
}

// Steps wait longer for their turn than their timeout is. The timeout applies to
// each of them from its turn on.
func TestStepTimeoutExcludesWaitForTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		first := w.startRun(w.workflow(queuedStep("10m", `{"takes": "5m"}`)), "{}")
		synctest.Wait()
		begun := time.Now()
		flow := w.workflow(queuedStep("30s", `{"takes": "20s"}`))
		quick := []string{first, w.startRun(flow, "{}"), w.startRun(flow, "{}")}
		slow := w.startRun(w.workflow(queuedStep("30s", `{"takes": "1h"}`)), "{}")
		var last time.Duration
		for _, id := range quick {
			d := w.endOf(id)
			last = max(last, d.FinishedAt.Sub(begun))
			if d.Status != run.Succeeded {
				t.Errorf("a step that took less than its timeout is %s: %+v", d.Status, d.Error)
			}
		}
		d := w.endOf(slow)
		last = max(last, d.FinishedAt.Sub(begun))
		if d.Error == nil || d.Error.Code != "timed_out" {
			t.Errorf("a step that took longer than its timeout is %s: %+v", d.Status, d.Error)
		}
		if last != 5*time.Minute+20*time.Second+20*time.Second+30*time.Second {
			t.Errorf("the last step ended after %s", last)
		}
	})
}

// A run that is cancelled, or that exceeds its own timeout, ends at once although
// its step waits for its turn. The step then has no turn.
func TestWaitForTurnEndsWithRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		first := w.startRun(w.workflow(queuedStep("10m", `{"takes": "5m"}`)), "{}")
		synctest.Wait()
		begun := time.Now()
		cancelled := w.startRun(w.workflow(queuedStep("30s", `{"call": "never"}`)), "{}")
		late := w.startRun(w.workflowWith(queuedStep("30s", `{"call": "never"}`), `{"timeout": "2m"}`), "{}")
		time.Sleep(time.Minute)
		if _, err := w.runs.Cancel(t.Context(), w.actor, cancelled); err != nil {
			t.Fatal(err)
		}
		if d := w.endOf(cancelled); d.Status != run.Cancelled || d.FinishedAt.Sub(begun) != time.Minute {
			t.Errorf("the cancelled run is %s after %s", d.Status, d.FinishedAt.Sub(begun))
		}
		if d := w.endOf(late); d.Error == nil || d.Error.Code != run.CodeRunTimeout || d.FinishedAt.Sub(begun) != 2*time.Minute {
			t.Errorf("the late run is %s after %s: %+v", d.Status, d.FinishedAt.Sub(begun), d.Error)
		}
		if d := w.endOf(first); d.Status != run.Succeeded || d.FinishedAt.Sub(begun) != 5*time.Minute {
			t.Errorf("the first run is %s after %s", d.Status, d.FinishedAt.Sub(begun))
		}
		if d := w.endOf(w.startRun(w.workflow(queuedStep("30s", `{"returns": 1}`)), "{}")); d.Status != run.Succeeded {
			t.Errorf("the next run is %s: its turn was lost", d.Status)
		}
		if n := w.effects.count("never"); n != 0 {
			t.Errorf("steps of ended runs were executed %d times", n)
		}
	})
}

// An action that does not stop keeps its turn until it returns.
func TestAbandonedActionKeepsItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		if d := w.endOf(w.startRun(w.workflow(queuedStep("30s", `{"deaf": "stuck"}`)), "{}")); d.Error == nil || d.Error.Code != "timed_out" {
			t.Errorf("%+v", d.Error)
		}
		next := w.startRun(w.workflow(queuedStep("30s", `{"returns": 1}`)), "{}")
		time.Sleep(time.Minute)
		if d := w.get(next); d.Status != run.Running {
			t.Errorf("the next run is %s while the action still runs", d.Status)
		}
		w.effects.open("stuck")
		if d := w.endOf(next); d.Status != run.Succeeded {
			t.Errorf("the next run is %s", d.Status)
		}
	})
}

// A step test waits for its turn too, but only as long as a request may take.
func TestStepTestWaitsForTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		first := w.startRun(w.workflow(queuedStep("10m", `{"takes": "5m"}`)), "{}")
		synctest.Wait()
		flow := w.workflow(queuedStep("30s", `{"returns": 1}`))
		test := run.StepExecution{
			WorkspaceID: w.actor.Workspace.ID, Plan: w.actor.Workspace.Plan, Env: &expr.Env{Steps: map[string]expr.Step{}},
			Step: w.programOf(flow, w.versionOf(flow)).Steps[0],
		}
		begun := time.Now()
		result, err := n.engine.TestStep(t.Context(), test)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); result.Error == nil || result.Error.Code != "timed_out" || !strings.Contains(result.Error.Message, "busy") || took != 50*time.Second {
			t.Errorf("after %s: %+v", took, result.Error)
		}
		w.endOf(first)
		if result, err = n.engine.TestStep(t.Context(), test); err != nil || result.Status != run.StepSucceeded {
			t.Errorf("%s, %v: %+v", result.Status, err, result.Error)
		}
	})
}
