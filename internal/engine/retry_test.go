package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/run"
)

func TestRetryableFailureIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"call": "a", "passes_after": 3, "returns": {"n": 1}}}]`), "{}")
		d := w.finished(id)
		if d.Status != run.Succeeded || d.Steps[0].Attempt != 4 || w.effects.count("a") != 4 || d.Steps[0].Error != nil {
			t.Fatalf("%+v", d.Steps)
		}
		if len(d.Attempts) != 3 {
			t.Fatalf("%+v", d.Attempts)
		}
		for i, a := range d.Attempts {
			if a.Number != i+1 || a.Error.Code != "test_passing" || a.FinishedAt.Before(a.StartedAt) {
				t.Errorf("attempt %d: %+v", i, a)
			}
		}
	})
}

func TestAttemptsRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		for steps, want := range map[string]int{
			`[{"id": "a", "uses": "test.effect", "with": {"call": "five", "passes_after": 100}}]`:                                  5,
			`[{"id": "a", "retry": {"max_attempts": 2}, "uses": "test.effect", "with": {"call": "two", "passes_after": 100}}]`:     2,
			`[{"id": "a", "retry": {"max_attempts": 1}, "uses": "test.effect", "with": {"call": "one", "passes_after": 100}}]`:     1,
			`[{"id": "a", "retry": {"max_attempts": 9}, "uses": "test.effect", "with": {"call": "lasting", "fails": "for good"}}]`: 1,
		} {
			d := w.finished(w.startRun(w.workflow(steps), "{}"))
			if d.Status != run.Failed || d.Steps[0].Attempt != want || len(d.Attempts) != want-1 {
				t.Errorf("%s: %d attempts, %+v", steps, d.Steps[0].Attempt, d.Error)
			}
		}
	})
}

func TestRetrySurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"call": "a", "passes_after": 1, "retry_after": "50m", "returns": {}}}]`), "{}")
		synctest.Wait()
		begun := time.Now()
		waiting := w.get(id).WaitingFor()
		if waiting == nil || waiting.Until == nil || !strings.Contains(waiting.Reason, "attempt 1 of 5 failed") {
			t.Fatalf("%+v", waiting)
		}
		n.end()
		time.Sleep(20 * time.Minute)
		w.start(w.store.Leases)
		time.Sleep(time.Hour)
		d := w.get(id)
		if d.Status != run.Succeeded || w.effects.count("a") != 2 {
			t.Fatalf("%+v", d)
		}
		if took := d.FinishedAt.Sub(begun); took < 50*time.Minute || took > 51*time.Minute {
			t.Fatalf("took %s", took)
		}
	})
}

func TestStepTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		begun := time.Now()
		d := w.finished(w.startRun(w.workflow(`[{"id": "a", "timeout": "30s", "retry": {"max_attempts": 1}, "uses": "test.effect", "with": {"gate": "never"}}]`), "{}"))
		if d.Error == nil || d.Error.Code != "timed_out" || time.Since(begun) > 32*time.Second {
			t.Fatalf("%+v after %s", d.Error, time.Since(begun))
		}
	})
}

// TestStepThatIgnoresItsTimeout has an action that ignores its context. The run continues
// without it.
func TestStepThatIgnoresItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		begun := time.Now()
		d := w.finished(w.startRun(w.workflow(`[
			{"id": "a", "timeout": "30s", "retry": {"max_attempts": 1}, "on_error": "continue", "uses": "test.effect", "with": {"deaf": "stuck"}},
			{"id": "b", "uses": "data.set", "with": {"values": {}}}]`), "{}"))
		if d.Status != run.Succeeded || d.Steps[0].Error.Code != "timed_out" || time.Since(begun) > 33*time.Second {
			t.Fatalf("%+v after %s", d.Steps, time.Since(begun))
		}
		w.effects.open("stuck")
	})
}

func TestCancelWhileWaitingForRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"call": "a", "passes_after": 1, "retry_after": "10m"}}]`), "{}")
		synctest.Wait()
		d, err := w.runs.Cancel(context.WithoutCancel(t.Context()), w.actor, id)
		if err != nil || d.Status != run.Cancelled || d.Steps[0].Status != run.StepCancelled {
			t.Fatalf("%+v, %v", d, err)
		}
		time.Sleep(time.Hour)
		if w.effects.count("a") != 1 {
			t.Fatal("it was retried after the cancel")
		}
	})
}
