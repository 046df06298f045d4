package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

const masking = `
	{"id": "login", "uses": "test.effect", "with": {"call": "login", "issues": true, "line": 2040}, "mask": ["body.access_token"]},
	{"id": "use", "uses": "test.effect", "with": {"call": "use", "header": "Bearer ${{ steps.login.output.body.access_token }}", "echoes": true}},`

// shownOf returns everything that is shown of a run.
func (w *world) shownOf(d run.Detail) string {
	w.t.Helper()
	logs, err := w.runs.Logs(w.t.Context(), w.actor, d.ID, "", paging.Request{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	shown := fmt.Sprintf("%+v %+v", d, logs)
	for _, step := range d.Steps {
		shown += fmt.Sprintf(" %s %s %s %+v", step.Input, step.Output, step.State, step.Error)
	}
	return shown
}

func TestMaskedValuesReachOnlyTheAction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[`+masking+`
		{"id": "child", "uses": "flow.run", "on_error": "continue", "with": {"workflow_id": "wf_01m7fe3gv0es8r65rzyjka792g", "payload": {"token": "${{ steps.login.output.body.access_token }}"}}},
		{"id": "note", "uses": "log.write", "with": {"message": "${{ toBase64('user:' + steps.login.output.body.access_token) }}"}},
		{"id": "end", "uses": "flow.stop", "with": {"status": "failed", "message": "no ${{ steps.use.output.header }}"}}
	]`), `{}`))
	if got := w.effects.given("header"); got != "Bearer "+canary {
		t.Errorf("the action received %q", got)
	}
	shown := w.shownOf(d)
	for _, trace := range []string{canary, "YzRuNHJ5LXY0bHVl", "M0bjRyeS12NGx1Z", "xxc4n4"} {
		if strings.Contains(shown, trace) {
			t.Errorf("%q is stored: %s", trace, shown)
		}
	}
	if !strings.Contains(shown, "no Bearer ***") || !strings.Contains(shown, `"access_token":"***"`) {
		t.Errorf("masked values are not shown as ***: %s", shown)
	}
}

// A retry copies the masked step, and its other steps still get the real value.
func TestRetryKeepsMaskedValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	first := w.finished(w.startRun(w.workflow(`[`+masking+`
		{"id": "rounds", "foreach": "[steps.login.output.body.access_token, 'x']", "steps": [
			{"id": "inside", "uses": "test.effect", "with": {"call": "inside", "says": "${{ item }}"}},
			{"id": "fails", "if": "index == 1", "uses": "test.effect", "with": {"call": "fails", "header": "${{ steps.login.output.body.access_token }}", "fails": "${{ 'no' }}"}}]}
	]`), `{}`))
	w.effects.forget("header")
	retried, err := w.runs.Retry(t.Context(), w.actor, first.ID, run.RetryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second := w.finished(retried.Run.ID)
	if got := w.effects.given("header"); got != canary {
		t.Errorf("the action received %q", got)
	}
	// The rounds start over, because their items were stored masked.
	for call, want := range map[string]int{"login": 1, "use": 1, "inside": 4, "fails": 2} {
		if got := w.effects.count(call); got != want {
			t.Errorf("%s was called %d times, want %d", call, got, want)
		}
	}
	if shown := w.shownOf(second); strings.Contains(shown, canary) {
		t.Errorf("the value is stored: %s", shown)
	}
}

func TestTooManyMaskedValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"returns": {"list": "${{ map(1..1001, string(#)) }}"}}, "mask": ["list"]}]`), `{}`))
	if d.Status != run.Failed || d.Error.Code != run.CodeMaskLimit {
		t.Errorf("the run is %s: %+v", d.Status, d.Error)
	}
}
