package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// setupLoop creates a run with nested loops.
func setupLoop(w *testWorkspace) {
	w.workflow("wf", `{"id": "before", "uses": "data.set", "with": {"values": {"x": 1}}}`,
		`{"id": "outer", "foreach": "${{ ['a', 'b'] }}", "steps": [
			{"id": "mid", "uses": "data.set", "with": {"values": {"m": "${{ item }}"}}},
			{"id": "inner", "foreach": "${{ [10, 20, 30] }}", "steps": [
				{"id": "leaf", "uses": "data.set", "with": {"values": {"v": "${{ item + index }}"}}},
				{"id": "last", "uses": "data.set", "with": {"values": {"w": "${{ steps.leaf.output.v }}"}}}]}]}`)
	w.runToEnd("run", "wf", `{"payload": {"p": "q"}}`)
}

func TestEvaluateList(t *testing.T) {
	many := func(n int) string {
		return `{"expressions": [` + strings.TrimSuffix(strings.Repeat(`{"expression": "1"},`, n), ",") + `]}`
	}
	const call = "POST /v1/expressions/evaluate"
	runScenarios(t, []scenario{
		{
			name:    "each of the list has its own answer, in the same order",
			request: call, scope: "read", body: `{"expressions": [{"expression": "1 + 1"}, {"expression": "1 +"}, {"template": {"a": "${{ trigger.payload.n }}"}}, {"expression": "1 / trigger.payload.z"}],
				"context": {"trigger": {"payload": {"n": 5, "z": 0}}}}`, status: 200, members: "results",
			contains: `{"results": [{"valid": true, "value": 2, "type": "number"}, {"valid": false, "error": {"line": 1}}, {"value": {"a": 5}}, {"valid": false}]}`,
		},
		{
			name:  "a step inside of loops sees its own round",
			setup: setupLoop, request: call,
			body: `{"run_id": "$run", "step_id": "outer[1].inner[2].last", "expressions": [{"expression": "item"}, {"expression": "index"},
				{"expression": "steps.leaf.output.v"}, {"expression": "steps.mid.output.m"}, {"expression": "steps.before.output.x"}, {"expression": "trigger.payload.p"}]}`,
			status: 200, contains: `{"results": [{"value": 30}, {"value": 2}, {"value": 32}, {"value": "b"}, {"value": 1}, {"value": "q"}]}`,
		},
		{
			name:  "so does one that asks for all steps",
			setup: setupLoop, request: call,
			body:   `{"run_id": "$run", "step_id": "outer[0].inner[1].last", "expression": "steps[\"le\" + \"af\"].output.v"}`,
			status: 200, contains: `{"valid": true, "value": 21}`,
		},
		{
			name:  "a step outside of loops sees no rounds",
			setup: setupLoop, request: call,
			body:   `{"run_id": "$run", "step_id": "outer", "expressions": [{"expression": "steps.leaf.output.v"}, {"expression": "steps.before.output.x"}]}`,
			status: 200, contains: `{"results": [{"value": null}, {"value": 1}]}`,
		},
		{
			name:  "pins of a workflow stand in for outputs",
			setup: func(w *testWorkspace) { setupLoop(w); w.patch("wf", `{"pinned": {"before": {"x": 8}}}`) }, request: call,
			body:   `{"run_id": "$run", "workflow_id": "$wf", "expressions": [{"expression": "steps.before.output.x"}, {"expression": "trigger.payload.p"}]}`,
			status: 200, contains: `{"results": [{"value": 8}, {"value": "q"}]}`,
		},
		{
			name: "secrets are not shown", request: call, body: `{"expressions": [{"expression": "secrets.key"}]}`,
			status: 200, contains: `{"results": [{"value": "***"}]}`,
		},
		{
			name: "a list shares the work that one alone may do", request: call,
			body:   `{"expressions": [{"expression": "count(1..90000, # * # > 1)"}, {"expression": "1"}, {"expression": "count(1..90000, # * # > 1)"}]}`,
			status: 200, contains: `{"results": [{"valid": true, "value": 89999}, {"valid": true}, {"valid": false, "error": {"code": "expression_cost_exceeded"}}]}`,
		},
		{name: "a list has up to 50", request: call, body: many(50), status: 200},
		{name: "and not more", request: call, body: many(51), lenient: true, status: 400, code: "invalid_request", pointers: []string{"/expressions"}},
		{name: "and not none", request: call, body: many(0), lenient: true, status: 400, code: "invalid_request", pointers: []string{"/expressions"}},
		{
			name: "a list and an expression are too much", request: call, body: `{"expression": "1", "expressions": [{"expression": "1"}]}`, lenient: true,
			status: 400, code: "invalid_request", pointers: []string{"/expressions"},
		},
		{
			name: "an empty entry is rejected", request: call, body: `{"expressions": [{"expression": "1"}, {}]}`, lenient: true,
			status: 400, code: "invalid_request", pointers: []string{"/expressions/1/expression"},
		},
		{
			name: "an invalid path is rejected", setup: setupLoop, request: call, body: `{"run_id": "$run", "step_id": "outer[x].leaf", "expression": "1"}`,
			status: 400, code: "invalid_request", pointers: []string{"/step_id"},
		},
		{
			name: "a path with more rounds than loops can have is rejected", setup: setupLoop, request: call,
			body:   `{"run_id": "$run", "step_id": "` + strings.Repeat("outer[0].", 20_000) + `leaf", "expression": "steps.leaf"}`,
			status: 400, code: "invalid_request", pointers: []string{"/step_id"},
		},
		{
			name: "a path without a run is rejected", request: call, body: `{"step_id": "a", "expression": "1"}`,
			status: 400, code: "invalid_request", pointers: []string{"/step_id"},
		},
	})
}

