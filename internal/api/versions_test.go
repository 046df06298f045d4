package api_test

import (
	"fmt"
	"net/http"
	"testing"
)

func TestVersions(t *testing.T) {
	const other = `{"id": "b", "uses": "data.set", "with": {"values": {}}}`
	runScenarios(t, []scenario{
		{
			name: "a change of steps makes a version", audit: "workflow.updated",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"steps": [` + other + `]}`,
			status: 200, contains: `{"version": 3}`,
		},
		{
			name: "a change of triggers makes a version", audit: "workflow.updated",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"triggers": [{"id": "by_hand", "type": "manual"}]}`,
			status: 200, contains: `{"version": 3}`,
		},
		{
			name:  "a definition equal to the current one makes none, whatever its white space",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf",
			body:   `{"steps": [ {"uses": "data.set", "id": "set", "with": { "values": {"a": 1} } } ], "settings": {}}`,
			status: 200, contains: `{"version": 2}`, headers: []string{"ETag", `"2"`},
		},
		{
			name: "a change of layout, name or description makes none, but changes the ETag", audit: "workflow.renamed workflow.updated",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"layout": {"set": [1, 1]}, "name": "n", "description": "d"}`,
			status: 200, contains: `{"version": 2}`, headers: []string{"ETag", `"3"`},
		},
		{
			name: "the list of versions is newest first and without definitions",
			setup: func(w *testWorkspace) {
				setupWorkflow(w)
				w.patch("wf", `{"steps": [`+other+`]}`)
			},
			request: "GET /v1/workflows/$wf/versions", scope: "read", status: 200, members: "data next_cursor",
			contains: `{"data": [{"version": 3}, {"version": 2}, {"version": 1}], "next_cursor": null}`,
			after: func(w *testWorkspace, a *response) {
				for _, item := range a.items() {
					wantKeys(w.t, item, "version created_at created_by created_by_name")
				}
			},
		},
		{
			name:  "a version names the key that made it",
			setup: setupWorkflow, request: "GET /v1/workflows/$wf/versions/2", status: 200,
			after: func(w *testWorkspace, a *response) {
				keys := w.call("GET", "/v1/api-keys", "").wantStatus(200).column("id")
				if by := a.str("created_by"); by != keys[len(keys)-1] {
					w.t.Errorf("created by %s, the first key is %v", by, keys)
				}
			},
		},
		{
			name:    "a version holds the definition as it was",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"steps": []}`) },
			request: "GET /v1/workflows/$wf/versions/2", scope: "read", status: 200,
			members:  "workflow_id version triggers steps settings source created_at created_by",
			contains: `{"workflow_id": "$wf", "version": 2, "triggers": [], "settings": {}, "steps": [{"id": "set", "with": {"values": {"a": 1}}}]}`,
		},
		{
			name:  "version 1 is the empty definition the workflow was created with",
			setup: setupWorkflow, request: "GET /v1/workflows/$wf/versions/1", status: 200, contains: `{"version": 1, "steps": [], "triggers": []}`,
		},
		{
			name:  "a version that does not exist is version_not_found, and the message names it",
			setup: setupWorkflow, request: "GET /v1/workflows/$wf/versions/3", status: 404, code: "version_not_found", message: "3",
		},
		{
			name:    "a version of a workflow that does not exist is workflow_not_found",
			request: "GET /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/versions/1", status: 404, code: "workflow_not_found",
		},
		{
			name: "restoring makes a new version with the old definition", audit: "workflow.restored",
			setup: func(w *testWorkspace) {
				setupWorkflow(w)
				w.patch("wf", `{"steps": [], "state": "active", "layout": {"a": [1, 1]}}`)
			},
			request: "POST /v1/workflows/$wf/versions/2/restore", scope: "write", status: 200, members: workflowKeys,
			contains: `{"version": 4, "steps": [{"id": "set"}], "state": "active", "layout": {"a": [1, 1]}, "name": "Workflow wf"}`,
			headers:  []string{"ETag", `"4"`},
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf/versions/3", "").json(), `{"steps": []}`)
			},
		},
		{
			name:  "restoring what is the current definition changes nothing",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/versions/2/restore", body: `{}`,
			status: 200, contains: `{"version": 2}`, headers: []string{"ETag", `"2"`},
		},
		{
			name:  "restoring a version that does not exist is version_not_found",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/versions/9/restore", status: 404, code: "version_not_found",
		},
		{
			name:    "restoring a version of an unknown workflow is workflow_not_found",
			request: "POST /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/versions/1/restore", status: 404, code: "workflow_not_found",
		},
		{
			name:  "restoring takes no body",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/versions/1/restore", body: `{"version": 1}`,
			status: 400, code: "invalid_request", pointers: []string{"/version"},
		},
		{
			name: "a run is pinned to the version it started with", audit: "workflow.updated",
			setup:   func(w *testWorkspace) { w.workflow("wf", setStep, waitStep); w.runUntilWaiting("run", "wf") },
			request: "PATCH /v1/workflows/$wf", body: `{"steps": []}`, status: 200, contains: `{"version": 3}`,
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/runs/$run", "").json(),
					`{"workflow_version": 2, "status": "running", "steps": [{"step_id": "set"}, {"step_id": "pause", "status": "waiting"}]}`)
				wantContains(w.t, w.runToEnd("next", "wf", "").json(), `{"workflow_version": 3, "status": "succeeded", "steps": []}`)
			},
		},
	})
}

