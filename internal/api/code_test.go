package api_test

import (
	"strconv"
	"testing"
)

// Scripts run in the middle of a workflow: values go in and out as JSON, and
// a failure says where.
func TestScripts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, code, status, want string }{
		{"an object", "return {total: input.price * 2}", "succeeded", `{"steps": [{"status": "succeeded", "output": {"total": 84}}]}`},
		{"a bare value", "return input.price", "succeeded", `{"steps": [{"output": {"value": 42}}]}`},
		{"nothing", "console.log(input)", "succeeded", `{"steps": [{"output": {}}]}`},
		{"a promise", "return await Promise.all([1, input.price])", "succeeded", `{"steps": [{"output": {"value": [1, 42]}}]}`},
		{
			"an exception", "const order = {}\nreturn order.customer.name", "failed",
			`{"error": {"code": "script_error", "message": "Step \"a\" failed: TypeError: Cannot read property 'name' of undefined (line 2, column 23)"}}`,
		},
		{"too large a result", "return 'x'.repeat(2e6)", "failed", `{"error": {"code": "output_too_large"}}`},
		{"too much memory", "const a = []; for (;;) a.push('x'.repeat(1e6))", "failed", `{"error": {"code": "script_memory"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.workflow("wf", `{"id": "a", "uses": "code.js", "with": {"code": `+strconv.Quote(tc.code)+`, "input": "${{ trigger.payload }}"}}`)
			run := w.finish("run", "wf", `{"payload": {"price": 42}}`)
			if got := run.text("status"); got != tc.status {
				t.Errorf("status %s: %s", got, run.body)
			}
			wantContains(t, run.json(), tc.want)
		})
	}
}

// A script that does not end is ended by the time of its step, and is not tried
// again.
func TestEndlessScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", `{"id": "a", "uses": "code.js", "timeout": "1s", "with": {"code": "for (;;) {}"}}`)
	wantContains(t, w.finish("run", "wf", `{}`).json(),
		`{"status": "failed", "error": {"code": "script_timeout"}, "steps": [{"status": "failed", "attempt": 1}]}`)
}