func TestStepTestInsideRound(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupLoop(w)
	for n, want := range []int{10, 21, 32} {
		tried := w.call("POST", fmt.Sprintf("/v1/workflows/$wf/steps/outer%%5B0%%5D.inner%%5B%d%%5D.leaf/test", n), `{"run_id": "$run"}`).wantStatus(200)
		wantContains(t, tried.json(), fmt.Sprintf(`{"output": {"v": %d}, "sources": [{"name": "trigger", "source": "run"}, {"name": "item", "source": "run"}, {"name": "index", "source": "run"}]}`, want))
	}
}

func TestStepTestInsideRepeat(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", `{"id": "count", "repeat": {"until": "index == 2"}, "steps": [
		{"id": "next", "uses": "data.set", "with": {"values": {"n": "${{ (previous.n ?? 5) * 2 }}"}}}]}`)
	w.runToEnd("run", "wf", `{}`)
	for n, want := range []int{10, 20, 40} {
		tried := w.call("POST", fmt.Sprintf("/v1/workflows/$wf/steps/count%%5B%d%%5D.next/test", n), `{"run_id": "$run"}`).wantStatus(200)
		wantContains(t, tried.json(), fmt.Sprintf(`{"output": {"n": %d}, "sources": [{"name": "trigger", "source": "run"}, {"name": "previous", "source": "run"}]}`, want))
	}
}

// Lookups work for more names than a statement can have parameters. Not
// parallel: reads have a time limit.
func TestEvaluateManySteps(t *testing.T) {
	w := newTestWorkspace(t)
	setupLoop(w)
	var list []string
	for n := range 33 {
		var values []string
		for i := range 1000 {
			values = append(values, fmt.Sprintf(`"${{ steps.s%d.output }}"`, 1000*n+i))
		}
		list = append(list, `{"template": [`+strings.Join(values, ",")+`]}`)
	}
	list = append(list, `{"expression": "steps.before.output.x"}`)
	got := w.call("POST", "/v1/expressions/evaluate", `{"run_id": "$run", "expressions": [`+strings.Join(list, ",")+`]}`).wantStatus(200)
	results := got.object()["results"].([]any)
	if last := results[len(results)-1].(map[string]any); fmt.Sprint(last["value"]) != "1" {
		t.Errorf("the last is %v", last)
	}
}
