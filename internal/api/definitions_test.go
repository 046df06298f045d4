package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// definitions that cannot be saved, with the places of their problems.
var invalidDefinitions = []struct{ name, body, points, says string }{
	{"an id that is malformed", `{"steps": [{"id": "Set", "uses": "data.set", "with": {"values": {}}}]}`, "/steps/0/id", "must start with a letter"},
	{"an id that is missing", `{"steps": [{"uses": "data.set", "with": {"values": {}}}]}`, "/steps/0/id", ""},
	{"an id of 64 characters", `{"steps": [{"id": "a` + strings.Repeat("b", 63) + `", "uses": "data.set", "with": {"values": {}}}]}`, "/steps/0/id", ""},
	{"an id used twice", `{"steps": [` + setStep + `, ` + setStep + `]}`, "/steps/1/id", `"set"`},
	{"a name of 201 characters", `{"steps": [{"id": "a", "name": "` + strings.Repeat("ü", 201) + `", "uses": "data.set", "with": {"values": {}}}]}`, "/steps/0/name", "200"},
	{"an unknown action, with the nearest one", `{"steps": [{"id": "a", "uses": "data.sett", "with": {"values": {}}}]}`, "/steps/0/uses", "data.set"},
	{"an action that is missing", `{"steps": [{"id": "a"}]}`, "/steps/0/uses", ""},
	{"input that an action does not take", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}, "more": 1}}]}`, "/steps/0/with/more", "unknown"},
	{"input that an action needs", `{"steps": [{"id": "a", "uses": "data.set", "with": {}}]}`, "/steps/0/with/values", "required"},
	{"input of the wrong type", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": []}}]}`, "/steps/0/with/values", "object"},
	{"input that is no object", `{"steps": [{"id": "a", "uses": "data.set", "with": []}]}`, "/steps/0/with", "object"},
	{"a wait for no time", `{"steps": [{"id": "a", "uses": "flow.wait", "with": {}}]}`, "/steps/0/with", ""},
	{"a wait for two times", `{"steps": [{"id": "a", "uses": "flow.wait", "with": {"for": "1s", "until": "2026-11-15T09:30:00Z"}}]}`, "/steps/0/with", ""},
	{"a wait for a malformed time", `{"steps": [{"id": "a", "uses": "flow.wait", "with": {"for": "soon"}}]}`, "/steps/0/with/for", ""},
	{"a wait of more than 366 days", `{"steps": [{"id": "a", "uses": "flow.wait", "with": {"for": "367d"}}]}`, "/steps/0/with/for", "366"},
	{"a wait until a malformed moment", `{"steps": [{"id": "a", "uses": "flow.wait", "with": {"until": "tomorrow"}}]}`, "/steps/0/with/until", ""},
	{"a script that does not compile", `{"steps": [{"id": "a", "uses": "code.js", "with": {"code": "const a = 1\nreturn a b"}}]}`, "/steps/0/with/code", "SyntaxError: Unexpected identifier (line 2, column 10)"},
	{"a script that leaves its function", `{"steps": [{"id": "a", "uses": "code.js", "with": {"code": "}); (function () {"}}]}`, "/steps/0/with/code", "closing bracket"},
	{"a script that is missing", `{"steps": [{"id": "a", "uses": "code.js", "with": {"input": 1}}]}`, "/steps/0/with/code", "required"},
	{"a step that needs an unknown one, with the nearest", `{"steps": [` + setStep + `, {"id": "b", "uses": "data.set", "with": {"values": {}}, "needs": ["sett"]}]}`, "/steps/1/needs/0", `did you mean "set"?`},
	{"a step that needs itself", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}}, "needs": ["a"]}]}`, "/steps/0/needs/0", ""},
	{"a step that needs one twice", `{"steps": [` + setStep + `, {"id": "b", "uses": "data.set", "with": {"values": {}}, "needs": ["set", "set"]}]}`, "/steps/1/needs/1", ""},
	{"steps that need each other in a circle", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}}, "needs": ["b"]},
		{"id": "b", "uses": "data.set", "with": {"values": {}}, "needs": ["a"]}]}`, "/steps/0/needs", "a → b → a"},
	{"an unknown join", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}}, "join": "some"}]}`, "/steps/0/join", ""},
	{"an unknown on_error", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}}, "on_error": "retry"}]}`, "/steps/0/on_error", ""},
	{"an expression that does not compile", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ 1 + }}"}}}]}`, "/steps/0/with/values/x", ""},
	{"an expression that does not end", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x/y~z": "${{ 1"}}}]}`, "/steps/0/with/values/x~1y~0z", ""},
	{"a condition that does not compile", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}}, "if": "1 +"}]}`, "/steps/0/if", ""},
	{"an expression about an unknown step", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ steps.b.output }}"}}}]}`, "/steps/0/with/values/x", `"b"`},
	{"an expression about a step that does not come before", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ steps.set.output }}"}}, "needs": []}, ` + setStep + `]}`, "/steps/0/with/values/x", "needs"},
	{"an expression about a secret that does not exist", `{"steps": [{"id": "a", "uses": "http.request", "with": {"url": "https://example.com", "headers": {"x": "${{ secrets.token }}"}}}]}`, "/steps/0/with/headers/x", "token"},
	{"an expression about a variable that does not exist", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ vars.region }}"}}}]}`, "/steps/0/with/values/x", "region"},
	{"a secret that would be kept in the open", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ secrets.token }}"}}}]}`, "/steps/0/with/values/x", "in the open"},
	{"an id of a trigger that is malformed", `{"triggers": [{"id": "", "type": "manual"}]}`, "/triggers/0/id", ""},
	{"an id of a trigger used twice", `{"triggers": [{"id": "a", "type": "manual"}, {"id": "a", "type": "manual"}]}`, "/triggers/1/id", ""},
	{"an unknown type of trigger", `{"triggers": [{"id": "a", "type": "cron"}]}`, "/triggers/0/type", "manual"},
	{"every problem at once", `{"triggers": [{"id": "a", "type": "cron"}], "steps": [{"id": "A", "uses": "data.sett"}, {"id": "b", "uses": "flow.wait", "needs": ["c"], "join": "x",
		"with": {"for": "soon"}, "if": "1 +"}]}`, "/triggers/0/type /steps/0/id /steps/0/uses /steps/1/needs/0 /steps/1/join /steps/1/if /steps/1/with/for", ""},
}

