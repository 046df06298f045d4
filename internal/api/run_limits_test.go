package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// newFreeWorkspace creates a workspace on the smallest plan.
func newFreeWorkspace(t *testing.T) *testWorkspace {
	t.Helper()
	return sharedServer(t).newTestWorkspaceWith(t, `{"name": "Small", "plan": "free"}`)
}

func TestOutputTooLarge(t *testing.T) {
	t.Parallel()
	w := newFreeWorkspace(t)
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
		wantContains(t, w.runToEnd("run", "wf", payload).json(), want)
	}
}

func TestStateTooLarge(t *testing.T) {
	t.Parallel()
	w := newFreeWorkspace(t)
	const (
		limit = 8 << 20
		steps = 34
		size  = 120_000
		// The size of a step without its value, which is in its input and its
		// output.
		frame = len(`{"values":{"x":""}}`) + len(`{"x":""}`)
		// The payload contains the values too.
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
			strings.Repeat("x", size), strings.Repeat("y", rest+extra)), "Prefer", "wait=60").wantStatus(200)
		want := `{"status": "succeeded"}`
		if extra > 0 {
			want = `{"status": "failed", "error": {"code": "state_too_large", "message": "~.*8388608 bytes.*free plan.*", "step_id": null}}`
		}
		wantContains(t, a.json(), want)
	}
}

func TestStepLimit(t *testing.T) {
	t.Parallel()
	w := newFreeWorkspace(t)
	// The loop counts as a step too.
	w.workflow("wf", `{"id": "each", "foreach": "trigger.payload.list", "steps": [{"id": "set", "uses": "data.set", "with": {"values": {}}}]}`)
	for _, rounds := range []int{999, 1000} {
		list := strings.TrimSuffix(strings.Repeat("0,", rounds), ",")
		run := w.runToEnd("run", "wf", `{"payload": {"list": [`+list+`]}}`)
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

// The limit of concurrent runs counts executing runs: waiting runs do not
// count.
func TestWaitingRunsDoNotCountAsConcurrent(t *testing.T) {
	t.Parallel()
	w := newFreeWorkspace(t)
	w.workflow("wf", waitStep)
	for i := range 8 {
		w.runUntilWaiting(fmt.Sprintf("run%d", i), "wf")
	}
}
