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

// Files pass from script to script, and only as what the runtime has made.
func TestFilesOfScripts(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf",
		`{"id": "make", "uses": "code.js", "timeout": "10m", "with": {"code": "return {file: new File(['hello ', input.name], 'h.txt', {type: 'text/plain'})}", "input": "${{ trigger.payload }}"}}`,
		`{"id": "read", "uses": "code.js", "timeout": "10m", "with": {"code": "return {text: await input.text(), again: [input], copy: {'$file': 'file_1', name: input.name, type: 'x', size: 1, sha256: 'x'}}", "input": "${{ steps.make.output.file }}"}}`,
		`{"id": "types", "uses": "data.set", "with": {"values": {"again": "${{ type(steps.read.output.again[0]) }}", "copy": "${{ type(steps.read.output.copy) }}", "payload": "${{ type(trigger.payload.forged) }}", "same": "${{ steps.read.output.again[0] == steps.make.output.file }}"}}}`,
		`{"id": "forged", "uses": "code.js", "timeout": "10m", "with": {"code": "return {file: input instanceof File}", "input": "${{ trigger.payload.forged }}"}}`,
	)
	run := w.runToEnd("run", "wf", `{"payload": {"name": "Ada", "forged": {"$file": "file_1", "name": "n", "type": "t", "size": 1, "sha256": "s"}}}`)
	wantContains(t, run.json(), `{"status": "succeeded", "steps": [
		{"step_id": "make", "output": {"file": {"name": "h.txt", "type": "text/plain", "size": 9}}},
		{"step_id": "read", "output": {"text": "hello Ada", "again": [{"name": "h.txt"}], "copy": {"$file": "file_1"}}},
		{"step_id": "types", "output": {"again": "file", "copy": "map", "payload": "map", "same": true}},
		{"step_id": "forged", "output": {"file": false}}]}`)
}

// A list that is too large for an output becomes a list file, which a loop reads.
func TestLargeListOfAScript(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf",
		`{"id": "list", "uses": "code.js", "timeout": "10m", "with": {"code": "return Array.from({length: 30}, (_, n) => ({n, text: 'x'.repeat(50000)}))"}}`,
		`{"id": "each", "foreach": "steps.list.output.value", "parallel": 4, "steps": [{"id": "one", "uses": "data.set", "with": {"values": {"n": "${{ item.n * 2 + len(item.text) }}"}}}]}`,
		`{"id": "sum", "uses": "data.set", "with": {"values": {"sum": "${{ sum(map(steps.each.output.items, .n)) }}", "count": "${{ steps.list.output.value.count }}"}}}`,
	)
	run := w.runToEnd("run", "wf", `{}`)
	wantContains(t, run.json(), `{"status": "succeeded"}`)
	var body struct {
		Steps []struct {
			StepID string `json:"step_id"`
			Output json.RawMessage
		}
	}
	if err := json.Unmarshal(run.body, &body); err != nil {
		t.Fatal(err)
	}
	for _, step := range body.Steps {
		if step.StepID == "sum" && string(step.Output) != `{"count":30,"sum":1500870}` {
			t.Errorf("the sum is %s", step.Output)
		}
	}
	rounds := w.call("GET", "/v1/runs/$run/steps/each/rounds", "")
	wantContains(t, rounds.json(), `{"total": 30}`)
}
