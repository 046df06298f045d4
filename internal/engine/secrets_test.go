package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

const canary = "c4n4ry-v4lue"

// TestSecretsReachOnlyTheAction has an action that returns its input in its output, its log
// and its error.
func TestSecretsReachOnlyTheAction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.putSecret("token", canary)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "echo", "uses": "test.effect", "if": "secrets.token != ''", "with": {"header": "Bearer ${{ secrets.token }}", "basic": "${{ toBase64('user:' + secrets.token) }}", "echoes": true}},
		{"id": "next", "uses": "data.set", "with": {"values": {"seen": "${{ steps.echo.output.header }}"}}},
		{"id": "fails", "on_error": "continue", "uses": "test.effect", "with": {"fails": "refused ${{ secrets.token }}"}},
		{"id": "waits", "on_error": "continue", "retry": {"max_attempts": 2, "initial": "10ms"}, "uses": "test.effect", "with": {"call": "c", "says": "${{ secrets.token }}", "passes_after": 9}}
	]`), `{}`))
	if d.Status != run.Succeeded {
		t.Fatalf("%+v", d.Error)
	}
	if got := w.effects.given("header"); got != "Bearer "+canary {
		t.Errorf("the action received %q", got)
	}
	if got := string(d.Steps[0].Output); !strings.Contains(got, `"header":"Bearer ***"`) {
		t.Errorf("output: %s", got)
	}
	logs, err := w.runs.Logs(t.Context(), w.actor, d.ID, "", paging.Request{Limit: 100})
	if err != nil || len(logs.Items) == 0 {
		t.Fatal(logs, err)
	}
	kept := fmt.Sprintf("%+v %+v", d, logs)
	for _, step := range d.Steps {
		kept += string(step.Input) + string(step.Output) + fmt.Sprintf("%+v", step.Error)
	}
	for _, attempt := range d.Attempts {
		kept += attempt.Error.Message
	}
	// user:c4n4ry-v4lue in base64, without the part that depends on the user name.
	for _, trace := range []string{canary, "YzRuNHJ5LXY0bHVl", "M0bjRyeS12NGx1Z"} {
		if strings.Contains(kept, trace) {
			t.Errorf("%q is stored: %s", trace, kept)
		}
	}
}

// TestSecretAtEndOfLongLogLine has a log line that is cut in the middle of a secret. The
// first part of the secret is not stored either.
func TestSecretAtEndOfLongLogLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.putSecret("token", canary)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "a", "uses": "test.effect", "with": {"says": "`+strings.Repeat("x", 2<<10-8)+`${{ secrets.token }}"}}]`), `{}`))
	logs, err := w.runs.Logs(t.Context(), w.actor, d.ID, "", paging.Request{Limit: 100})
	if err != nil || len(logs.Items) != 1 {
		t.Fatal(logs, err)
	}
	if got := logs.Items[0].Message; !strings.HasSuffix(got, "x***") {
		t.Errorf("the line ends with %q", got[len(got)-20:])
	}
}

func TestDeletedSecretFailsStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.putSecret("token", canary)
	w.start(w.store.Leases)
	id := w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"x": "${{ secrets.token }}"}}]`)
	if err := w.values.Secrets.Delete(t.Context(), w.actor, "token"); err != nil {
		t.Fatal(err)
	}
	d := w.finished(w.startRun(id, `{}`))
	if d.Status != run.Failed || d.Error.Code != run.CodeSecretMissing || !strings.Contains(d.Error.Message, `"token"`) {
		t.Errorf("%s: %+v", d.Status, d.Error)
	}
}

// TestSecretAfterCrash continues a run in the middle of a step. The stored input has no
// secret, so it is read again.
func TestSecretAfterCrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.putSecret("token", canary)
	first := w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"gate": "g", "header": "${{ secrets.token }}"}}]`), `{}`)
	<-w.effects.begun
	w.current.Store(nil)
	w.start(w.store.Leases)
	<-w.effects.begun
	w.effects.open("g")
	if d := w.finished(id); d.Status != run.Succeeded || w.effects.given("header") != canary {
		t.Errorf("%s, received %q", d.Status, w.effects.given("header"))
	}
	first.end()
}

// TestTextEqualToSecretReachesAction has text that is masked when it is stored, but
// reaches the action unchanged, even after a crash.
func TestTextEqualToSecretReachesAction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.putSecret("user", "admin")
	first := w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[
		{"id": "login", "uses": "test.effect", "with": {"header": "${{ secrets.user }}"}},
		{"id": "a", "uses": "test.effect", "with": {"gate": "g", "says": "${{ trigger.payload.role }}"}}]`), `{"role": "administrator"}`)
	<-w.effects.begun
	if got := w.effects.given("says"); got != "administrator" {
		t.Errorf("the action received %q", got)
	}
	w.effects.forget("says")
	w.current.Store(nil)
	w.start(w.store.Leases)
	<-w.effects.begun
	w.effects.open("g")
	d := w.finished(id)
	if got := w.effects.given("says"); got != "administrator" {
		t.Errorf("after the crash the action received %q", got)
	}
	if want := `{"gate":"g","says":"***istrator"}`; d.Status != run.Succeeded || string(d.Steps[1].Input) != want {
		t.Errorf("%s: %+v: %s", d.Status, d.Error, d.Steps[1].Input)
	}
	first.end()
}

func TestVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, _, err := w.values.Variables.Put(t.Context(), w.actor, "regions", json.RawMessage(`["eu", "us"]`)); err != nil {
		t.Fatal(err)
	}
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "each", "foreach": "vars.regions", "steps": [{"id": "one", "uses": "data.set", "with": {"values": {"r": "${{ item }}", "all": "${{ len(vars.regions) }}"}}}]}
	]`), `{}`))
	if want := `{"items":[{"all":2,"r":"eu"},{"all":2,"r":"us"}]}`; d.Status != run.Succeeded || string(d.Steps[0].Output) != want {
		t.Errorf("%s: %+v: %s", d.Status, d.Error, d.Steps[0].Output)
	}
}

func (w *world) putSecret(name, value string) {
	w.t.Helper()
	if _, _, err := w.values.Secrets.Put(w.t.Context(), w.actor, name, value); err != nil {
		w.t.Fatal(err)
	}
}
