package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// drawSteps draws a list of steps with branches, joins and nested loops.
func drawSteps(t *rapid.T, prefix string, depth int) []workflow.Step {
	steps := make([]workflow.Step, rapid.IntRange(1, 4).Draw(t, "steps"))
	for i := range steps {
		s := &steps[i]
		s.ID = fmt.Sprintf("%ss%d", prefix, i)
		drawOrder(t, s, steps[:i])
		if rapid.IntRange(0, 3).Draw(t, "passes over") == 0 {
			s.OnError = workflow.Continue
		}
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind < 2 && depth > 0:
			items := rapid.IntRange(0, 4).Draw(t, "items")
			s.Foreach, s.Parallel = fmt.Sprintf("1..%d", items), rapid.IntRange(1, 3).Draw(t, "parallel")
			if items == 0 {
				s.Foreach = "[]"
			}
			s.Steps = drawSteps(t, s.ID, depth-1)
		case kind == 2 && depth > 0:
			s.Repeat = &workflow.Repeat{Until: fmt.Sprintf("index == %d", rapid.IntRange(0, 2).Draw(t, "rounds"))}
			s.Steps = drawSteps(t, s.ID, depth-1)
		case kind == 3:
			s.Uses, s.With = "data.set", json.RawMessage(`{"values": {"n": 1}}`)
		default:
			s.Uses, s.With = "test.effect", json.RawMessage(`{"scripted": true}`)
		}
	}
	return steps
}

// drawOrder makes a step depend on some of those before it.
func drawOrder(t *rapid.T, s *workflow.Step, before []workflow.Step) {
	needs := []string{}
	for _, other := range before {
		if rapid.Bool().Draw(t, "needs "+other.ID) {
			needs = append(needs, other.ID)
		}
	}
	if rapid.Bool().Draw(t, "after the one before") {
		needs = nil
		if len(before) > 0 {
			needs = []string{before[len(before)-1].ID}
		}
	} else {
		s.Needs = &needs
	}
	s.Join = rapid.SampledFrom([]workflow.Join{"", workflow.All, workflow.Always, workflow.First}).Draw(t, "join")
	switch {
	case rapid.IntRange(0, 9).Draw(t, "never") == 0:
		s.If = "false"
	case len(needs) > 0 && s.Join != workflow.First && rapid.IntRange(0, 3).Draw(t, "conditional") == 0:
		s.If = workflow.Condition(fmt.Sprintf("steps.%s.status != 'skipped'", needs[0]))
	}
}

// TestRetry retries runs of random workflows that failed or were cancelled at a random
// moment, after the cause of the failure was fixed.
func TestRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := &hooked{Store: w.store.Leases}
	var cancel struct {
		sync.Mutex
		in int // commits
	}
	st.before = func(lease run.Lease, _ run.Decision) {
		cancel.Lock()
		defer cancel.Unlock()
		if cancel.in--; cancel.in == 0 {
			_, _ = w.runs.Cancel(context.WithoutCancel(w.t.Context()), w.actor, lease.RunID)
		}
	}
	w.start(st)
	lane.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, "", 2)
		text, err := json.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		flow := w.workflow(string(text))
		salt, oneIn := rapid.String().Draw(t, "salt"), rapid.Uint32Range(2, 12).Draw(t, "one fails in")
		broken := func(_, path string) bool { return hash(salt+path)%oneIn == 0 }

		cancel.Lock()
		cancel.in = rapid.IntRange(0, 12).Draw(t, "cancelled at commit")
		cancel.Unlock()
		w.effects.script(broken)
		first := w.finished(w.startRun(flow, "{}"))
		cancel.Lock()
		cancel.in = 0
		cancel.Unlock()
		if first.Status == run.Succeeded {
			return
		}
		checkRetry(t, w, flow, steps, first, broken)
	})
}

func checkRetry(t *rapid.T, w *world, flow string, steps []workflow.Step, first run.Detail, broken func(runID, path string) bool) {
	program, err := w.plans.Get(context.Background(), flow, first.WorkflowVersion)
	if err != nil {
		t.Fatal(err)
	}
	checkRetryOf(t, w, flow, steps, first, broken, run.ReuseSteps(program, first, nil), run.RetryPinned)
}

