package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// free makes a workspace on the smallest plan.
func free(t *testing.T) *world {
	t.Helper()
	return sharedServer(t).newWorldOn(t, `{"name": "Small", "plan": "free"}`)
}

func TestOutputTooLarge(t *testing.T) {
	t.Parallel()
	w := free(t)
	const (
		limit = 256 << 10
		half  = 100_000
		rest  = limit - 2*half - len(`{"x":""}`)
	)
	w.workflow("wf", `{"id": "set", "uses": "data.set", "with": {"values": {"x": "${{ trigger.payload.x + trigger.payload.x + trigger.payload.y }}"}}}`)
	for extra := range 2 {
		want := `{"status": "succeeded"}`
		if extra > 0 {
			want = `{"status": "failed", "error": {"code": "output_too_large", "message": "~.*262145 bytes.*free plan.*262144", "step_id": "set"}}`
		}
		payload := fmt.Sprintf(`{"payload": {"x": %q, "y": %q}}`, strings.Repeat("x", half), strings.Repeat("y", rest+extra))
		wantContains(t, w.finish("run", "wf", payload).json(), want)
	}
}

func TestStateTooLarge(t *testing.T) {
	t.Parallel()
	w := free(t)
	const (
		limit = 8 << 20
		steps = 34
		size  = 120_000
		// What a step keeps beside its value, which is in its input and its output.
		frame = len(`{"values":{"x":""}}`) + len(`{"x":""}`)
		// The payload has the values too.
		rest = (limit - steps*(2*size+frame) - frame - size - len(`{"x":"","last":"","pad":"12"}`)) / 3
	)
	var list []string
	for i := range steps + 1 {
		member := "x"
		if i == steps {
			member = "last"
		}
		list = append(list, fmt.Sprintf(`{"id": "s%d", "uses": "data.set", "with": {"values": {"x": "${{ trigger.payload.%s }}"}}}`, i, member))
	}
	w.workflow("wf", list...)
	for extra := range 2 {
		a := w.call("POST", "/v1/workflows/$wf/runs", fmt.Sprintf(`{"payload": {"x": %q, "last": %q, "pad": "12"}}`,
			strings.Repeat("x", size), strings.Repeat("y", rest+extra)), "Prefer", "wait=30").want(200)
		want := `{"status": "succeeded"}`
		if extra > 0 {
			want = `{"status": "failed", "error": {"code": "state_too_large", "message": "~.*8388608 bytes.*free plan.*", "step_id": null}}`
		}
		wantContains(t, a.json(), want)
	}
}

func TestStepLimit(t *testing.T) {
	t.Parallel()
	w := free(t)
	// The loop is a step too.
	w.workflow("wf", `{"id": "each", "foreach": "trigger.payload.list", "steps": [{"id": "set", "uses": "data.set", "with": {"values": {}}}]}`)
	for _, rounds := range []int{999, 1000} {
		list := strings.TrimSuffix(strings.Repeat("0,", rounds), ",")
		run := w.finish("run", "wf", `{"payload": {"list": [`+list+`]}}`)
		if got := len(run.object()["steps"].([]any)); got != 1000 {
			t.Errorf("with %d rounds there are %d steps", rounds, got)
		}
		want := `{"status": "succeeded"}`
		if rounds == 1000 {
			want = `{"status": "failed", "error": {"code": "step_limit_exceeded", "message": "~.*1000 steps.*free plan.*", "step_id": null}}`
		}
		wantContains(t, run.json(), want)
	}
}

// What is allowed at a time on a plan is not what it allows to exist: runs that
// wait do not count.
func TestWaitingRunsAreNotExecuted(t *testing.T) {
	t.Parallel()
	w := free(t)
	w.workflow("wf", waitStep)
	for i := range 8 {
		w.waiting(fmt.Sprintf("run%d", i), "wf")
	}
}
