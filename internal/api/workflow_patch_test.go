package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func setupWorkflow(w *testWorkspace) { w.workflow("wf", setStep) }

func TestPatchWorkflow(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a patch answers 200 with the full workflow", audit: "workflow.renamed workflow.updated",
			setup:   setupWorkflow,
			request: "PATCH /v1/workflows/$wf", scope: "write", body: `{"name": " New ", "description": "d"}`,
			status: 200, members: workflowKeys, headers: []string{"ETag", `".+"`},
			contains: `{"id": "$wf", "name": "New", "description": "d", "state": "draft", "version": 2, "steps": [{"id": "set"}]}`,
		},
		{
			name:    "an empty patch changes nothing",
			setup:   setupWorkflow,
			request: "PATCH /v1/workflows/$wf", body: `{}`, status: 200,
			after: func(w *testWorkspace, a *response) {
				if got := w.call("GET", "/v1/workflows/$wf", ""); string(got.body) != string(a.body) || got.header.Get("ETag") != `"2"` {
					w.t.Errorf("got %s with %s after %s", got.body, got.header.Get("ETag"), a.body)
				}
			},
		},
		{
			name: "every change moves updated_at on and leaves created_at", audit: "workflow.renamed",
			setup:   func(w *testWorkspace) { setupWorkflow(w); time.Sleep(2 * time.Millisecond) },
			request: "PATCH /v1/workflows/$wf", body: `{"name": "Later"}`, status: 200,
			after: func(w *testWorkspace, a *response) {
				if a.str("updated_at") <= a.str("created_at") {
					w.t.Errorf("created %s, updated %s", a.str("created_at"), a.str("updated_at"))
				}
			},
		},
		{
			name: "a description of null clears it", audit: "workflow.updated",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"description": "d"}`) },
			request: "PATCH /v1/workflows/$wf", body: `{"description": null}`,
			status: 200, contains: `{"description": null}`,
		},
		{
			name: "members that are absent stay as they are",
			setup: func(w *testWorkspace) {
				setupWorkflow(w)
				w.patch("wf", `{"description": "d", "layout": {"set": [1, 2]}}`)
			},
			request: "PATCH /v1/workflows/$wf", body: `{"state": "active"}`, status: 200,
			contains: `{"name": "Workflow wf", "description": "d", "layout": {"set": [1, 2]}, "steps": [{"id": "set"}], "version": 2}`,
			events:   "workflow.activated", audit: "workflow.activated",
		},
		{
			name: "arrays are replaced whole", audit: "workflow.updated",
			setup: func(w *testWorkspace) {
				setupWorkflow(w)
				w.patch("wf", `{"triggers": [{"id": "a", "type": "manual"}]}`)
			},
			request: "PATCH /v1/workflows/$wf",
			body:    `{"steps": [{"id": "other", "uses": "flow.wait", "with": {"for": "1s"}}], "triggers": [{"id": "b", "type": "manual"}]}`,
			status:  200, contains: `{"steps": [{"id": "other"}], "triggers": [{"id": "b", "type": "manual"}], "version": 4}`,
		},
		{
			name: "a step is returned as it was saved: members that were left out stay absent", audit: "workflow.updated",
			setup:   setupWorkflow,
			request: "PATCH /v1/workflows/$wf",
			body: `{"steps": [` + setStep + `, {"id": "b", "name": "B", "uses": "data.set", "with": {"values": {"z": [1, 2.50, null], "a": {}}},
				"needs": ["set"], "if": "${{ true }}", "join": "all", "on_error": "continue"},
				{"id": "c", "uses": "flow.wait", "with": {"for": "1s"}, "needs": []}]}`,
			status: 200,
			contains: `{"steps": [{"id": "set"}, {"id": "b", "name": "B", "with": {"values": {"z": [1, 2.50, null], "a": {}}}, "needs": ["set"],
				"if": "${{ true }}", "join": "all", "on_error": "continue"}, {"id": "c", "needs": []}]}`,
			after: func(w *testWorkspace, a *response) {
				steps := a.object()["steps"].([]any)
				wantKeys(w.t, steps[0].(map[string]any), "id uses with")
				wantKeys(w.t, steps[2].(map[string]any), "id uses with needs")
			},
		},
		{
			name:    "members of the layout are merged, and null removes one",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"layout": {"a": [1, 2], "b": [3, 4]}}`) },
			request: "PATCH /v1/workflows/$wf", body: `{"layout": {"a": null, "@c": [-5.5, 1e3]}}`, status: 200,
			after: func(w *testWorkspace, a *response) {
				wantContains(w.t, a.object()["layout"], `{"b": [3, 4], "@c": [-5.5, 1000]}`)
				wantKeys(w.t, a.object()["layout"].(map[string]any), "b @c")
			},
		},
		{
			name:    "a layout of null removes all of it",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"layout": {"a": [1, 2]}}`) },
			request: "PATCH /v1/workflows/$wf", body: `{"layout": null}`, status: 200,
			after: func(w *testWorkspace, a *response) {
				if got := a.object()["layout"].(map[string]any); len(got) != 0 {
					w.t.Errorf("the layout is %v", got)
				}
			},
		},
		{
			name:    "settings of null are empty settings",
			setup:   setupWorkflow,
			request: "PATCH /v1/workflows/$wf", body: `{"settings": null}`, status: 200, contains: `{"settings": {}, "version": 2}`,
		},
		{
			name:    "all of a patch is applied, or nothing",
			setup:   setupWorkflow,
			request: "PATCH /v1/workflows/$wf", body: `{"name": "Changed", "state": "active", "steps": [{"id": "a", "uses": "no.such"}]}`,
			status: 422, code: "workflow_invalid",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"name": "Workflow wf", "state": "draft", "version": 2}`)
			},
		},
		{
			name: "the media type of a merge patch is accepted on PATCH", audit: "workflow.renamed",
			setup:   setupWorkflow,
			request: "PATCH /v1/workflows/$wf", body: `{"name": "Merged"}`, requestHeaders: []string{"Content-Type", "application/merge-patch+json"},
			status: 200, contains: `{"name": "Merged"}`,
		},
		{
			name:    "the media type of a merge patch is not accepted on POST",
			request: "POST /v1/workflows", body: `{"name": "n"}`, requestHeaders: []string{"Content-Type", "application/merge-patch+json"},
			status: 415, code: "unsupported_media_type",
		},
		{
			name:    "a patch of an unknown workflow is workflow_not_found",
			request: "PATCH /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm", body: `{"name": "n"}`,
			status: 404, code: "workflow_not_found", message: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name:    "a patch needs a body",
			setup:   setupWorkflow,
			request: "PATCH /v1/workflows/$wf", status: 400, code: "invalid_json",
		},
	})
}

