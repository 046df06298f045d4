package api_test

import (
	"net/http"
	"strings"
	"testing"
)

const workflowKeys = "id name description state version triggers steps settings layout pinned source source_stale created_at updated_at"

func TestCreateWorkflow(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a workflow created through the API starts as a draft with no steps",
			call: "POST /v1/workflows", body: `{"name": "Greet"}`,
			status: 201, keys: workflowKeys,
			answer: `{
				"id": "~wf_[0-7][0-9a-hjkmnp-tv-z]{25}", "name": "Greet", "description": null, "state": "draft", "version": 1,
				"triggers": [], "steps": [], "settings": {}, "layout": {}, "created_at": "~....-..-..T..:..:..\\....Z"
			}`,
			headers: []string{"Location", `/v1/workflows/wf_[0-9a-z]{26}`, "ETag", `".+"`, "Content-Type", "application/json"},
			audit:   "workflow.created",
			then: func(w *world, a *answer) {
				w.names["wf"] = a.text("id")
				if a.header.Get("Location") != "/v1/workflows/"+a.text("id") || a.text("created_at") != a.text("updated_at") {
					w.t.Errorf("location %q, body %s", a.header.Get("Location"), a.body)
				}
				read := w.call("GET", "/v1/workflows/$wf", "").want(200)
				if string(read.body) != string(a.body) || read.header.Get("ETag") != a.header.Get("ETag") {
					w.t.Errorf("reading it gives %s, creating it gave %s", read.body, a.body)
				}
			},
		},
		{
			name: "the description is optional and kept as it is",
			call: "POST /v1/workflows", body: `{"name": "n", "description": " two\n\tlines "}`,
			status: 201, answer: `{"description": " two\n\tlines "}`, audit: "workflow.created",
		},
		{
			name: "a description of null is none",
			call: "POST /v1/workflows", body: `{"name": "n", "description": null}`,
			status: 201, answer: `{"description": null}`, audit: "workflow.created",
		},
		{
			name: "a name is trimmed",
			call: "POST /v1/workflows", body: `{"name": "  Grüße\t"}`,
			status: 201, answer: `{"name": "Grüße"}`, audit: "workflow.created",
		},
		{
			name: "the name is required",
			call: "POST /v1/workflows", body: `{"description": "d"}`,
			status: 400, code: "invalid_request", points: []string{"/name"}, says: "/name",
		},
		{
			name: "the name must not be null",
			call: "POST /v1/workflows", body: `{"name": null}`,
			status: 400, code: "invalid_request", points: []string{"/name"},
		},
		{
			name: "the name must not be blank",
			call: "POST /v1/workflows", body: `{"name": "  \t "}`,
			status: 400, code: "invalid_request", points: []string{"/name"},
		},
		{
			name: "a name may have 200 characters after trimming",
			call: "POST /v1/workflows", body: `{"name": " ` + strings.Repeat("ü", 199) + `x "}`, loose: true,
			status: 201, audit: "workflow.created",
			then: func(w *world, a *answer) {
				if got := len([]rune(a.text("name"))); got != 200 {
					w.t.Errorf("the name has %d characters", got)
				}
			},
		},
		{
			name: "a name must not have 201 characters",
			call: "POST /v1/workflows", body: `{"name": "` + strings.Repeat("ü", 201) + `"}`,
			status: 400, code: "invalid_request", points: []string{"/name"},
		},
		{
			name: "a name must stay on one line",
			call: "POST /v1/workflows", body: `{"name": "a\nb"}`,
			status: 400, code: "invalid_request", points: []string{"/name"},
		},
		{
			name: "a description may have 4,000 characters",
			call: "POST /v1/workflows", body: `{"name": "n", "description": "` + strings.Repeat("ü", 4000) + `"}`,
			status: 201, audit: "workflow.created",
		},
		{
			name: "a description must not have 4,001 characters",
			call: "POST /v1/workflows", body: `{"name": "n", "description": "` + strings.Repeat("ü", 4001) + `"}`,
			status: 400, code: "invalid_request", points: []string{"/description"},
		},
		{
			name: "steps are refused, with the way to add them",
			call: "POST /v1/workflows", body: `{"name": "n", "steps": []}`,
			status: 400, code: "invalid_request", points: []string{"/steps"}, says: "PATCH",
		},
		{
			name: "triggers are refused, with the way to add them",
			call: "POST /v1/workflows", body: `{"name": "n", "triggers": []}`,
			status: 400, code: "invalid_request", points: []string{"/triggers"}, says: "PATCH",
		},
		{
			name: "a state is refused",
			call: "POST /v1/workflows", body: `{"name": "n", "state": "active"}`,
			status: 400, code: "invalid_request", points: []string{"/state"},
		},
		{
			name: "settings and layout are refused",
			call: "POST /v1/workflows", body: `{"name": "n", "settings": {}, "layout": {}}`,
			status: 400, code: "invalid_request", points: []string{"/settings", "/layout"},
		},
		{
			name: "creating needs the scope write, and the message names it",
			as:   "read", call: "POST /v1/workflows", body: `{"name": "n"}`,
			status: 403, code: "insufficient_scope", says: "write",
		},
	})
}

