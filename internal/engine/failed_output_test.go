package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/run"
)

func TestFailedOutputIsMaskedBeforeItIsShortened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.putSecret("token", canary)
	w.start(w.store.Leases)
	// The output is cut in the middle of the last secret.
	body := strings.Repeat("x", 64<<10-len(canary)-len(`{"body":"","truncated":true}`)+len("***")) + "${{ secrets.token }}" + strings.Repeat("y", 9000)
	d := w.finished(w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect",
		"with": {"fails": "refused", "leaves": {"said": "${{ secrets.token }}", "body": "`+body+`"}}}]`), `{}`))
	got := string(d.Steps[0].Output)
	if strings.Contains(got, canary[:4]) || !strings.Contains(got, `"said":"***"`) {
		t.Errorf("the output shows a secret: …%s", got[max(0, len(got)-80):])
	}
	if len(got) > 64<<10 || !strings.Contains(got, `"truncated":true`) {
		t.Errorf("the output has %d bytes: %.80s", len(got), got)
	}
	if d.Error.Code != "test_failed" {
		t.Errorf("the run failed with %+v", d.Error)
	}
}

// The output of a tolerated failure must not make the run exceed its state limit.
func TestFailedOutputUsesAtMostHalfOfState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPlan(auth.Free)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[{"id": "each", "foreach": "1..200", "steps": [
		{"id": "a", "on_error": "continue", "uses": "test.effect", "with": {"fails": "no", "leaves_bytes": 60000}}
	]}]`), `{}`))
	if d.Status != run.Succeeded {
		t.Fatalf("%+v", d.Error)
	}
	size := 0
	for _, step := range d.Steps {
		size += len(step.Input) + len(step.Output)
	}
	if limit := auth.Free.Limits().StateBytes / 2; size > limit+64<<10 || size < limit-64<<10 {
		t.Errorf("the run stores %d bytes of %d", size, limit)
	}
}

// A step that waits for its next attempt shows the output of the last one, even after
// a restart.
func TestFailedOutputIsShownBeforeRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "a", "retry": {"max_attempts": 2, "initial": "1h"}, "uses": "test.effect",
			"with": {"call": "a", "passes_after": 1, "retry_after": "30m", "leaves": {"status": 503}, "returns": {"status": 200}}}]`), `{}`)
		waiting := func() {
			t.Helper()
			synctest.Wait()
			if step := w.get(id).Steps[0]; step.Status != run.StepWaiting || string(step.Output) != `{"status":503}` {
				t.Fatalf("%s %s", step.Status, step.Output)
			}
		}
		waiting()
		first.end()
		second := w.start(w.store.Leases)
		defer second.end()
		waiting()
		time.Sleep(2 * time.Hour)
		if d := w.endOf(id); string(d.Steps[0].Output) != `{"status":200}` {
			t.Errorf("%s %s", d.Steps[0].Status, d.Steps[0].Output)
		}
	})
}