func TestPatchWorkflowErrors(t *testing.T) {
	var scenarios []scenario
	for _, tc := range []struct{ body, points string }{
		{`{"name": null}`, "/name"},
		{`{"state": null, "steps": null, "triggers": null}`, "/state /steps /triggers"},
		{`{"name": ""}`, "/name"},
		{`{"name": 5}`, "/name"},
		{`{"description": ["a"]}`, "/description"},
		{`{"description": "` + strings.Repeat("x", 4001) + `"}`, "/description"},
		{`{"description": "\u0000"}`, "/description"},
		{`{"state": "deleted"}`, "/state"},
		{`{"state": "Active"}`, "/state"},
		{`{"state": ""}`, "/state"},
		{`{"State": "active"}`, "/State"},
		{`{"steps": {}}`, "/steps"},
		{`{"steps": [[]]}`, "/steps/0"},
		{`{"steps": [{"id": 1, "uses": true}]}`, "/steps/0/id /steps/0/uses"},
		{`{"steps": [{"id": "a", "uses": "data.set", "wiht": {}}]}`, "/steps/0/wiht"},
		{`{"steps": [{"id": "a", "uses": "data.set", "needs": "b"}]}`, "/steps/0/needs"},
		{`{"steps": [{"id": "a", "uses": "data.set", "if": 1}]}`, "/steps/0/if"},
		{`{"steps": [{"id": "a", "uses": "data.set", "if": null}]}`, "/steps/0/if"},
		{`{"steps": [{"id": "a", "uses": "data.set", "retry": {"often": true}, "time_out": "1s"}]}`, "/steps/0/retry/often /steps/0/time_out"},
		{`{"steps": [{"id": "a", "uses": "data.set", "if": ""}]}`, "/steps/0/if"},
		{`{"steps": [{"id": "a", "uses": "data.set", "join": "", "on_error": ""}]}`, "/steps/0/join /steps/0/on_error"},
		{`{"steps": [{"id": "a", "uses": "data.set", "join": null, "on_error": 5}]}`, "/steps/0/join /steps/0/on_error"},
		{`{"triggers": [{"id": "a", "type": "manual", "config": {}}]}`, "/triggers/0/config"},
		{`{"settings": {"timeout": 1}}`, "/settings/timeout"},
		{`{"settings": {"concurrency": {"limits": 1}}}`, "/settings/concurrency/limits"},
		{`{"settings": {"concurrency": {"limit": 0}}}`, "/settings/concurrency/limit"},
		{`{"settings": {"concurrency": {"limit": -1, "on_limit": ""}}}`, "/settings/concurrency/limit /settings/concurrency/on_limit"},
		{`{"settings": {"concurrency": {"limit": "1"}}}`, "/settings/concurrency/limit"},
		{`{"settings": {"concurrency": {"limit": 1.5}}}`, "/settings/concurrency/limit"},
		{`{"settings": []}`, "/settings"},
		{`{"layout": []}`, "/layout"},
		{`{"layout": {"a": [1]}}`, "/layout/a"},
		{`{"layout": {"a": [1, 2, 3]}}`, "/layout/a"},
		{`{"layout": {"a": ["1", "2"]}}`, "/layout/a/0 /layout/a/1"},
		{`{"layout": {"a": [1, 1000001]}}`, "/layout/a"},
		{`{"layout": {"A b": [1, 2]}}`, "/layout"},
		{`{"layout": {"a/~b": [1]}}`, "/layout/a~1~0b"},
		{`{"id": "wf_01m7f8njhve3pt0yekqqme4qcm", "version": 3}`, "/id /version"},
		{`{"created_at": "2026-11-15T09:30:00.123Z", "updated_at": null}`, "/created_at /updated_at"},
		{`{"workspace_id": "ws_01m7fe3gv0es8r65rzyjka792g"}`, "/workspace_id"},
	} {
		scenarios = append(scenarios, scenario{
			name: "an invalid body is rejected with its pointer: " + fmt.Sprintf("%.60s", tc.body), setup: setupWorkflow,
			request: "PATCH /v1/workflows/$wf", body: tc.body, status: 400, code: "invalid_request", pointers: strings.Fields(tc.points),
			after: func(w *testWorkspace, _ *response) {
				if got := w.call("GET", "/v1/workflows/$wf", "").header.Get("ETag"); got != `"2"` {
					w.t.Errorf("the workflow changed: its ETag is %s", got)
				}
			},
		})
	}
	runScenarios(t, scenarios)
}

