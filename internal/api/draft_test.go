package api_test

import (
	"net/http"
	"testing"
)

const draftBody = `"definition": {"steps": [
	{"id": "first", "uses": "data.set", "with": {"values": {"a": 1}}},
	{"id": "second", "uses": "data.set", "with": {"values": {"b": "${{ steps.first.output.a + 1 }}"}}}]}`

// draft starts a run of a draft and waits for its end.
func (w *world) draft(body string) *answer {
	w.t.Helper()
	return w.call("POST", "/v1/workflows/$wf/runs", body, "Prefer", "wait=30").want(http.StatusOK)
}

func TestDraftRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", setStep)
	w.patch("wf", `{"pinned": {"first": {"a": 41}}}`)

	plain := w.draft(`{` + draftBody + `}`)
	wantContains(t, plain.json(), `{"status": "succeeded", "draft": true, "workflow_version": 2, "trigger": {"type": "manual"},
		"steps": [{"step_id": "first", "pinned": false}, {"step_id": "second", "output": {"b": 2}}]}`)

	pinned := w.draft(`{"use_pinned": true, ` + draftBody + `}`)
	wantContains(t, pinned.json(), `{"status": "succeeded", "steps": [
		{"step_id": "first", "status": "succeeded", "pinned": true, "output": {"a": 41}, "input": {}},
		{"step_id": "second", "pinned": false, "output": {"b": 42}}]}`)

	other := w.draft(`{"use_pinned": true, "pinned": {"first": {"a": 1}, "second": {"c": 3}}, ` + draftBody + `}`)
	wantContains(t, other.json(), `{"steps": [{"step_id": "first", "pinned": true}, {"step_id": "second", "pinned": true, "output": {"c": 3}}]}`)

	w.names["run"] = pinned.text("id")
	wantContains(t, w.call("GET", "/v1/runs/$run/definition", "").want(http.StatusOK).json(),
		w.fill(`{"run_id": "$run", "draft": true, "workflow_id": "$wf", "steps": [{"id": "first"}, {"id": "second"}], "triggers": [], "settings": {}}`))
	wantContains(t, w.call("GET", "/v1/runs?text=$run", "").want(http.StatusOK).json(), w.fill(`{"data": [{"id": "$run", "draft": true}]}`))

	w.finish("normal", "wf", "")
	wantContains(t, w.call("GET", "/v1/runs/$normal", "").json(), `{"draft": false, "steps": [{"step_id": "set"}]}`)
	wantContains(t, w.call("GET", "/v1/runs/$normal/definition", "").want(http.StatusOK).json(), `{"draft": false, "workflow_version": 2, "steps": [{"id": "set"}]}`)
	wantContains(t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 2, "steps": [{"id": "set"}]}`)
}

func TestDraftRunsOfLoops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf")
	const loop = `"definition": {"steps": [{"id": "lines", "foreach": "${{ [1, 2] }}", "steps": [
		{"id": "price", "uses": "data.set", "with": {"values": {"n": "${{ item }}"}}}]},
		{"id": "sum", "uses": "data.set", "with": {"values": {"all": "${{ steps.lines.output }}"}}}]}`
	wantContains(t, w.draft(`{"use_pinned": true, "pinned": {"lines": {"items": []}}, `+loop+`}`).json(),
		`{"status": "succeeded", "steps": [{"step_id": "lines", "pinned": true}, {"step_id": "sum", "output": {"all": {"items": []}}}]}`)
	wantContains(t, w.draft(`{"use_pinned": true, "pinned": {"price": {"n": 7}}, `+loop+`}`).json(),
		`{"status": "succeeded", "steps": [{"step_id": "lines", "pinned": false}, {"step_id": "lines[0].price", "pinned": true},
		{"step_id": "lines[1].price", "pinned": true}, {"step_id": "sum", "output": {"all": {"items": [{"n": 7}, {"n": 7}]}}}]}`)
}

func TestRetryOfADraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf")
	failed := w.draft(`{"use_pinned": true, "pinned": {"first": {"a": 5}}, "definition": {"steps": [
		{"id": "first", "uses": "data.set", "with": {"values": {}}},
		{"id": "stop", "uses": "flow.stop", "with": {"status": "failed", "message": "no"}}]}}`)
	w.names["run"] = failed.text("id")
	again := w.call("POST", "/v1/runs/$run/retry", "", "Prefer", "wait=30").want(http.StatusOK)
	wantContains(t, again.json(), w.fill(`{"status": "failed", "draft": true, "retry_of": "$run", "steps": [{"step_id": "first", "output": {"a": 5}}, {"step_id": "stop"}]}`))
}

func TestDraftsFireNoTriggers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", setStep)
	w.workflow("handler", setStep)
	w.patch("handler", `{"state": "active", "triggers": [{"id": "after", "type": "event", "events": ["run.succeeded"], "workflows": ["$wf"]}]}`)
	w.draft(`{` + draftBody + `}`)
	w.finish("normal", "wf", "")
	eventually(t, "the handler runs", func() bool {
		return len(w.call("GET", "/v1/workflows/$handler/runs?status=succeeded", "").items()) > 0
	})
	if runs := w.call("GET", "/v1/workflows/$handler/runs", "").items(); len(runs) != 1 {
		t.Errorf("the handler ran %d times, want once: for the run that is no draft", len(runs))
	}
}

func TestDraftRunsAreChecked(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a draft needs the scope write beside execute",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", as: "execute", body: `{` + draftBody + `}`,
			status: 403, code: "insufficient_scope", says: "write",
		},
		{
			name:  "a draft that is not valid is refused, and the pointers lead into it",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", body: `{"definition": {"steps": [{"id": "a", "uses": "data.sett"}]}}`,
			status: 422, code: "workflow_invalid", points: []string{"/definition/steps/0/uses"},
		},
		{
			name:  "an ordinary run never uses pins",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", body: `{"use_pinned": true}`,
			status: 400, code: "invalid_request", points: []string{"/use_pinned"},
		},
		{
			name:  "a draft of a paused workflow is not run",
			given: func(w *world) { givenWorkflow(w); w.patch("wf", `{"state": "paused"}`) },
			call:  "POST /v1/workflows/$wf/runs", body: `{"definition": {}}`, status: 409, code: "workflow_paused",
		},
		{
			name:  "a step of a draft needs the scope write beside execute",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/steps/first/test", as: "execute", body: `{` + draftBody + `}`,
			status: 403, code: "insufficient_scope",
		},
		{
			name:  "a step of a draft is tried out while others are not valid yet",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/steps/b/test",
			body: `{"use_pinned": true, "pinned": {"a": {"n": 4}}, "definition": {"steps": [{"id": "a", "uses": "no.such"},
				{"id": "b", "uses": "data.set", "with": {"values": {"n": "${{ steps.a.output.n }}"}}}]}}`,
			status: 200, answer: `{"status": "succeeded", "output": {"n": 4}, "sources": [{"name": "trigger", "source": "none"}, {"name": "steps.a", "source": "pinned"}]}`,
		},
		{
			name:  "but the step itself has to be",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/steps/b/test",
			body:   `{"definition": {"steps": [{"id": "a", "uses": "no.such"}, {"id": "b", "uses": "data.set"}]}}`,
			status: 422, code: "workflow_invalid", points: []string{"/definition/steps/1/with/values"},
		},
		{
			name:  "a step that the draft does not have is not found",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/steps/set/test", body: `{` + draftBody + `}`, status: 404, code: "step_not_found",
		},
		{
			name:  "what is given counts before what is pinned",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/steps/second/test",
			body:   `{"use_pinned": true, "pinned": {"first": {"a": 1}}, "context": {"steps": {"first": {"output": {"a": 9}}}}, ` + draftBody + `}`,
			status: 200, answer: `{"output": {"b": 10}, "sources": [{"name": "trigger"}, {"name": "steps.first", "source": "given"}]}`,
		},
	})
}
