package api_test

import (
	"net/http"
	"strings"
	"testing"
)

const workflowKeys = "id name description state version triggers steps settings layout pinned source source_stale warnings created_at updated_at"

func TestCreateWorkflow(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a workflow created through the API starts as a draft with no steps",
			request: "POST /v1/workflows", body: `{"name": "Greet"}`,
			status: 201, members: workflowKeys,
			contains: `{
				"id": "~wf_[0-7][0-9a-hjkmnp-tv-z]{25}", "name": "Greet", "description": null, "state": "draft", "version": 1,
				"triggers": [], "steps": [], "settings": {}, "layout": {}, "created_at": "~....-..-..T..:..:..\\....Z"
			}`,
			headers: []string{"Location", `/v1/workflows/wf_[0-9a-z]{26}`, "ETag", `".+"`, "Content-Type", "application/json"},
			audit:   "workflow.created",
			after: func(w *testWorkspace, a *response) {
				w.names["wf"] = a.str("id")
				if a.header.Get("Location") != "/v1/workflows/"+a.str("id") || a.str("created_at") != a.str("updated_at") {
					w.t.Errorf("location %q, body %s", a.header.Get("Location"), a.body)
				}
				read := w.call("GET", "/v1/workflows/$wf", "").wantStatus(200)
				if string(read.body) != string(a.body) || read.header.Get("ETag") != a.header.Get("ETag") {
					w.t.Errorf("reading it gives %s, creating it gave %s", read.body, a.body)
				}
			},
		},
		{
			name:    "the description is optional and stored unchanged",
			request: "POST /v1/workflows", body: `{"name": "n", "description": " two\n\tlines "}`,
			status: 201, contains: `{"description": " two\n\tlines "}`, audit: "workflow.created",
		},
		{
			name:    "a description of null is none",
			request: "POST /v1/workflows", body: `{"name": "n", "description": null}`,
			status: 201, contains: `{"description": null}`, audit: "workflow.created",
		},
		{
			name:    "a name is trimmed",
			request: "POST /v1/workflows", body: `{"name": "  Grüße\t"}`,
			status: 201, contains: `{"name": "Grüße"}`, audit: "workflow.created",
		},
		{
			name:    "the name is required",
			request: "POST /v1/workflows", body: `{"description": "d"}`,
			status: 400, code: "invalid_request", pointers: []string{"/name"}, message: "/name",
		},
		{
			name:    "the name must not be null",
			request: "POST /v1/workflows", body: `{"name": null}`,
			status: 400, code: "invalid_request", pointers: []string{"/name"},
		},
		{
			name:    "the name must not be blank",
			request: "POST /v1/workflows", body: `{"name": "  \t "}`,
			status: 400, code: "invalid_request", pointers: []string{"/name"},
		},
		{
			name:    "a name may have 200 characters after trimming",
			request: "POST /v1/workflows", body: `{"name": " ` + strings.Repeat("ü", 199) + `x "}`, lenient: true,
			status: 201, audit: "workflow.created",
			after: func(w *testWorkspace, a *response) {
				if got := len([]rune(a.str("name"))); got != 200 {
					w.t.Errorf("the name has %d characters", got)
				}
			},
		},
		{
			name:    "a name must not have 201 characters",
			request: "POST /v1/workflows", body: `{"name": "` + strings.Repeat("ü", 201) + `"}`,
			status: 400, code: "invalid_request", pointers: []string{"/name"},
		},
		{
			name:    "a name must stay on one line",
			request: "POST /v1/workflows", body: `{"name": "a\nb"}`,
			status: 400, code: "invalid_request", pointers: []string{"/name"},
		},
		{
			name:    "a description may have 4,000 characters",
			request: "POST /v1/workflows", body: `{"name": "n", "description": "` + strings.Repeat("ü", 4000) + `"}`,
			status: 201, audit: "workflow.created",
		},
		{
			name:    "a description must not have 4,001 characters",
			request: "POST /v1/workflows", body: `{"name": "n", "description": "` + strings.Repeat("ü", 4001) + `"}`,
			status: 400, code: "invalid_request", pointers: []string{"/description"},
		},
		{
			name:    "steps are rejected, with the way to add them",
			request: "POST /v1/workflows", body: `{"name": "n", "steps": []}`,
			status: 400, code: "invalid_request", pointers: []string{"/steps"}, message: "PATCH",
		},
		{
			name:    "triggers are rejected, with the way to add them",
			request: "POST /v1/workflows", body: `{"name": "n", "triggers": []}`,
			status: 400, code: "invalid_request", pointers: []string{"/triggers"}, message: "PATCH",
		},
		{
			name:    "a state is rejected",
			request: "POST /v1/workflows", body: `{"name": "n", "state": "active"}`,
			status: 400, code: "invalid_request", pointers: []string{"/state"},
		},
		{
			name:    "settings and layout are rejected",
			request: "POST /v1/workflows", body: `{"name": "n", "settings": {}, "layout": {}}`,
			status: 400, code: "invalid_request", pointers: []string{"/settings", "/layout"},
		},
		{
			name:  "creating needs the scope write, and the message names it",
			scope: "read", request: "POST /v1/workflows", body: `{"name": "n"}`,
			status: 403, code: "insufficient_scope", message: "write",
		},
	})
}

