package workflow_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// drawSteps draws lists of steps from few ids and values, so that two draws have
// much in common.
func drawSteps(t *rapid.T, ids *[]string, depth int) []workflow.Step {
	var out []workflow.Step
	for range rapid.IntRange(0, 5).Draw(t, "steps") {
		if len(*ids) == 0 {
			break
		}
		step := workflow.Step{ID: (*ids)[0], Uses: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "uses")}
		*ids = (*ids)[1:]
		step.With = json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"a": {"b": 1}}`, `{"a": {"b": 2, "c": null}}`, `{"a": [1]}`, `null`}).Draw(t, "with"))
		if len(out) > 0 && rapid.Bool().Draw(t, "has needs") {
			needs := []string{out[rapid.IntRange(0, len(out)-1).Draw(t, "need")].ID}
			step.Needs = &needs
		}
		if depth < 3 && rapid.IntRange(0, 2).Draw(t, "block") == 0 {
			step.Foreach, step.Steps = "[1]", drawSteps(t, ids, depth+1)
		}
		out = append(out, step)
	}
	return out
}

func drawDefinition(t *rapid.T) workflow.Definition {
	ids := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "ids")
	d := workflow.Definition{Steps: drawSteps(t, &ids, 1)}
	for _, id := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"p", "q"}), rapid.ID[string]).Draw(t, "triggers") {
		d.Triggers = append(d.Triggers, workflow.Trigger{ID: id, Type: rapid.SampledFrom([]string{"manual", "other"}).Draw(t, "type")})
	}
	d.Settings.Timeout = rapid.SampledFrom([]string{"", "1h", "2h"}).Draw(t, "timeout")
	return d
}

// record is a step as a decoded object, with the block that it is in.
type record struct {
	Block string
	Step  any
}

// flat collects the steps of a definition by id.
func flat(t *rapid.T, steps []workflow.Step, block string, into map[string]record) {
	for i, step := range steps {
		if step.Needs == nil {
			needs := []string{}
			if i > 0 {
				needs = append(needs, steps[i-1].ID)
			}
			step.Needs = &needs
		}
		inner := step.Steps
		step.Steps = nil
		into[step.ID] = record{block, object(t, step)}
		flat(t, inner, step.ID, into)
	}
}

func object(t *rapid.T, value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// put sets a member of nested objects, or removes it.
func put(t *rapid.T, value any, pointer string, text json.RawMessage) any {
	if pointer == "" {
		return object(t, text)
	}
	name, rest, _ := strings.Cut(pointer[1:], "/")
	if rest != "" {
		rest = "/" + rest
	}
	members := value.(map[string]any)
	if rest == "" && text == nil {
		delete(members, name)
		return members
	}
	members[name] = put(t, members[name], rest, text)
	return members
}

// apply applies the changes of a diff.
func apply(t *rapid.T, records map[string]record, d workflow.Diff) map[string]record {
	renamed, out := map[string]string{}, map[string]record{}
	for _, s := range d.Steps {
		if s.Edit == workflow.Renamed {
			renamed[s.From.ID] = s.To.ID
		}
	}
	for id, r := range records {
		if to, ok := renamed[r.Block]; ok {
			r.Block = to
		}
		out[id] = r
	}
	for _, s := range d.Steps {
		if s.From != nil {
			delete(out, s.From.ID)
		}
	}
	for _, s := range d.Steps {
		block := s.ToBlock[strings.LastIndexByte(s.ToBlock, '.')+1:]
		switch {
		case s.To == nil:
		case s.From == nil:
			out[s.To.ID] = record{block, object(t, s.To)}
		default:
			step := object(t, s.From)
			for _, f := range s.Fields {
				step = put(t, step, f.Pointer, f.To)
			}
			out[s.To.ID] = record{block, step}
		}
	}
	return out
}

func compare(t *rapid.T, from, to workflow.Definition) workflow.Diff {
	d, err := workflow.Compare(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDiffWithItselfIsEmpty(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		d := drawDefinition(t)
		if diff := compare(t, d, d); !diff.Identical() {
			t.Errorf("%q", diffLines(diff))
		}
	})
}

func TestApplyingADiffGivesTheOtherDefinition(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		from, to := drawDefinition(t), drawDefinition(t)
		d := compare(t, from, to)
		was, want := map[string]record{}, map[string]record{}
		flat(t, from.Steps, "", was)
		flat(t, to.Steps, "", want)
		if diff := cmp.Diff(want, apply(t, was, d)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", diffLines(d), diff)
		}
		settings := object(t, from.Settings)
		for _, f := range d.Settings {
			settings = put(t, settings, f.Pointer, f.To)
		}
		if diff := cmp.Diff(object(t, to.Settings), settings); diff != "" {
			t.Errorf("settings (-want +got):\n%s", diff)
		}
	})
}

// Steps that were not added, removed or moved have the same order on both sides.
func TestUnmovedStepsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		from, to := drawDefinition(t), drawDefinition(t)
		d := compare(t, from, to)
		moved, renamed := map[string]bool{}, map[string]string{}
		for _, s := range d.Steps {
			switch s.Edit {
			case workflow.Renamed: // its position is not reported
				renamed[s.From.ID] = s.To.ID
				moved[s.From.ID], moved[s.To.ID] = true, true
			case workflow.Changed:
			default:
				moved[s.ID] = true
			}
		}
		was, now := map[string][]string{}, map[string][]string{}
		order(from.Steps, "", moved, was, renamed)
		order(to.Steps, "", moved, now, nil)
		if diff := cmp.Diff(was, now); diff != "" {
			t.Errorf("%q (-from +to):\n%s", diffLines(d), diff)
		}
	})
}

func order(steps []workflow.Step, block string, without map[string]bool, into map[string][]string, renamed map[string]string) {
	if name, ok := renamed[block]; ok {
		block = name
	}
	for _, step := range steps {
		if !without[step.ID] {
			into[block] = append(into[block], step.ID)
		}
		order(step.Steps, step.ID, without, into, renamed)
	}
}

func TestDiffIsSymmetric(t *testing.T) {
	t.Parallel()
	opposite := map[workflow.Edit]workflow.Edit{workflow.Added: workflow.Removed, workflow.Removed: workflow.Added}
	swapped := func(fields []workflow.FieldDiff) []workflow.FieldDiff {
		var out []workflow.FieldDiff
		for _, f := range fields {
			out = append(out, workflow.FieldDiff{Pointer: f.Pointer, From: f.To, To: f.From})
		}
		return out
	}
	byID := func(a, b workflow.StepDiff) int { return strings.Compare(a.ID, b.ID) }
	lane.Check(t, func(t *rapid.T) {
		from, to := drawDefinition(t), drawDefinition(t)
		there, back := compare(t, from, to), compare(t, to, from)
		mirror := workflow.Diff{Settings: swapped(back.Settings)}
		for _, s := range back.Steps {
			m := workflow.StepDiff{
				Edit: s.Edit, ID: s.ID, From: s.To, To: s.From, FromBlock: s.ToBlock, ToBlock: s.FromBlock, Fields: swapped(s.Fields),
			}
			if other, ok := opposite[s.Edit]; ok {
				m.Edit = other
			}
			if m.To != nil {
				m.ID = m.To.ID
			}
			mirror.Steps = append(mirror.Steps, m)
		}
		for _, tr := range back.Triggers {
			m := workflow.TriggerDiff{Edit: tr.Edit, ID: tr.ID, From: tr.To, To: tr.From, Fields: swapped(tr.Fields)}
			if other, ok := opposite[tr.Edit]; ok {
				m.Edit = other
			}
			mirror.Triggers = append(mirror.Triggers, m)
		}
		slices.SortFunc(there.Steps, byID)
		slices.SortFunc(mirror.Steps, byID)
		if diff := cmp.Diff(mirror, there); diff != "" {
			t.Errorf("(-reversed +got):\n%s", diff)
		}
	})
}
