package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// TestRetryWithCurrentVersion retries failed runs of random workflows after the
// workflow was changed at random. The output of a step contains its own definition and
// the outputs of the steps it needs, so a result that was wrongly reused differs from
// that of a new run.
func TestRetryWithCurrentVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	lane.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, "", 2)
		lookBack(steps)
		flow := w.workflow(stepsJSON(t, steps))
		salt, oneIn := rapid.String().Draw(t, "salt"), rapid.Uint32Range(2, 12).Draw(t, "one fails in")
		broken := func(_, path string) bool { return hash(salt+path)%oneIn == 0 }
		w.effects.script(broken)
		first := w.finished(w.startRun(flow, "{}"))
		if first.Status != run.Failed {
			return
		}
		fixed := drawFix(t, steps)
		w.update(flow, fixed)

		was, now := w.programOf(flow, first.WorkflowVersion), w.programOf(flow, w.versionOf(flow))
		reused := run.ReuseSteps(now, first, workflow.ReusableSteps(was, now))
		checkRetryOf(t, w, flow, fixed, first, broken, reused, run.RetryCurrent)
	})
}

// lookBack makes the effects of a list see the outputs of the steps they need.
func lookBack(steps []workflow.Step) {
	for i := range steps {
		lookBack(steps[i].Steps)
		needs := needsOf(steps, i)
		if steps[i].Uses != "test.effect" {
			continue
		}
		var seen []string
		for _, need := range needs {
			// A step with join: first may or may not see the other steps.
			if steps[i].Join != workflow.First {
				seen = append(seen, fmt.Sprintf(`"${{ steps.%s.output }}"`, need))
			}
		}
		steps[i].With = json.RawMessage(`{"scripted": true, "tag": "first", "seen": [` + strings.Join(seen, ", ") + `]}`)
	}
}

