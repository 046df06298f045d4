package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestEvaluate(t *testing.T) {
	evaluate := func(name, body, answer string) scenario {
		return scenario{name: name, request: "POST /v1/expressions/evaluate", scope: "read", body: body, status: 200, contains: answer, setup: setupPreview}
	}
	runScenarios(t, []scenario{
		evaluate("a number", `{"expression": "1 + 1"}`, `{"valid": true, "value": 2, "type": "number"}`),
		evaluate("text", `{"expression": "\"a\" + \"b\""}`, `{"valid": true, "value": "ab", "type": "string"}`),
		evaluate("a truth value", `{"expression": "1 > 2"}`, `{"value": false, "type": "boolean"}`),
		evaluate("nothing", `{"expression": "trigger.payload.none"}`, `{"value": null, "type": "null"}`),
		evaluate("a list", `{"expression": "[1, nil]"}`, `{"value": [1, null], "type": "list"}`),
		evaluate("an object", `{"expression": "{a: 1}"}`, `{"value": {"a": 1}, "type": "object"}`),
		evaluate("with braces", `{"expression": " ${{ 1 + 1 }} "}`, `{"value": 2}`),
		evaluate("a template that is one expression keeps its type", `{"template": "${{ 1 + 1 }}"}`, `{"value": 2, "type": "number"}`),
		evaluate("a template among text", `{"template": "Hello, ${{ trigger.payload.name }}!", "context": {"trigger": {"payload": {"name": "Ada"}}}}`, `{"value": "Hello, Ada!", "type": "string"}`),
		evaluate("a template of any shape", `{"template": {"a": ["${{ 1 + 1 }}", 3]}}`, `{"value": {"a": [2, 3]}, "type": "object"}`),
		evaluate("a template of nothing", `{"template": null}`, `{"value": null, "type": "null"}`),
		evaluate("a number that no float can hold", `{"template": 123456789012345678901234567890}`, `{"value": 123456789012345678901234567890, "type": "number"}`),

		evaluate("what the context has", `{"expression": "[trigger.type, trigger.id, trigger.headers.a, trigger.query.b, item.x, index, previous.y, run.id, run.started_at, workflow.id, workflow.name, workflow.version]",
			"context": {"trigger": {"type": "webhook", "id": "hook", "headers": {"a": "h"}, "query": {"b": "q"}}, "item": {"x": 1}, "index": 7, "previous": {"y": 8},
			"run": {"id": "run_x", "started_at": "2026-01-02T03:04:05Z"}, "workflow": {"id": "wf_x", "name": "N", "version": 3}}}`,
			`{"value": ["webhook", "hook", "h", "q", 1, 7, 8, "run_x", "2026-01-02T03:04:05.000Z", "wf_x", "N", 3]}`),
		evaluate("steps of the context", `{"expression": "[steps.a.output.x, steps.a.status, steps.b.error.code, steps.none.output]",
			"context": {"steps": {"a": {"output": {"x": [1]}, "status": "succeeded"}, "b": {"status": "failed", "error": {"code": "timed_out"}}}}}`,
			`{"value": [[1], "succeeded", "timed_out", null]}`),
		evaluate("variables of the workspace, overridden one by one", `{"expression": "[vars.region, vars.size, vars.new]", "context": {"vars": {"size": 9, "new": "x"}}}`, `{"value": ["eu", 9, "x"]}`),
		evaluate("all variables", `{"expression": "vars"}`, `{"value": {"region": "eu", "size": {"x": 1}}}`),
		evaluate("a secret is never read", `{"expression": "\"Bearer \" + secrets.token"}`, `{"value": "Bearer ***"}`),
		evaluate("a secret that does not exist looks the same", `{"template": {"a": "${{ secrets.none }}"}}`, `{"value": {"a": "***"}}`),
		evaluate("text from a payload is never evaluated", `{"template": "${{ trigger.payload }}", "context": {"trigger": {"payload": "${{ secrets.token }}"}}}`, `{"value": "${{ secrets.token }}"}`),

		evaluate("an expression that is not one", `{"expression": "1 +"}`, `{"valid": false, "error": {"code": "expression_invalid", "line": 1, "column": 3, "pointer": ""}}`),
		evaluate("an empty expression", `{"expression": ""}`, `{"valid": false, "error": {"code": "expression_invalid"}}`),
		evaluate("an unknown name", `{"expression": "trigger.payload.a +\n nam"}`, `{"valid": false, "error": {"code": "expression_invalid", "line": 2, "column": 2}}`),
		evaluate("an expression that fails", `{"expression": "1 + nil"}`, `{"valid": false, "error": {"code": "expression_failed"}}`),
		evaluate("an expression that costs too much", `{"expression": "sum(map(1..100000, {# * 2})) + sum(map(1..100000, {sum(map(1..100, {#}))}))"}`, `{"valid": false, "error": {"code": "expression_cost_exceeded"}}`),
		evaluate("a problem inside a template", `{"template": {"a": ["ok", "${{ 1 + }}"]}}`, `{"valid": false, "error": {"code": "expression_invalid", "pointer": "/a/1"}}`),
		evaluate("a failure inside a template", `{"template": {"a/b": "${{ 1 + nil }}"}}`, `{"valid": false, "error": {"code": "expression_failed", "pointer": "/a~1b"}}`),

		{name: "something to evaluate is required", request: "POST /v1/expressions/evaluate", body: `{}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/expression"}},
		{name: "an expression and a template are one too many", request: "POST /v1/expressions/evaluate", body: `{"expression": "1", "template": "1"}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/template"}},
		{name: "an unknown part of the context is rejected", request: "POST /v1/expressions/evaluate", body: `{"expression": "1", "context": {"secrets": {"a": "b"}}}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/context/secrets"}},
		{name: "a time has to be one", request: "POST /v1/expressions/evaluate", body: `{"expression": "1", "context": {"run": {"started_at": "soon"}}}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/context/run/started_at"}},
		{name: "an unknown workflow is workflow_not_found", request: "POST /v1/expressions/evaluate", body: `{"expression": "1", "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`, status: 404, code: "workflow_not_found", message: "wf_01m7f8njhve3pt0yekqqme4qcm"},
		{name: "an unknown run is run_not_found", request: "POST /v1/expressions/evaluate", body: `{"expression": "1", "run_id": "run_01m7f9hb3mevr88y42wdngtn4v"}`, status: 404, code: "run_not_found", message: "run_01m7f9hb3mevr88y42wdngtn4v"},
		{name: "an empty run_id is rejected", request: "POST /v1/expressions/evaluate", body: `{"expression": "1", "run_id": ""}`, status: 400, code: "invalid_request", pointers: []string{"/run_id"}},
		{
			name: "the run of another workspace is run_not_found",
			setup: func(w *testWorkspace) {
				o := newTestWorkspace(w.t)
				setupFinishedRun(o)
				w.names["run"] = o.names["run"]
			},
			request: "POST /v1/expressions/evaluate", body: `{"expression": "1", "run_id": "$run"}`, status: 404, code: "run_not_found",
		},
	})
}

func setupPreview(w *testWorkspace) {
	w.t.Helper()
	w.call("PUT", "/v1/secrets/token", `{"value": "canary-in-preview"}`).wantStatus(201)
	w.call("PUT", "/v1/variables/region", `{"value": "eu"}`).wantStatus(201)
	w.call("PUT", "/v1/variables/size", `{"value": {"x": 1}}`).wantStatus(201)
}

func setupFinishedRun(w *testWorkspace) {
	w.t.Helper()
	w.workflow("wf", setStep,
		`{"id": "skip", "if": "false", "uses": "data.set", "with": {"values": {}}}`,
		`{"id": "loop", "needs": ["set"], "foreach": "[1, 2]", "steps": [{"id": "inner", "uses": "data.set", "with": {"values": {"n": "${{ item }}"}}}]}`,
		strings.Replace(failStep, `"uses"`, `"on_error": "continue", "needs": ["set"], "uses"`, 1))
	w.runToEnd("run", "wf", `{"payload": {"customer": "Ada"}}`)
}

// A preview sees the recorded data of a run, overridden by the context.
func TestEvaluateWithRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupFinishedRun(w)
	run := w.call("GET", "/v1/runs/$run", "").wantStatus(200)
	w.names["began"] = strings.TrimSuffix(run.str("started_at"), "Z")
	for _, tc := range []struct{ expression, context, want string }{
		{"trigger.payload.customer", `{}`, `"Ada"`},
		{"trigger.type", `{}`, `"manual"`},
		{"steps.set.output.a", `{}`, `1`},
		{"[steps.skip.status, steps.skip.output]", `{}`, `["skipped", null]`},
		{"[steps.fail.status, steps.fail.error.code, steps.fail.output]", `{}`, `["failed", "invalid_input", null]`},
		{"steps.loop.output.items", `{}`, `[{"n": 1}, {"n": 2}]`},
		{"steps.inner", `{}`, `null`},
		{"[run.id, workflow.id, workflow.name, workflow.version]", `{}`, `["$run", "$wf", "Workflow wf", 2]`},
		{"run.started_at", `{}`, `"~$began.*"`},
		{"[steps.set.output.b, steps.set.status, steps.loop.status]", `{"steps": {"set": {"output": {"b": 5}}}}`, `[5, "", "succeeded"]`},
		{"[trigger.payload, trigger.type]", `{"trigger": {"payload": [1]}}`, `[[1], "manual"]`},
		{"[workflow.name, workflow.version]", `{"workflow": {"name": "Other"}}`, `["Other", 2]`},
	} {
		a := w.call("POST", "/v1/expressions/evaluate", fmt.Sprintf(`{"expression": %q, "run_id": "$run", "context": %s}`, tc.expression, tc.context)).wantStatus(200)
		wantContains(t, a.json(), w.expand(`{"valid": true, "value": `+tc.want+`}`))
	}
	before := time.Now().Truncate(time.Second)
	a := w.call("POST", "/v1/expressions/evaluate", `{"expression": "now()"}`).wantStatus(200)
	now, err := time.Parse(time.RFC3339, a.str("value"))
	if err != nil || now.Before(before) || now.After(time.Now()) {
		t.Errorf("now() is %s", a.body)
	}
}