func TestGetWorkflow(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a single read returns the full definition",
			setup:   func(w *testWorkspace) { w.workflow("wf", setStep) },
			request: "GET /v1/workflows/$wf", scope: "read",
			status: 200, members: workflowKeys, headers: []string{"ETag", `".+"`},
			contains: `{"id": "$wf", "version": 2, "steps": [{"id": "set", "uses": "data.set", "with": {"values": {"a": 1}}}]}`,
		},
		{
			name:    "an id that no workflow has is workflow_not_found, and the message names it",
			request: "GET /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm",
			status:  404, code: "workflow_not_found", message: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name:    "an id of the wrong form is an id that does not exist",
			request: "GET /v1/workflows/nonsense",
			status:  404, code: "workflow_not_found", message: "nonsense",
		},
		{
			name:    "the id of something else is an id that does not exist",
			setup:   func(w *testWorkspace) { w.workflow("wf", waitStep); w.startRun("run", "wf", "") },
			request: "GET /v1/workflows/$run",
			status:  404, code: "workflow_not_found", message: "$run",
		},
		{
			name:    "a query parameter that the operation does not have is rejected",
			setup:   func(w *testWorkspace) { w.workflow("wf") },
			request: "GET /v1/workflows/$wf?fields=id",
			status:  400, code: "invalid_request", message: "fields",
		},
	})
}

func TestListWorkflows(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	for _, name := range []string{"a", "b", "c"} {
		w.workflow(name)
	}
	w.patch("b", `{"state": "active"}`)
	w.patch("c", `{"state": "paused"}`)
	read := w.withScopes("read")
	list := func(t *testing.T, query string) *response {
		return read.withT(t).call("GET", "/v1/workflows"+query, "")
	}

	t.Run("list items carry exactly id, name, state, created_at, updated_at", func(t *testing.T) {
		for _, item := range list(t, "").wantStatus(200).items() {
			wantKeys(t, item, "id name state created_at updated_at")
		}
	})
	t.Run("the order is newest first", func(t *testing.T) {
		a := list(t, "").wantStatus(200)
		wantContains(t, a.json(), w.expand(`{"data": [{"id": "$c"}, {"id": "$b"}, {"id": "$a"}], "next_cursor": null}`))
		wantKeys(t, a.object(), "data next_cursor")
	})
	t.Run("a change does not move a workflow in the list", func(t *testing.T) {
		w.withT(t).patch("a", `{"name": "Changed"}`)
		wantContains(t, list(t, "").wantStatus(200).json(),
			w.expand(`{"data": [{"id": "$c"}, {"id": "$b"}, {"id": "$a", "name": "Changed"}]}`))
	})
	for state, want := range map[string]string{"draft": "$a", "active": "$b", "paused": "$c"} {
		t.Run("the filter state="+state+" returns only those", func(t *testing.T) {
			wantContains(t, list(t, "?state="+state).wantStatus(200).json(),
				w.expand(`{"data": [{"id": "`+want+`", "state": "`+state+`"}], "next_cursor": null}`))
		})
	}
	for _, state := range []string{"deleted", "Active", "draft,active", "%20"} {
		t.Run("the filter state="+state+" is rejected", func(t *testing.T) {
			list(t, "?state="+state).wantStatus(http.StatusBadRequest, "invalid_request")
		})
	}
	t.Run("another workspace sees none of them", func(t *testing.T) {
		wantContains(t, newTestWorkspace(t).call("GET", "/v1/workflows", "").wantStatus(200).json(), `{"data": [], "next_cursor": null}`)
	})
}
