package api_test

import (
	"fmt"
	"strings"
	"testing"
)

const keyedSettings = `{"settings": {"timeout": "30m", "concurrency": {"key": "${{ trigger.payload.customer }}", "limit": 2, "on_limit": "drop"}}}`

func TestPatchSettings(t *testing.T) {
	given := func(w *world) { w.workflow("wf"); w.patch("wf", keyedSettings) }
	patch := func(name, body, answer string) scenario {
		return scenario{name: name, given: given, call: "PATCH /v1/workflows/$wf", as: "write", body: body, status: 200, answer: answer}
	}
	exactly := func(sc scenario, settings string) scenario {
		sc.then = func(w *world, a *answer) {
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
			name: "a version that is restored brings its settings back",
			given: func(w *world) {
				given(w)
				w.patch("wf", `{"settings": {"timeout": "2h", "concurrency": null}}`)
			},
			call: "POST /v1/workflows/$wf/versions/2/restore", status: 200,
			answer: `{"version": 4, "settings": {"timeout": "30m", "concurrency": {"limit": 2, "on_limit": "drop"}}}`,
		},
		{
			name: "a version without settings takes them away", given: given,
			call: "POST /v1/workflows/$wf/versions/1/restore", status: 200, answer: `{"version": 3}`,
			then: func(w *world, a *answer) {
				if got := a.object()["settings"].(map[string]any); len(got) != 0 {
					w.t.Errorf("settings are %v", got)
				}
			},
		},
		{
			name: "settings are validated without being saved", given: given,
			call: "POST /v1/workflows/$wf/validate", body: `{"settings": {"timeout": "soon"}}`, status: 200,
			answer: `{"valid": false, "problems": [{"pointer": "/settings/timeout"}]}`,
		},
	})
}

func TestPatchSettingsRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
		sc := scenario{status: 422, code: "workflow_invalid", points: strings.Fields(tc.points)}
		a := w.call("PATCH", "/v1/workflows/$wf", `{"settings": `+tc.settings+`}`).want(422, "workflow_invalid")
		sc.checkError(w, a)
	}
	wantContains(t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"version": 1}`)
}

// Only the time in which steps are executed counts against the timeout.
func TestRunTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("naps", `{"id": "nap", "uses": "flow.wait", "with": {"for": "60ms"}}`, setStep)
	w.patch("naps", `{"settings": {"timeout": "1ms"}}`)
	wantContains(t, w.finish("run", "naps", "").json(), `{"status": "succeeded"}`)

	w = newServer(t, loopback).newWorld(t)
	url, _ := blocked(t)
	w.workflow("calls", setStep, fmt.Sprintf(`{"id": "get", "uses": "http.request", "with": {"url": %q}}`, url))
	w.patch("calls", `{"settings": {"timeout": "50ms"}}`)
	wantContains(t, w.finish("run", "calls", "").json(), `{"status": "failed", "error": {"code": "run_timeout", "message": "~.*50ms.*", "step_id": null},
		"steps": [{"step_id": "set", "status": "succeeded"}, {"step_id": "get", "status": "cancelled"}]}`)
}