// checkRetryOf retries a run, checks which steps it reuses, and compares it with a run
// that executes everything.
func checkRetryOf(t *rapid.T, w *world, flow string, steps []workflow.Step, first run.Detail, broken func(runID, path string) bool, reused []run.Step, version run.RetryVersion) {
	reusedByPath := map[string]run.Step{}
	for _, step := range reused {
		reusedByPath[step.Path] = step
	}
	reusedNeedsAreReused(t, steps, "", reusedByPath)

	var again sync.Map
	w.effects.script(func(_, path string) bool { again.Store(path, true); return false })
	started, err := w.runs.Retry(context.Background(), w.actor, first.ID, run.RetryOptions{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	second := w.finished(started.ID)
	again.Range(func(path, _ any) bool {
		if step, ok := reusedByPath[path.(string)]; ok {
			t.Errorf("%s was executed again although it was %s", path, step.Status)
		}
		return true
	})
	startsAfterNeeds(t, steps, "", second)
	for _, step := range second.Steps {
		if !step.Status.Settled() {
			t.Errorf("the run has ended, but %s is %s", step.Path, step.Status)
		}
	}

	// The result of a run in which only tolerated failures occur.
	w.effects.script(func(runID, path string) bool {
		_, reused := reusedByPath[path]
		return reused && broken(runID, path)
	})
	whole := w.finished(w.startRun(flow, "{}"))
	if diff := cmp.Diff(outcome(whole), outcome(second)); diff != "" {
		t.Errorf("the retry of\n%sdiffers from a run without the failure (-want +got):\n%s", history(first), diff)
	}
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}

// reusedNeedsAreReused fails if a step is reused but one that it needs is not, at the
// top level or in a round of a loop that continues.
func reusedNeedsAreReused(t *rapid.T, steps []workflow.Step, prefix string, reusedByPath map[string]run.Step) {
	for i, s := range steps {
		step, there := reusedByPath[prefix+s.ID]
		if !there {
			continue
		}
		for _, need := range needsOf(steps, i) {
			if before, ok := reusedByPath[prefix+need]; !ok || !before.Status.Settled() {
				t.Errorf("%s is reused, %s is not", prefix+s.ID, prefix+need)
			}
		}
		if step.Status.Settled() {
			continue
		}
		if s.Foreach == "" {
			t.Errorf("%s was reused although it is %s", step.Path, step.Status)
		}
		for n := range 5 {
			reusedNeedsAreReused(t, s.Steps, fmt.Sprintf("%s[%d].", step.Path, n), reusedByPath)
		}
	}
}

// startsAfterNeeds fails if a step started before one that it needs.
func startsAfterNeeds(t *rapid.T, steps []workflow.Step, prefix string, d run.Detail) {
	find := func(path string) *run.Step {
		if i := slices.IndexFunc(d.Steps, func(s run.Step) bool { return s.Path == path }); i >= 0 {
			return &d.Steps[i]
		}
		return nil
	}
	for i, s := range steps {
		step := find(prefix + s.ID)
		if step == nil {
			continue
		}
		for _, need := range needsOf(steps, i) {
			before := find(prefix + need)
			if s.Join != workflow.First && (before == nil || before.Seq > step.Seq || before.FinishedAt.After(step.StartedAt)) {
				t.Errorf("%s started before %s had ended", step.Path, prefix+need)
			}
		}
		for n := range 5 {
			startsAfterNeeds(t, s.Steps, fmt.Sprintf("%s[%d].", step.Path, n), d)
		}
	}
}

func needsOf(steps []workflow.Step, i int) []string {
	switch {
	case steps[i].Needs != nil:
		return *steps[i].Needs
	case i > 0:
		return []string{steps[i-1].ID}
	}
	return nil
}

var insideFailed = regexp.MustCompile(`\[\d+\]\.[^.]*$`)

// outcome returns how each step and the run ended. It omits the steps inside a failed
// loop, because they depend on which round failed first.
func outcome(d run.Detail) map[string]string {
	out := map[string]string{"run": string(d.Status)}
	for _, step := range d.Steps {
		out[step.Path] = string(step.Status) + " " + string(step.Output)
	}
	for path := range out {
		for around := path; strings.Contains(around, "["); {
			around = insideFailed.ReplaceAllString(around, "")
			if strings.HasPrefix(out[around], "failed") {
				delete(out, path)
				break
			}
		}
	}
	return out
}
