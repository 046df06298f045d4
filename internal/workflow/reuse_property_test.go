package workflow_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// drawRunnable draws a list of steps that compiles, from few values, so that two
// draws have much in common.
func drawRunnable(t *rapid.T, ids *[]string, depth int) []workflow.Step {
	var out []workflow.Step
	for n := rapid.IntRange(1, 4).Draw(t, "steps"); len(out) < n && len(*ids) > 0; {
		step := workflow.Step{ID: (*ids)[0]}
		*ids = (*ids)[1:]
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0 && depth < 2 && len(*ids) > 0:
			step.Foreach, step.Steps = rapid.SampledFrom([]string{"[1]", "[1, 2]"}).Draw(t, "list"), drawRunnable(t, ids, depth+1)
		case kind == 1 && depth < 2 && len(*ids) > 0:
			step.Repeat = &workflow.Repeat{Until: "index == 1", Max: rapid.IntRange(0, 1).Draw(t, "max") * 7}
			step.Steps = drawRunnable(t, ids, depth+1)
		default:
			step.Uses = "data.set"
			step.With = json.RawMessage(rapid.SampledFrom([]string{`{"values":{}}`, `{"values":{"n":1}}`}).Draw(t, "with"))
			step.Timeout = rapid.SampledFrom([]string{"", "", "5s"}).Draw(t, "timeout")
		}
		if rapid.Bool().Draw(t, "explicit needs") {
			needs := []string{}
			for _, before := range out {
				if rapid.Bool().Draw(t, "needs "+before.ID) {
					needs = append(needs, before.ID)
				}
			}
			step.Needs = &needs
		}
		step.Name = rapid.SampledFrom([]string{"", "Name"}).Draw(t, "name")
		step.If = workflow.Condition(rapid.SampledFrom([]string{"", "", "true"}).Draw(t, "if"))
		step.OnError = rapid.SampledFrom([]workflow.OnError{"", "", workflow.Continue}).Draw(t, "on_error")
		out = append(out, step)
	}
	return out
}

// fingerprints collects everything that the result of each step depends on: its
// fields, its inner steps, the blocks around it, and the same for all steps that
// it needs. Steps whose results can be reused have the same fingerprint.
func fingerprints(steps []workflow.Step, around string, into map[string]string) []string {
	var all []string
	for i := range steps {
		all = append(all, fingerprintOf(steps, i, around, into))
	}
	return all
}

func fingerprintOf(steps []workflow.Step, i int, around string, into map[string]string) string {
	s := steps[i]
	if text, known := into[s.ID]; known {
		return text
	}
	var needs []string
	for j := range steps {
		implicit := s.Needs == nil && j == i-1
		if implicit || s.Needs != nil && slices.Contains(*s.Needs, steps[j].ID) {
			needs = append(needs, fingerprintOf(steps, j, around, into))
		}
	}
	slices.Sort(needs)
	head := fmt.Sprintf("%s in (%s) uses %q with %s if %q foreach %q", s.ID, around, s.Uses, s.With, s.If, s.Foreach)
	if s.Repeat != nil {
		head += fmt.Sprintf(" repeat %s %d", s.Repeat.Until, cmp.Or(s.Repeat.Max, 100))
	}
	if len(s.Steps) > 0 {
		head += " gives " + s.Steps[len(s.Steps)-1].ID
	}
	head += " needs [" + strings.Join(needs, "; ") + "]"
	into["head "+s.ID] = head
	inside := fingerprints(s.Steps, head, into)
	slices.Sort(inside)
	into[s.ID] = head + " has {" + strings.Join(inside, "; ") + "}"
	return into[s.ID]
}

// handling collects the fields that decide about failures and parallelism.
func handling(steps []workflow.Step, into map[string]string) []string {
	var all []string
	for _, s := range steps {
		into[s.ID] = fmt.Sprintf("%s %q %q %d", s.ID, s.Timeout, cmp.Or(s.OnError, workflow.Fail), s.Parallel)
		inside := handling(s.Steps, into)
		slices.Sort(inside)
		into[s.ID] += strings.Join(inside, "; ")
		all = append(all, into[s.ID])
	}
	return all
}