func TestVersionNumbersAreChecked(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupWorkflow(w)
	for _, n := range []string{"0", "-1", "abc", "01", "1.0", "1e0", "+1", "%201", "99999999999999999999", "0x1", "null"} {
		w.call("GET", "/v1/workflows/$wf/versions/"+n, "").wantStatus(http.StatusBadRequest, "invalid_request")
		w.call("POST", "/v1/workflows/$wf/versions/"+n+"/restore", "").wantStatus(http.StatusBadRequest, "invalid_request")
	}
	w.call("GET", "/v1/workflows/$wf/versions/9223372036854775807", "").wantStatus(http.StatusNotFound, "version_not_found")
}

func TestETags(t *testing.T) {
	const body = `{"name": "Changed"}`
	current := func(w *testWorkspace) {
		setupWorkflow(w)
		w.names["etag"] = w.call("GET", "/v1/workflows/$wf", "").header.Get("ETag")
	}
	var scenarios []scenario
	for _, request := range []struct {
		call, body string
		status     int
		audit      string
	}{
		{"PATCH /v1/workflows/$wf", body, 200, "workflow.renamed"},
		{"DELETE /v1/workflows/$wf", "", 204, "workflow.deleted"},
		{"POST /v1/workflows/$wf/versions/1/restore", "", 200, "workflow.restored"},
	} {
		for _, tc := range []struct {
			name, match string
			ok          bool
		}{
			{"the current ETag of the workflow", "$etag", true},
			{"one that it had before", `"1"`, false},
			{"one of several", `"1", $etag`, true},
			{"several of which none is it", `"1","7"`, false},
			{"any", "*", true},
			{"a weak one", "W/$etag", false},
			{"one without quotes", "2", false},
		} {
			sc := scenario{
				name: fmt.Sprintf("%s with If-Match %s", request.call, tc.name), setup: current,
				request: request.call, body: request.body, requestHeaders: []string{"If-Match", tc.match}, status: request.status, audit: request.audit,
			}
			if !tc.ok {
				sc.status, sc.code, sc.message, sc.audit = 412, "version_conflict", "$wf", ""
				sc.after = func(w *testWorkspace, _ *response) {
					if got := w.call("GET", "/v1/workflows/$wf", "").wantStatus(200).header.Get("ETag"); got != w.names["etag"] {
						w.t.Errorf("the workflow changed: its ETag is %s", got)
					}
				}
			}
			scenarios = append(scenarios, sc)
		}
	}
	scenarios = append(scenarios, scenario{
		name:    "If-Match * does not bring an unknown workflow into being",
		request: "PATCH /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm", body: body, requestHeaders: []string{"If-Match", "*"},
		status: 404, code: "workflow_not_found",
	})
	runScenarios(t, scenarios)
}
