package api_test

import (
	"net/http"
	"testing"
)

const draftBody = `"definition": {"steps": [
	{"id": "first", "uses": "data.set", "with": {"values": {"a": 1}}},
	{"id": "second", "uses": "data.set", "with": {"values": {"b": "${{ steps.first.output.a + 1 }}"}}}]}`

// runDraft starts a draft run and waits for its end.
func (w *testWorkspace) runDraft(body string) *response {
	w.t.Helper()
	return w.call("POST", "/v1/workflows/$wf/runs", body, "Prefer", "wait=60").wantStatus(http.StatusOK)
}

func TestDraftRuns(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep)
	w.patch("wf", `{"pinned": {"first": {"a": 41}}}`)

	plain := w.runDraft(`{` + draftBody + `}`)
	wantContains(t, plain.json(), `{"status": "succeeded", "draft": true, "workflow_version": 2, "trigger": {"type": "manual"},
		"steps": [{"step_id": "first", "pinned": false}, {"step_id": "second", "output": {"b": 2}}]}`)

	pinned := w.runDraft(`{"use_pinned": true, ` + draftBody + `}`)
	wantContains(t, pinned.json(), `{"status": "succeeded", "steps": [
		{"step_id": "first", "status": "succeeded", "pinned": true, "output": {"a": 41}, "input": {},
			"reason": "used its pinned output instead of being executed"},
		{"step_id": "second", "pinned": false, "output": {"b": 42}}]}`)

	other := w.runDraft(`{"use_pinned": true, "pinned": {"first": {"a": 1}, "second": {"c": 3}}, ` + draftBody + `}`)
	wantContains(t, other.json(), `{"steps": [{"step_id": "first", "pinned": true}, {"step_id": "second", "pinned": true, "output": {"c": 3}}]}`)

	w.names["run"] = pinned.str("id")
	wantContains(t, w.call("GET", "/v1/runs/$run/definition", "").wantStatus(http.StatusOK).json(),
		w.expand(`{"run_id": "$run", "draft": true, "workflow_id": "$wf", "steps": [{"id": "first"}, {"id": "second"}], "triggers": [], "settings": {}}`))
	wantContains(t, w.call("GET", "/v1/runs?text=$run", "").wantStatus(http.StatusOK).json(), w.expand(`{"data": [{"id": "$run", "draft": true}]}`))

	w.runToEnd("normal", "wf", "")
	wantContains(t, w.call("GET", "/v1/runs/$normal", "").json(), `{"draft": false, "steps": [{"step_id": "set"}]}`)
	wantContains(t, w.call("GET", "/v1/runs/$normal/definition", "").wantStatus(http.StatusOK).json(), `{"draft": false, "workflow_version": 2, "steps": [{"id": "set"}]}`)
	wantContains(t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 2, "steps": [{"id": "set"}]}`)
}

// A draft run can pretend that a trigger of the draft was fired, with all that its steps see.
func TestDraftRunOfTrigger(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	w.patch("wf", `{"pinned": {"@hook": {"payload": {"never": "sent"}}}}`)
	definition := `"definition": {"triggers": [{"id": "hook", "type": "webhook"}], "steps": [` + echoStep + `]}`
	sent := `"payload": {"n": 1}, "headers": {"x-event": "order"}, "query": {"q": "1"}`
	wantContains(t, w.runDraft(`{"use_pinned": true, "trigger_id": "hook", `+sent+`, `+definition+`}`).json(),
		`{"trigger": {"type": "webhook", "id": "hook", "test": true}, "steps": [{"output": {"trigger":
			{"type": "webhook", "id": "hook", "payload": {"n": 1}, "headers": {"x-event": "order"}, "query": {"q": "1"}}}}]}`)
	for body, pointer := range map[string]string{
		`{"trigger_id": "none", ` + definition + `}`:              "/trigger_id",
		`{"trigger_id": "hook"}`:                                  "/trigger_id",
		`{"headers": {}, ` + definition + `}`:                     "/trigger_id",
		`{"trigger_id": "hook", "query": [], ` + definition + `}`: "/query",
	} {
		c := w.client
		c.lenient = true
		a := c.call("POST", w.expand("/v1/workflows/$wf/runs"), body).wantStatus(400, "invalid_request")
		if got := a.pointers(); len(got) != 1 || got[0] != pointer {
			t.Errorf("%s: problems at %q", body, got)
		}
	}
}

func TestDraftRunsOfLoops(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	const loop = `"definition": {"steps": [{"id": "lines", "foreach": "${{ [1, 2] }}", "steps": [
		{"id": "price", "uses": "data.set", "with": {"values": {"n": "${{ item }}"}}}]},
		{"id": "sum", "uses": "data.set", "with": {"values": {"all": "${{ steps.lines.output }}"}}}]}`
	wantContains(t, w.runDraft(`{"use_pinned": true, "pinned": {"lines": {"items": []}}, `+loop+`}`).json(),
		`{"status": "succeeded", "steps": [{"step_id": "lines", "pinned": true}, {"step_id": "sum", "output": {"all": {"items": []}}}]}`)
	wantContains(t, w.runDraft(`{"use_pinned": true, "pinned": {"price": {"n": 7}}, `+loop+`}`).json(),
		`{"status": "succeeded", "steps": [{"step_id": "lines", "pinned": false}, {"step_id": "lines[0].price", "pinned": true},
		{"step_id": "lines[1].price", "pinned": true}, {"step_id": "sum", "output": {"all": {"items": [{"n": 7}, {"n": 7}]}}}]}`)
}

func TestRetryDraftRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	failed := w.runDraft(`{"use_pinned": true, "pinned": {"first": {"a": 5}}, "definition": {"steps": [
		{"id": "first", "uses": "data.set", "with": {"values": {}}},
		{"id": "stop", "uses": "flow.stop", "with": {"status": "failed", "message": "no"}}]}}`)
	w.names["run"] = failed.str("id")
	again := w.call("POST", "/v1/runs/$run/retry", "", "Prefer", "wait=60").wantStatus(http.StatusOK)
	wantContains(t, again.json(), w.expand(`{"status": "failed", "draft": true, "retry_of": "$run", "steps": [{"step_id": "first", "output": {"a": 5}}, {"step_id": "stop"}]}`))
}

func TestDraftRunsDoNotFireTriggers(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep)
	w.workflow("handler", setStep)
	w.patch("handler", `{"state": "active", "triggers": [{"id": "after", "type": "event", "events": ["run.succeeded"], "workflows": ["$wf"]}]}`)
	w.runDraft(`{` + draftBody + `}`)
	w.runToEnd("normal", "wf", "")
	eventually(t, "the handler runs", func() bool {
		return len(w.call("GET", "/v1/workflows/$handler/runs?status=succeeded", "").items()) > 0
	})
	if runs := w.call("GET", "/v1/workflows/$handler/runs", "").items(); len(runs) != 1 {
		t.Errorf("the handler ran %d times, want once: for the run that is no draft", len(runs))
	}
}

func TestInvalidDraftRuns(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a draft needs the scope write beside execute",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", scope: "execute", body: `{` + draftBody + `}`,
			status: 403, code: "insufficient_scope", message: "write",
		},
		{
			name:  "an invalid draft is rejected with pointers into it",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", body: `{"definition": {"steps": [{"id": "a", "uses": "data.sett"}]}}`,
			status: 422, code: "workflow_invalid", pointers: []string{"/definition/steps/0/uses"},
		},
		{
			name:  "an ordinary run never uses pins",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", body: `{"use_pinned": true}`,
			status: 400, code: "invalid_request", pointers: []string{"/use_pinned"},
		},
		{
			name:    "a draft of a paused workflow is not run",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"state": "paused"}`) },
			request: "POST /v1/workflows/$wf/runs", body: `{"definition": {}}`, status: 409, code: "workflow_paused",
		},
		{
			name:  "a step of a draft needs the scope write beside execute",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/steps/first/test", scope: "execute", body: `{` + draftBody + `}`,
			status: 403, code: "insufficient_scope",
		},
		{
			name:  "a step of a draft can be tested while others are invalid",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/steps/b/test",
			body: `{"use_pinned": true, "pinned": {"a": {"n": 4}}, "definition": {"steps": [{"id": "a", "uses": "no.such"},
				{"id": "b", "uses": "data.set", "with": {"values": {"n": "${{ steps.a.output.n }}"}}}]}}`,
			status: 200, contains: `{"status": "succeeded", "output": {"n": 4}, "sources": [{"name": "trigger", "source": "none"}, {"name": "steps.a", "source": "pinned"}]}`,
		},
		{
			name:  "but the step itself has to be",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/steps/b/test",
			body:   `{"definition": {"steps": [{"id": "a", "uses": "no.such"}, {"id": "b", "uses": "data.set"}]}}`,
			status: 422, code: "workflow_invalid", pointers: []string{"/definition/steps/1/with/values"},
		},
		{
			name:  "a step that the draft does not have is not found",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/steps/set/test", body: `{` + draftBody + `}`, status: 404, code: "step_not_found",
		},
		{
			name:  "what is given counts before what is pinned",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/steps/second/test",
			body:   `{"use_pinned": true, "pinned": {"first": {"a": 1}}, "context": {"steps": {"first": {"output": {"a": 9}}}}, ` + draftBody + `}`,
			status: 200, contains: `{"output": {"b": 10}, "sources": [{"name": "trigger"}, {"name": "steps.first", "source": "given"}]}`,
		},
	})
}
