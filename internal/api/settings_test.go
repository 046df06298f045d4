package api_test

import (
	"fmt"
	"strings"
	"testing"
)

const keyedSettings = `{"settings": {"timeout": "30m", "concurrency": {"key": "${{ trigger.payload.customer }}", "limit": 2, "on_limit": "drop"}}}`

func TestPatchSettings(t *testing.T) {
	given := func(w *testWorkspace) { w.workflow("wf"); w.patch("wf", keyedSettings) }
	patch := func(name, body, answer string) scenario {
		sc := scenario{name: name, setup: given, request: "PATCH /v1/workflows/$wf", scope: "write", body: body, status: 200, contains: answer}
		if answer == `{"version": 3}` {
			sc.audit = "workflow.updated"
		}
		return sc
	}
	exactly := func(sc scenario, settings string) scenario {
		sc.after = func(w *testWorkspace, a *response) {
			w.t.Helper()
			got := strings.ReplaceAll(string(a.body), " ", "")
			if want := `"settings":` + settings; !strings.Contains(got, strings.ReplaceAll(want, " ", "")) {
				w.t.Errorf("got %s, want %s in it", a.body, want)
			}
		}
		return sc
	}
	runScenarios(t, []scenario{
		exactly(patch("settings are stored as they were written, and make a version", keyedSettings, `{"version": 2}`),
			`{"timeout": "30m", "concurrency": {"key": "${{ trigger.payload.customer }}", "limit": 2, "on_limit": "drop"}}`),
		exactly(patch("a member that is absent stays", `{"settings": {"timeout": "1h"}}`, `{"version": 3}`),
			`{"timeout": "1h", "concurrency": {"key": "${{ trigger.payload.customer }}", "limit": 2, "on_limit": "drop"}}`),
		exactly(patch("objects inside are merged too", `{"settings": {"concurrency": {"limit": 5}}}`, `{"version": 3}`),
			`{"timeout": "30m", "concurrency": {"key": "${{ trigger.payload.customer }}", "limit": 5, "on_limit": "drop"}}`),
		exactly(patch("null removes a member inside", `{"settings": {"concurrency": {"key": null, "on_limit": null}}}`, `{"version": 3}`),
			`{"timeout": "30m", "concurrency": {"limit": 2}}`),
		exactly(patch("null removes the timeout", `{"settings": {"timeout": null}}`, `{"version": 3}`),
			`{"concurrency": {"key": "${{ trigger.payload.customer }}", "limit": 2, "on_limit": "drop"}}`),
		exactly(patch("null removes the concurrency", `{"settings": {"concurrency": null}}`, `{"version": 3}`), `{"timeout": "30m"}`),
		exactly(patch("null removes all settings", `{"settings": null}`, `{"version": 3}`), `{}`),
		patch("an empty object changes nothing", `{"settings": {"concurrency": {}}}`, `{"version": 2}`),
		{
			name: "a version that is restored brings its settings back", audit: "workflow.restored",
			setup: func(w *testWorkspace) {
				given(w)
				w.patch("wf", `{"settings": {"timeout": "2h", "concurrency": null}}`)
			},
			request: "POST /v1/workflows/$wf/versions/2/restore", status: 200,
			contains: `{"version": 4, "settings": {"timeout": "30m", "concurrency": {"limit": 2, "on_limit": "drop"}}}`,
		},
		{
			name: "a version without settings takes them away", audit: "workflow.restored", setup: given,
			request: "POST /v1/workflows/$wf/versions/1/restore", status: 200, contains: `{"version": 3}`,
			after: func(w *testWorkspace, a *response) {
				if got := a.object()["settings"].(map[string]any); len(got) != 0 {
					w.t.Errorf("settings are %v", got)
				}
			},
		},
		{
			name: "settings are validated without being saved", setup: given,
			request: "POST /v1/workflows/$wf/validate", body: `{"settings": {"timeout": "soon"}}`, status: 200,
			contains: `{"valid": false, "problems": [{"pointer": "/settings/timeout"}]}`,
		},
	})
}

func TestPatchSettingsErrors(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	for _, tc := range []struct{ settings, points string }{
		{`{"timeout": "soon"}`, "/settings/timeout"},
		{`{"timeout": "25h"}`, "/settings/timeout"},
		{`{"timeout": "0s"}`, "/settings/timeout"},
		{`{"concurrency": {"limit": 1001}}`, "/settings/concurrency/limit"},
		{`{"concurrency": {"on_limit": "wait"}}`, "/settings/concurrency/on_limit"},
		{`{"concurrency": {"key": "${{ 1 + }}"}}`, "/settings/concurrency/key"},
		{`{"concurrency": {"key": "${{ steps.a.output.x }}"}}`, "/settings/concurrency/key"},
		{`{"concurrency": {"key": "${{ item }}"}}`, "/settings/concurrency/key"},
		{`{"timeout": "x", "concurrency": {"limit": 2000, "on_limit": "no"}}`, "/settings/timeout /settings/concurrency/limit /settings/concurrency/on_limit"},
	} {
		sc := scenario{status: 422, code: "workflow_invalid", pointers: strings.Fields(tc.points)}
		a := w.call("PATCH", "/v1/workflows/$wf", `{"settings": `+tc.settings+`}`).wantStatus(422, "workflow_invalid")
		sc.checkError(w, a)
	}
	wantContains(t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 1}`)
}

// Only the execution time of steps counts against the timeout.
func TestRunTimeout(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("naps", `{"id": "nap", "uses": "flow.wait", "with": {"for": "60ms"}}`, setStep)
	w.patch("naps", `{"settings": {"timeout": "1ms"}}`)
	wantContains(t, w.runToEnd("run", "naps", "").json(), `{"status": "succeeded"}`)

	w = newServer(t, allowLoopback).newTestWorkspace(t)
	url, _ := blockedServer(t)
	w.workflow("calls", setStep, fmt.Sprintf(`{"id": "get", "uses": "http.request", "with": {"url": %q}}`, url))
	w.patch("calls", `{"settings": {"timeout": "50ms"}}`)
	wantContains(t, w.runToEnd("run", "calls", "").json(), `{"status": "failed", "error": {"code": "run_timeout", "message": "~.*50ms.*", "step_id": null},
		"steps": [{"step_id": "set", "status": "succeeded"}, {"step_id": "get", "status": "cancelled"}]}`)
}
