package api_test

import (
	"strings"
	"testing"
)

func TestPinned(t *testing.T) {
	pinned := func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"pinned": {"set": {"a": 1}, "gone": {}}}`) }
	large := func(n int) string { return `{"v":"` + strings.Repeat("x", n-len(`{"v":""}`)) + `"}` }
	runScenarios(t, []scenario{
		{
			name: "pins are merged, null removes one, and no version is made", audit: "workflow.updated",
			setup: pinned, request: "PATCH /v1/workflows/$wf", scope: "write", body: `{"pinned": {"gone": null, "@hook": {"payload": {}}, "more": { "b": [1, 2.50] }}}`, status: 200,
			members: workflowKeys, contains: `{"pinned": {"set": {"a": 1}, "more": {"b": [1, 2.50]}, "@hook": {"payload": {}}}, "version": 2}`,
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.object()["pinned"].(map[string]any), "set more @hook")
			},
		},
		{
			name: "null removes all of them", audit: "workflow.updated",
			setup: pinned, request: "PATCH /v1/workflows/$wf", body: `{"pinned": null}`, status: 200, contains: `{"pinned": {}}`,
			after: func(w *testWorkspace, a *response) {
				if left := a.object()["pinned"].(map[string]any); len(left) > 0 {
					w.t.Errorf("left: %v", left)
				}
			},
		},
		{
			name: "a pin of 64 KiB is fine", audit: "workflow.updated",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"pinned": {"set": ` + large(64<<10) + `}}`, status: 200,
		},
		{
			name:  "a larger one is rejected",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"pinned": {"set": ` + large(64<<10+1) + `}}`,
			status: 400, code: "invalid_request", pointers: []string{"/pinned/set"},
		},
		{
			name:  "a pin is an object",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"pinned": {"set": [1]}}`, lenient: true,
			status: 400, code: "invalid_request", pointers: []string{"/pinned/set"},
		},
		{
			name:  "its key is the id of a step",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"pinned": {"@@set": {}}}`, lenient: true,
			status: 400, code: "invalid_request", pointers: []string{"/pinned"},
		},
	})
}