func stepsJSON(t *rapid.T, steps []workflow.Step) string {
	text, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drawFix changes some steps of a workflow.
func drawFix(t *rapid.T, steps []workflow.Step) []workflow.Step {
	var out []workflow.Step
	if err := json.Unmarshal([]byte(stepsJSON(t, steps)), &out); err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(1, 3).Draw(t, "fixes") {
		out = drawOneFix(t, out)
	}
	return out
}

func drawOneFix(t *rapid.T, steps []workflow.Step) []workflow.Step {
	i := rapid.IntRange(0, len(steps)-1).Draw(t, "fixed")
	s := &steps[i]
	if len(s.Steps) > 0 && rapid.Bool().Draw(t, "inside") {
		s.Steps = drawOneFix(t, s.Steps)
		return steps
	}
	switch rapid.IntRange(0, 5).Draw(t, "fix") {
	case 0:
		s.Name = "Another name"
	case 1:
		s.OnError = workflow.Continue
	case 2:
		s.If = "1 == 1"
	case 3:
		added := workflow.Step{ID: steps[0].ID + "new", Needs: &[]string{}, Uses: "test.effect", With: json.RawMessage(`{"scripted": true, "tag": "added"}`)}
		if !slices.ContainsFunc(steps, func(s workflow.Step) bool { return s.ID == added.ID }) {
			return slices.Insert(steps, 0, added)
		}
	case 4:
		if s.Foreach != "" {
			s.Parallel = 3
		}
	default:
		if s.Uses == "test.effect" {
			s.With = json.RawMessage(strings.Replace(string(s.With), "first", "second", 1))
		}
	}
	return steps
}

func (w *world) update(flow string, steps []workflow.Step) {
	w.t.Helper()
	if _, err := w.flows.Update(context.Background(), w.actor, flow, workflow.Patch{Steps: &steps}, etag.Match{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) versionOf(flow string) int {
	w.t.Helper()
	head, err := w.store.Runs.WorkflowRef(context.Background(), w.actor.Workspace.ID, flow)
	if err != nil {
		w.t.Fatal(err)
	}
	return head.Version
}

func (w *world) programOf(flow string, version int) *workflow.Program {
	w.t.Helper()
	program, err := w.plans.Get(context.Background(), flow, version)
	if err != nil {
		w.t.Fatal(err)
	}
	return program
}

// Incomplete rounds continue in order, up to the limit of parallel rounds, even after a
// crash.
func TestRetriedRoundsRespectParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := &hooked{Store: w.store.Leases}
	generation := w.start(st)
	const loop = `[{"id": "l", "foreach": "0..4", "parallel": 2, "steps": [
		{"id": "x", "uses": "test.effect", "with": {"call": "x", "returns": {"i": "${{ index }}"}}},
		{"id": "y", "uses": "test.effect", "with": %s}]}, {"id": "z", "uses": "test.effect", "with": {"fails": "broken"}}]`
	flow := w.workflow(fmt.Sprintf(loop, `{"call": "old"}`))
	first := w.finished(w.startRun(flow, "{}"))
	var fixed []workflow.Step
	text := strings.Replace(fmt.Sprintf(loop, `{"gate": "round ${{ index }}", "returns": {"x": "${{ steps.x.output.i }}"}}`), `"fails": "broken"`, `"call": "z"`, 1)
	if err := json.Unmarshal([]byte(text), &fixed); err != nil {
		t.Fatal(err)
	}
	w.update(flow, fixed)
	again, err := w.runs.Retry(t.Context(), w.actor, first.ID, run.RetryOptions{Version: run.RetryCurrent})
	if err != nil {
		t.Fatal(err)
	}
	reached := func() []string {
		names := []string{<-w.effects.begun, <-w.effects.begun}
		slices.Sort(names)
		return names
	}
	underWay := func() (paths []string) {
		for _, step := range w.get(again.ID).Steps {
			if step.Type != run.Foreach && step.Status == run.StepRunning {
				paths = append(paths, step.Path)
			}
		}
		return paths
	}
	for range 2 { // before and after a crash
		if got := reached(); !slices.Equal(got, []string{"round 0", "round 1"}) {
			t.Fatalf("started with %q", got)
		}
		if got := underWay(); len(got) != 2 {
			t.Fatalf("running at the same time: %q", got)
		}
		w.crash(generation, st, again.ID)
		st = &hooked{Store: w.store.Leases}
		generation = w.start(st)
	}
	if got := reached(); !slices.Equal(got, []string{"round 0", "round 1"}) {
		t.Fatalf("continued with %q", got)
	}
	for n := range 5 {
		w.effects.open(fmt.Sprintf("round %d", n))
	}
	ended := w.finished(again.ID)
	if ended.Status != run.Succeeded {
		t.Fatalf("%s %+v", ended.Status, ended.Error)
	}
	if want := `{"items":[{"x":0},{"x":1},{"x":2},{"x":3},{"x":4}]}`; string(ended.Steps[0].Output) != want {
		t.Errorf("the output of the loop is %s, want %s", ended.Steps[0].Output, want)
	}
	if x, old := w.effects.count("x"), w.effects.count("old"); x != 5 || old != 5 {
		t.Errorf("x was executed %d times, the old y %d times, want 5 each", x, old)
	}
}

// After a failed round, deferred rounds do not continue.
func TestFailedRoundEndsRetriedLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	const loop = `[{"id": "l", "foreach": "0..4", "steps": [
		{"id": "x", "uses": "test.effect", "with": {"returns": {}}},
		{"id": "y", "uses": "test.effect", "with": %s}]}, {"id": "z", "uses": "test.effect", "with": {"fails": "broken"}}]`
	flow := w.workflow(fmt.Sprintf(loop, `{"returns": {}}`))
	first := w.finished(w.startRun(flow, "{}"))
	var fixed []workflow.Step
	if err := json.Unmarshal(fmt.Appendf(nil, loop, `{"call": "new", "passes_after": 0, "fails": "still broken"}`), &fixed); err != nil {
		t.Fatal(err)
	}
	w.update(flow, fixed)
	again, err := w.runs.Retry(t.Context(), w.actor, first.ID, run.RetryOptions{Version: run.RetryCurrent})
	if err != nil {
		t.Fatal(err)
	}
	ended := w.finished(again.ID)
	if ended.Status != run.Failed || ended.Error.StepID != "l[0].y" {
		t.Errorf("%s %+v", ended.Status, ended.Error)
	}
	if n := w.effects.count("new"); n != 1 {
		t.Errorf("the changed step was executed in %d rounds, want 1", n)
	}
}