// insideRepeat collects the ids of steps inside a repeat.
func insideRepeat(steps []workflow.Step, inside bool, into map[string]string) {
	for _, s := range steps {
		if inside {
			into[s.ID] = s.ID
		}
		insideRepeat(s.Steps, inside || s.Repeat != nil, into)
	}
}

func TestReusedResultsDependOnNothingThatChanged(t *testing.T) {
	t.Parallel()
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	lane.Check(t, func(t *rapid.T) {
		from, to := drawPair(t)
		reuse := workflow.ReusableSteps(compiled(t, from, actions), compiled(t, to, actions))
		was, now := map[string]string{}, map[string]string{}
		fingerprints(from, "", was)
		fingerprints(to, "", now)
		wasHandled, nowHandled, repeated := map[string]string{}, map[string]string{}, map[string]string{}
		handling(from, wasHandled)
		handling(to, nowHandled)
		insideRepeat(to, false, repeated)
		for id, handled := range nowHandled {
			same, got := was[id] == now[id], reuse[id]
			want := workflow.ReuseNothing
			switch {
			case same && wasHandled[id] == handled:
				want = workflow.ReuseAll
			case same:
				want = workflow.ReuseSuccess
			case was["head "+id] == now["head "+id] && isForeach(to, id):
				want = workflow.ReuseRounds
			}
			// A repeat is reused completely or not at all.
			if repeated[id] != "" && got == workflow.ReuseNothing {
				continue
			}
			if got != want {
				t.Errorf("%s: reuse %d, want %d\nfrom %s\nto   %s", id, got, want, written(t, from), written(t, to))
			}
		}
		for id := range reuse {
			if now[id] == "" {
				t.Errorf("%s is reused but does not exist", id)
			}
		}
	})
}

func isForeach(steps []workflow.Step, id string) bool {
	return slices.ContainsFunc(steps, func(s workflow.Step) bool { return s.ID == id && s.Foreach != "" || isForeach(s.Steps, id) })
}

// drawPair draws two lists of steps: unrelated ones, or one and an edited copy.
func drawPair(t *rapid.T) (from, to []workflow.Step) {
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	rest := slices.Clone(ids)
	from = drawRunnable(t, &rest, 0)
	if rapid.IntRange(0, 3).Draw(t, "unrelated") == 0 {
		rest = slices.Clone(ids)
		return from, drawRunnable(t, &rest, 0)
	}
	to = clone(t, from)
	for range rapid.IntRange(0, 3).Draw(t, "edits") {
		edit(t, to)
	}
	return from, to
}

// edit changes one field of one step.
func edit(t *rapid.T, steps []workflow.Step) {
	s := &steps[rapid.IntRange(0, len(steps)-1).Draw(t, "edited")]
	if len(s.Steps) > 0 && rapid.Bool().Draw(t, "inside") {
		edit(t, s.Steps)
		return
	}
	switch rapid.IntRange(0, 4).Draw(t, "field") {
	case 0:
		s.Name = "Another name"
	case 1:
		s.OnError = workflow.Continue
	case 2:
		s.If = "1 == 1"
	case 3:
		s.Needs = &[]string{}
	case 4:
		if s.Uses != "" {
			s.With = json.RawMessage(`{"values":{"n":2}}`)
		}
	}
}

func clone(t *rapid.T, steps []workflow.Step) []workflow.Step {
	var out []workflow.Step
	if err := json.Unmarshal([]byte(written(t, steps)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func written(t *rapid.T, steps []workflow.Step) string {
	text, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func compiled(t *rapid.T, steps []workflow.Step, actions *action.Catalog) *workflow.Program {
	p, problems := workflow.Compile(workflow.Definition{Steps: steps}, actions, nil)
	if len(problems) > 0 {
		t.Fatalf("%s does not compile: %v", written(t, steps), problems)
	}
	return p
}
