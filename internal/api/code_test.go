package api_test

import (
	"encoding/json"
	"strconv"
	"testing"
)

// Scripts exchange values with the workflow as JSON, and a failure has its
// position.
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
			w := newTestWorkspace(t)
			w.workflow("wf", `{"id": "a", "uses": "code.js", "timeout": "10m", "with": {"code": `+strconv.Quote(tc.code)+`, "input": "${{ trigger.payload }}"}}`)
			run := w.runToEnd("run", "wf", `{"payload": {"price": 42}}`)
			if got := run.str("status"); got != tc.status {
				t.Errorf("status %s: %s", got, run.body)
			}
			wantContains(t, run.json(), tc.want)
		})
	}
}

// A script that does not end is stopped by the timeout of its step and not
// retried. Attempts that ended while they waited for a process do not count.
func TestScriptTimeout(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", `{"id": "a", "uses": "code.js", "timeout": "2s", "with": {"code": "for (;;) {}"}}`)
	run := w.runToEnd("run", "wf", `{}`)
	wantContains(t, run.json(), `{"status": "failed", "error": {"code": "script_timeout"}, "steps": [{"status": "failed"}]}`)
	var body struct {
		Steps []struct {
			Attempts []struct{ Error struct{ Code string } }
		}
	}
	if err := json.Unmarshal(run.body, &body); err != nil {
		t.Fatal(err)
	}
	endless := 0
	for _, attempt := range body.Steps[0].Attempts {
		if attempt.Error.Code == "script_timeout" {
			endless++
		}
	}
	if endless != 1 {
		t.Errorf("the script was tried %d times: %s", endless, run.body)
	}
}