func TestWorkflowStates(t *testing.T) {
	emitted := map[string]string{"active": "workflow.activated", "paused": "workflow.paused"}
	recorded := map[string]string{"active": "workflow.activated", "paused": "workflow.paused", "draft": "workflow.drafted"}
	var scenarios []scenario
	for _, from := range []string{"draft", "active", "paused"} {
		for _, to := range []string{"draft", "active", "paused"} {
			sc := scenario{
				name:    fmt.Sprintf("a workflow may go from %s to %s", from, to),
				setup:   func(w *testWorkspace) { w.workflow("wf"); w.patch("wf", `{"state": "`+from+`"}`) },
				request: "PATCH /v1/workflows/$wf", body: `{"state": "` + to + `"}`, status: 200,
				contains: `{"state": "` + to + `", "version": 1, "steps": []}`,
			}
			if from == to {
				sc.name = fmt.Sprintf("setting the state %s that a workflow already has emits nothing", to)
				sc.after = func(w *testWorkspace, a *response) {
					if got := w.call("GET", "/v1/workflows/$wf", "").header.Get("ETag"); got != a.header.Get("ETag") {
						w.t.Errorf("the ETag is %s, then %s", a.header.Get("ETag"), got)
					}
				}
			} else {
				sc.events, sc.audit = emitted[to], recorded[to]
				sc.after = func(w *testWorkspace, a *response) { checkStateEvent(w, a, emitted[to], from, to) }
			}
			scenarios = append(scenarios, sc)
		}
	}
	runScenarios(t, scenarios)
}

func checkStateEvent(w *testWorkspace, a *response, kind, from, to string) {
	w.t.Helper()
	if kind == "" {
		return
	}
	bodies := w.eventBodies(kind)
	last := bodies[len(bodies)-1]
	wantKeys(w.t, last, "id event timestamp data")
	wantKeys(w.t, last["data"].(map[string]any), "workflow_id workflow_name state previous_state version")
	want := fmt.Sprintf(`{"id": "~evt_[0-9a-z]{26}", "event": %q, "timestamp": %q, "data": {"workflow_id": "$wf",
		"workflow_name": "Workflow wf", "state": %q, "previous_state": %q}}`, kind, a.str("updated_at"), to, from)
	wantContains(w.t, last, w.expand(want))
}
