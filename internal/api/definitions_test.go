package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// invalid definitions with the pointers of their problems.
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
	{"input that is not an object", `{"steps": [{"id": "a", "uses": "data.set", "with": []}]}`, "/steps/0/with", "object"},
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
	{"a secret that would be stored in plain text", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ secrets.token }}"}}}]}`, "/steps/0/with/values/x", "in plain text"},
	{"an id of a trigger that is malformed", `{"triggers": [{"id": "", "type": "manual"}]}`, "/triggers/0/id", ""},
	{"an id of a trigger used twice", `{"triggers": [{"id": "a", "type": "manual"}, {"id": "a", "type": "manual"}]}`, "/triggers/1/id", ""},
	{"an unknown type of trigger", `{"triggers": [{"id": "a", "type": "cron"}]}`, "/triggers/0/type", "manual"},
	{"an unknown type of trigger, with the nearest", `{"triggers": [{"id": "a", "type": "schedul"}]}`, "/triggers/0/type", `did you mean "schedule"?`},
	{"a member that a trigger does not have", `{"triggers": [{"id": "a", "type": "manual", "cron": "0 3 * * *"}]}`, "/triggers/0/cron", "manual cannot have cron"},
	{"a schedule without times", `{"triggers": [{"id": "a", "type": "schedule"}]}`, "/triggers/0/cron", "required"},
	{"a schedule with two kinds of times", `{"triggers": [{"id": "a", "type": "schedule", "cron": "@daily", "every": "1h"}]}`, "/triggers/0/every", "either"},
	{"a cron of six fields", `{"triggers": [{"id": "a", "type": "schedule", "cron": "0 0 3 * * *"}]}`, "/triggers/0/cron", "5 fields"},
	{"a day that never comes", `{"triggers": [{"id": "a", "type": "schedule", "cron": "0 3 31 2 *"}]}`, "/triggers/0/cron", "never"},
	{"an interval that is too short", `{"triggers": [{"id": "a", "type": "schedule", "every": "9s"}]}`, "/triggers/0/every", "at least 10s"},
	{"an interval that is too short, in cron", `{"triggers": [{"id": "a", "type": "schedule", "cron": "@every 1s"}]}`, "/triggers/0/cron", "at least 10s"},
	{"an interval with a time zone", `{"triggers": [{"id": "a", "type": "schedule", "every": "1h", "timezone": "Europe/Paris"}]}`, "/triggers/0/timezone", "interval"},
	{"an unknown time zone", `{"triggers": [{"id": "a", "type": "schedule", "cron": "@daily", "timezone": "Paris"}]}`, "/triggers/0/timezone", "Europe/Paris"},
	{"the time zone of the machine", `{"triggers": [{"id": "a", "type": "schedule", "cron": "@daily", "timezone": "Local"}]}`, "/triggers/0/timezone", ""},
	{"an unknown missed", `{"triggers": [{"id": "a", "type": "schedule", "cron": "@daily", "missed": "all"}]}`, "/triggers/0/missed", "latest"},
	{"a jitter that is not a time", `{"triggers": [{"id": "a", "type": "schedule", "cron": "@daily", "jitter": "much"}]}`, "/triggers/0/jitter", ""},
	{"a jitter of more than an hour", `{"triggers": [{"id": "a", "type": "schedule", "cron": "@daily", "jitter": "61m"}]}`, "/triggers/0/jitter", "1h"},
	{"too many triggers", `{"triggers": [` + strings.Repeat(`{"id": "a", "type": "manual"},`, 50) + `{"id": "a", "type": "manual"}]}`, "/triggers", "50"},
	{"a webhook with odd methods", `{"triggers": [{"id": "a", "type": "webhook", "methods": ["POST", "post", "POST"]}]}`, "/triggers/0/methods/2 /triggers/0/methods/1", ""},
	{"a webhook with no method", `{"triggers": [{"id": "a", "type": "webhook", "methods": []}]}`, "/triggers/0/methods", ""},
	{"a webhook with an unknown answer", `{"triggers": [{"id": "a", "type": "webhook", "respond": "later"}]}`, "/triggers/0/respond", "result"},
	{"a webhook with a rate that is too high", `{"triggers": [{"id": "a", "type": "webhook", "rate": 1000001}]}`, "/triggers/0/rate", ""},
	{"a webhook with an unknown scheme", `{"triggers": [{"id": "a", "type": "webhook", "verify": {"scheme": "gitub"}}]}`, "/triggers/0/verify/scheme", `did you mean "github"?`},
	{"a scheme without its secret", `{"triggers": [{"id": "a", "type": "webhook", "verify": {"scheme": "github"}}]}`, "/triggers/0/verify/secret", "required"},
	{"a secret that is written out", `{"triggers": [{"id": "a", "type": "webhook", "verify": {"scheme": "github", "secret": "hunter2"}}]}`, "/triggers/0/verify/secret", "refer to a secret"},
	{"a secret that does not exist", `{"triggers": [{"id": "a", "type": "webhook", "verify": {"scheme": "github", "secret": "${{ secrets.nothing }}"}}]}`, "/triggers/0/verify/secret", "nothing"},
	{"a member that a scheme does not have", `{"triggers": [{"id": "a", "type": "webhook", "verify": {"scheme": "none", "secret": "x"}}]}`, "/triggers/0/verify/secret", "none does not take secret"},
	{"a signature without a header", `{"triggers": [{"id": "a", "type": "webhook", "verify": {"scheme": "hmac", "secret": "${{ secrets.$secret }}", "algorithm": "md5", "encoding": "hax", "tolerance": "1m"}}]}`,
		"/triggers/0/verify/header /triggers/0/verify/algorithm /triggers/0/verify/encoding /triggers/0/verify/tolerance /triggers/0/verify/secret", ""},
	{"a dedupe with a secret", `{"triggers": [{"id": "a", "type": "webhook", "dedupe": "${{ secrets.x }}"}]}`, "/triggers/0/dedupe", "in plain text"},
	{"a dedupe with a step", `{"triggers": [{"id": "a", "type": "webhook", "dedupe": "${{ steps.x.output }}"}]}`, "/triggers/0/dedupe", "no step has run"},
	{"an event trigger without events", `{"triggers": [{"id": "a", "type": "event"}]}`, "/triggers/0/events", ""},
	{"an event trigger with an unknown event", `{"triggers": [{"id": "a", "type": "event", "events": ["run.fail"]}]}`, "/triggers/0/events/0", `did you mean "run.failed"?`},
	{"an event trigger for an invalid workflow id", `{"triggers": [{"id": "a", "type": "event", "events": ["run.failed"], "workflows": ["all"]}]}`, "/triggers/0/workflows/0", ""},
	{"a poll without anything", `{"triggers": [{"id": "a", "type": "poll"}]}`, "/triggers/0/every /triggers/0/request /triggers/0/items /triggers/0/key", ""},
	{"a poll with a request that http.request would not take", `{"triggers": [{"id": "a", "type": "poll", "every": "1m", "request": {"url": "ftp://example.com", "methd": "GET"}, "items": "response.body", "key": "item.id"}]}`,
		"/triggers/0/request/methd", "methd"},
	{"a poll whose expressions use what there is not", `{"triggers": [{"id": "a", "type": "poll", "every": "1m", "request": {"url": "https://example.com/${{ response.status }}"}, "items": "item.x", "key": "secrets.x", "cursor": "steps.a.output"}]}`,
		"/triggers/0/request /triggers/0/items /triggers/0/key /triggers/0/cursor", ""},
	{"a step that uses what only a poll has", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ response.body }}", "y": "${{ cursor }}"}}}]}`, "/steps/0/with /steps/0/with", "poll"},
	{"every problem at once", `{"triggers": [{"id": "a", "type": "cron"}], "steps": [{"id": "A", "uses": "data.sett"}, {"id": "b", "uses": "flow.wait", "needs": ["c"], "join": "x",
		"with": {"for": "soon"}, "if": "1 +"}]}`, "/triggers/0/type /steps/0/id /steps/0/uses /steps/1/needs/0 /steps/1/join /steps/1/if /steps/1/with/for", ""},
}

