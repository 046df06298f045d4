package engine_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/run"
)

// The input with a secret is not stored, so it is evaluated again for each attempt,
// here by another process.
func TestRandomValuesAreTheSameWhenRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.putSecret("token", canary)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with":
			{"call": "a", "says": "${{ uuid() }} ${{ randomText(20) }} ${{ random(0, 1000000000) }} ${{ secrets.token }}", "passes_after": 1, "retry_after": "50m"}}]`), "{}")
		synctest.Wait()
		first := w.effects.given("says")
		w.effects.forget("says")
		n.end()
		w.start(w.store.Leases)
		time.Sleep(time.Hour)
		if d := w.get(id); d.Status != run.Succeeded || w.effects.count("a") != 2 {
			t.Fatalf("%+v", d)
		}
		second := w.effects.given("says")
		if first == "" || first != second {
			t.Errorf("the first attempt got %q, the second %q", first, second)
		}
	})
}

func TestRandomValuesDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	flow := w.workflow(`[
		{"id": "a", "uses": "data.set", "if": "uuid() != ''", "with": {"values": {"x": "${{ uuid() }}", "y": "${{ uuid() }} ${{ uuid() }}"}}},
		{"id": "b", "uses": "data.set", "with": {"values": {"x": "${{ uuid() }}"}}},
		{"id": "each", "foreach": "[uuid(), uuid()]", "steps": [{"id": "c", "uses": "data.set", "with": {"values": {"x": "${{ item }} ${{ uuid() }}"}}}]},
		{"id": "again", "repeat": {"until": "uuid() == ''", "max": 2}, "on_error": "continue", "steps": [{"id": "d", "uses": "data.set", "with": {"values": {"x": "${{ uuid() }}"}}}]}
	]`)
	form := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	seen := map[string]bool{}
	for range 2 {
		d := w.finished(w.startRun(flow, "{}"))
		if d.Status != run.Succeeded {
			t.Fatalf("%+v", d.Error)
		}
		var outputs []json.RawMessage
		for _, step := range d.Steps {
			if step.Type == "data.set" {
				outputs = append(outputs, step.Output)
			}
		}
		text, err := json.Marshal(outputs)
		if err != nil {
			t.Fatal(err)
		}
		found := form.FindAllString(string(text), -1)
		if len(found) != 10 {
			t.Fatalf("%d values in %s", len(found), text)
		}
		for _, id := range found {
			if seen[id] {
				t.Errorf("%s occurs twice", id)
			}
			seen[id] = true
		}
	}
}