func TestReadWorkflow(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a single read returns the full definition",
			given: func(w *world) { w.workflow("wf", setStep) },
			call:  "GET /v1/workflows/$wf", as: "read",
			status: 200, keys: workflowKeys, headers: []string{"ETag", `".+"`},
			answer: `{"id": "$wf", "version": 2, "steps": [{"id": "set", "uses": "data.set", "with": {"values": {"a": 1}}}]}`,
		},
		{
			name:   "an id that no workflow has is workflow_not_found, and the message names it",
			call:   "GET /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm",
			status: 404, code: "workflow_not_found", says: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name:   "an id of the wrong form is an id that does not exist",
			call:   "GET /v1/workflows/nonsense",
			status: 404, code: "workflow_not_found", says: "nonsense",
		},
		{
			name:   "the id of something else is an id that does not exist",
			given:  func(w *world) { w.workflow("wf", waitStep); w.run("run", "wf", "") },
			call:   "GET /v1/workflows/$run",
			status: 404, code: "workflow_not_found", says: "$run",
		},
		{
			name:   "a query parameter that the operation does not have is refused",
			given:  func(w *world) { w.workflow("wf") },
			call:   "GET /v1/workflows/$wf?fields=id",
			status: 400, code: "invalid_request", says: "fields",
		},
	})
}

func TestListWorkflows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.workflow(name)
	}
	w.patch("b", `{"state": "active"}`)
	w.patch("c", `{"state": "paused"}`)
	read := w.as("read")
	list := func(t *testing.T, query string) *answer { return read.on(t).call("GET", "/v1/workflows"+query, "") }

	t.Run("list items carry exactly id, name, state, created_at, updated_at", func(t *testing.T) {
		for _, item := range list(t, "").want(200).items() {
			wantKeys(t, item, "id name state created_at updated_at")
		}
	})
	t.Run("the order is newest first", func(t *testing.T) {
		a := list(t, "").want(200)
		wantContains(t, a.json(), w.fill(`{"data": [{"id": "$c"}, {"id": "$b"}, {"id": "$a"}], "next_cursor": null}`))
		wantKeys(t, a.object(), "data next_cursor")
	})
	t.Run("a change does not move a workflow in the list", func(t *testing.T) {
		w.on(t).patch("a", `{"name": "Changed"}`)
		wantContains(t, list(t, "").want(200).json(),
			w.fill(`{"data": [{"id": "$c"}, {"id": "$b"}, {"id": "$a", "name": "Changed"}]}`))
	})
	for state, want := range map[string]string{"draft": "$a", "active": "$b", "paused": "$c"} {
		t.Run("the filter state="+state+" returns only those", func(t *testing.T) {
			wantContains(t, list(t, "?state="+state).want(200).json(),
				w.fill(`{"data": [{"id": "`+want+`", "state": "`+state+`"}], "next_cursor": null}`))
		})
	}
	for _, state := range []string{"deleted", "Active", "draft,active", "%20"} {
		t.Run("the filter state="+state+" is refused", func(t *testing.T) {
			list(t, "?state="+state).want(http.StatusBadRequest, "invalid_request")
		})
	}
	t.Run("another workspace sees none of them", func(t *testing.T) {
		wantContains(t, newWorld(t).call("GET", "/v1/workflows", "").want(200).json(), `{"data": [], "next_cursor": null}`)
	})
}