func TestInvalidDefinitions(t *testing.T) {
	var scenarios []scenario
	for _, tc := range invalidDefinitions {
		scenarios = append(scenarios, scenario{
			name: "workflow_invalid: " + tc.name, setup: func(w *testWorkspace) { w.workflow("wf") },
			request: "PATCH /v1/workflows/$wf", body: tc.body, status: 422, code: "workflow_invalid", pointers: strings.Fields(tc.points),
			after: func(w *testWorkspace, a *response) {
				if !strings.Contains(string(unescaped(a.body)), tc.says) {
					w.t.Errorf("%s does not say %q", a.body, tc.says)
				}
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 1, "steps": [], "triggers": []}`)
			},
		})
	}
	runScenarios(t, scenarios)
}

// unescaped replaces escaped quotes in JSON text.
func unescaped(body []byte) []byte { return []byte(strings.ReplaceAll(string(body), `\"`, `"`)) }

func TestValidate(t *testing.T) {
	var scenarios []scenario
	for _, tc := range invalidDefinitions {
		scenarios = append(scenarios, scenario{
			name: "validate answers 200 with every problem: " + tc.name, setup: func(w *testWorkspace) { w.workflow("wf") },
			request: "POST /v1/workflows/$wf/validate", body: tc.body, lenient: true,
			status: 200, members: "valid problems warnings", contains: `{"valid": false}`,
			after: func(w *testWorkspace, a *response) { checkProblems(w, a, strings.Fields(tc.points)) },
		})
	}
	runScenarios(t, append(scenarios,
		scenario{
			name:  "validate without a body checks the stored definition",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", scope: "write",
			status: 200, contains: `{"valid": true, "problems": []}`,
		},
		scenario{
			name:  "validate takes parts that are left out from the stored definition",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", body: `{"triggers": [{"id": "a", "type": "manual"}], "settings": {}}`,
			status: 200, contains: `{"valid": true, "problems": []}`,
		},
		scenario{
			name:  "validate saves nothing",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", body: `{"steps": []}`, status: 200, contains: `{"valid": true}`,
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 2, "steps": [{"id": "set"}]}`)
			},
		},
		scenario{
			name:  "validate rejects a body with an unknown member",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", body: `{"name": "n", "steps": []}`,
			status: 400, code: "invalid_request", pointers: []string{"/name"},
		},
		scenario{
			name:  "validate rejects values of the wrong type",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", body: `{"steps": {}}`,
			status: 400, code: "invalid_request", pointers: []string{"/steps"},
		},
		scenario{
			name:  "validate rejects null",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", body: `{"settings": null}`,
			status: 400, code: "invalid_request", pointers: []string{"/settings"},
		},
		scenario{
			name:    "validate of an unknown workflow is workflow_not_found",
			request: "POST /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/validate", status: 404, code: "workflow_not_found",
		},
		scenario{
			name:  "validate says that there are too many steps to save",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", body: `{"steps": [` + stepList(20_000) + `]}`, lenient: true,
			status: 200, contains: `{"valid": false, "problems": [{"pointer": "/steps", "message": "~.*500 steps.*"}]}`,
		},
	))
}

func checkProblems(w *testWorkspace, a *response, points []string) {
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

// stepList returns n plain steps.
func stepList(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"id": "s%d", "uses": "data.set", "with": {"values": {}}}`, i)
	}
	return strings.Join(list, ",")
}

func TestStepLimitPerPlan(t *testing.T) {
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
			w := sharedServer(t).newTestWorkspaceWith(t, tc.plan)
			w.workflow("wf")
			w.patch("wf", `{"steps": [`+stepList(tc.limit)+`]}`)
			a := w.call("PATCH", "/v1/workflows/$wf", `{"steps": [`+stepList(tc.limit+1)+`]}`).wantStatus(403, "plan_limit_exceeded")
			if !strings.Contains(a.message(), fmt.Sprint(tc.limit)) {
				t.Errorf("the message is %q", a.message())
			}
		})
	}
}