func TestDefinitionsThatCannotBeSaved(t *testing.T) {
	var scenarios []scenario
	for _, tc := range invalidDefinitions {
		scenarios = append(scenarios, scenario{
			name: "workflow_invalid: " + tc.name, given: func(w *world) { w.workflow("wf") },
			call: "PATCH /v1/workflows/$wf", body: tc.body, status: 422, code: "workflow_invalid", points: strings.Fields(tc.points),
			then: func(w *world, a *answer) {
				if !strings.Contains(string(unescaped(a.body)), tc.says) {
					w.t.Errorf("%s does not say %q", a.body, tc.says)
				}
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 1, "steps": [], "triggers": []}`)
			},
		})
	}
	runScenarios(t, scenarios)
}

// unescaped makes quotes inside JSON text plain again.
func unescaped(body []byte) []byte { return []byte(strings.ReplaceAll(string(body), `\"`, `"`)) }

func TestValidate(t *testing.T) {
	var scenarios []scenario
	for _, tc := range invalidDefinitions {
		scenarios = append(scenarios, scenario{
			name: "validate answers 200 with every problem: " + tc.name, given: func(w *world) { w.workflow("wf") },
			call: "POST /v1/workflows/$wf/validate", body: tc.body, loose: true,
			status: 200, keys: "valid problems", answer: `{"valid": false}`,
			then: func(w *world, a *answer) { checkProblems(w, a, strings.Fields(tc.points)) },
		})
	}
	runScenarios(t, append(scenarios,
		scenario{
			name:  "validate without a body checks the stored definition",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/validate", as: "write",
			status: 200, answer: `{"valid": true, "problems": []}`,
		},
		scenario{
			name:  "validate takes parts that are left out from the stored definition",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/validate", body: `{"triggers": [{"id": "a", "type": "manual"}], "settings": {}}`,
			status: 200, answer: `{"valid": true, "problems": []}`,
		},
		scenario{
			name:  "validate saves nothing",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/validate", body: `{"steps": []}`, status: 200, answer: `{"valid": true}`,
			then: func(w *world, _ *answer) {
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 2, "steps": [{"id": "set"}]}`)
			},
		},
		scenario{
			name:  "validate refuses a body with an unknown member",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/validate", body: `{"name": "n", "steps": []}`,
			status: 400, code: "invalid_request", points: []string{"/name"},
		},
		scenario{
			name:  "validate refuses values of the wrong type",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/validate", body: `{"steps": {}}`,
			status: 400, code: "invalid_request", points: []string{"/steps"},
		},
		scenario{
			name:  "validate refuses null",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/validate", body: `{"settings": null}`,
			status: 400, code: "invalid_request", points: []string{"/settings"},
		},
		scenario{
			name: "validate of an unknown workflow is workflow_not_found",
			call: "POST /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/validate", status: 404, code: "workflow_not_found",
		},
		scenario{
			name:  "validate says that there are too many steps to save",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/validate", body: `{"steps": [` + steps(20_000) + `]}`, loose: true,
			status: 200, answer: `{"valid": false, "problems": [{"pointer": "/steps", "message": "~.*500 steps.*"}]}`,
		},
	))
}

func checkProblems(w *world, a *answer, points []string) {
	w.t.Helper()
	var result struct {
		Problems []struct{ Pointer, Message, Hint string }
	}
	if err := json.Unmarshal(a.body, &result); err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, problem := range result.Problems {
		got = append(got, problem.Pointer)
	}
	if fmt.Sprint(got) != fmt.Sprint(points) {
		w.t.Errorf("problems at %v, want %v", got, points)
	}
}

// steps writes n plain steps.
func steps(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"id": "s%d", "uses": "data.set", "with": {"values": {}}}`, i)
	}
	return strings.Join(list, ",")
}

func TestStepsPerPlan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		plan  string
		limit int
	}{
		{`{"name": "Free"}`, 50},
		{`{"name": "Pro", "plan": "pro"}`, 200},
		{`{"name": "Big", "plan": "enterprise", "requests_per_minute": 1000}`, 500},
	} {
		t.Run(fmt.Sprintf("%d steps are allowed, one more is plan_limit_exceeded", tc.limit), func(t *testing.T) {
			t.Parallel()
			w := sharedServer(t).newWorldOn(t, tc.plan)
			w.workflow("wf")
			w.patch("wf", `{"steps": [`+steps(tc.limit)+`]}`)
			a := w.call("PATCH", "/v1/workflows/$wf", `{"steps": [`+steps(tc.limit+1)+`]}`).want(403, "plan_limit_exceeded")
			if !strings.Contains(a.message(), fmt.Sprint(tc.limit)) {
				t.Errorf("the message is %q", a.message())
			}
		})
	}
}
