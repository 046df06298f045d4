package api_test

import (
	"strings"
	"testing"
)

func TestPinned(t *testing.T) {
	pinned := func(w *world) { givenWorkflow(w); w.patch("wf", `{"pinned": {"set": {"a": 1}, "gone": {}}}`) }
	large := func(n int) string { return `{"v":"` + strings.Repeat("x", n-len(`{"v":""}`)) + `"}` }
	runScenarios(t, []scenario{
		{
			name:  "pins are merged, null removes one, and no version is made",
			given: pinned, call: "PATCH /v1/workflows/$wf", as: "write", body: `{"pinned": {"gone": null, "more": { "b": [1, 2.50] }}}`, status: 200,
			keys: workflowKeys, answer: `{"pinned": {"set": {"a": 1}, "more": {"b": [1, 2.50]}}, "version": 2}`,
			then: func(w *world, a *answer) { wantKeys(w.t, a.object()["pinned"].(map[string]any), "set more") },
		},
		{
			name:  "null removes all of them",
			given: pinned, call: "PATCH /v1/workflows/$wf", body: `{"pinned": null}`, status: 200, answer: `{"pinned": {}}`,
			then: func(w *world, a *answer) {
				if left := a.object()["pinned"].(map[string]any); len(left) > 0 {
					w.t.Errorf("left: %v", left)
				}
			},
		},
		{
			name:  "a pin of 64 KiB is fine",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", body: `{"pinned": {"set": ` + large(64<<10) + `}}`, status: 200,
		},
		{
			name:  "a larger one is refused",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", body: `{"pinned": {"set": ` + large(64<<10+1) + `}}`,
			status: 400, code: "invalid_request", points: []string{"/pinned/set"},
		},
		{
			name:  "a pin is an object",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", body: `{"pinned": {"set": [1]}}`, loose: true,
			status: 400, code: "invalid_request", points: []string{"/pinned/set"},
		},
		{
			name:  "its key is the id of a step",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", body: `{"pinned": {"@set": {}}}`, loose: true,
			status: 400, code: "invalid_request", points: []string{"/pinned"},
		},
	})
}
