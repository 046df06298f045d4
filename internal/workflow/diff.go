package workflow

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Edit is the kind of change to a step or a trigger between two definitions.
type Edit string

// The values of Edit. A moved or renamed step may have changed too; then it has
// Fields.
const (
	Added   Edit = "added"
	Removed Edit = "removed"
	Changed Edit = "changed"
	Moved   Edit = "moved"   // to another block, or to another position in its list
	Renamed Edit = "renamed" // only its id differs
)

// Diff is the difference between two definitions.
type Diff struct {
	Steps    []StepDiff
	Triggers []TriggerDiff
	Settings []FieldDiff
}

// Identical reports whether the two definitions mean the same.
func (d Diff) Identical() bool { return len(d.Steps)+len(d.Triggers)+len(d.Settings) == 0 }

// StepDiff is a step that differs. From and To are the step on both sides, or
// nil where it does not exist. They have explicit, sorted needs and no inner
// steps, which have their own StepDiffs.
type StepDiff struct {
	Edit   Edit
	ID     string // in the later definition, if it exists there
	From   *Step
	To     *Step
	Fields []FieldDiff
	// FromBlock and ToBlock are the paths of its block, "" at the top level.
	FromBlock string
	ToBlock   string
}

// TriggerDiff is a trigger that differs.
type TriggerDiff struct {
	Edit   Edit
	ID     string
	From   *Trigger
	To     *Trigger
	Fields []FieldDiff
}

// FieldDiff is a member that differs. From or To is nil where the member does
// not exist.
type FieldDiff struct {
	Pointer string
	From    json.RawMessage
	To      json.RawMessage
}

// Compare returns the difference between two definitions. It matches steps by
// id, wherever they are. It compares effective needs: without needs, a step
// needs the previous one in its list.
func Compare(from, to Definition) (Diff, error) {
	var d Diff
	var err error
	if d.Steps, err = compareSteps(from.Steps, to.Steps); err != nil {
		return Diff{}, err
	}
	if d.Triggers, err = compareTriggers(from.Triggers, to.Triggers); err != nil {
		return Diff{}, err
	}
	d.Settings, err = compareFields(from.Settings, to.Settings)
	return d, err
}

func compareSteps(from, to []Step) ([]StepDiff, error) {
	m, err := matchSteps(flatten(from, "", ""), flatten(to, "", ""))
	if err != nil {
		return nil, err
	}
	moved := m.moved()
	// A removed step is listed after the step that it followed.
	removed, last := map[string][]StepDiff{}, ""
	for _, was := range m.from {
		if now, matched := m.newID[was.step.ID]; matched {
			last = now
			continue
		}
		removed[last] = append(removed[last], StepDiff{Edit: Removed, ID: was.step.ID, From: &was.step, FromBlock: was.path})
	}
	out := removed[""]
	for _, now := range m.to {
		diff := StepDiff{Edit: Added, ID: now.step.ID, To: &now.step, ToBlock: now.path}
		if was, matched := m.oldOf(now); matched {
			diff.From, diff.FromBlock = &was.step, was.path
			if diff.Fields, err = compareFields(was.step, now.step); err != nil {
				return nil, err
			}
			diff.Edit = editOf(was, now, moved[now.step.ID], len(diff.Fields) > 0)
		}
		if diff.Edit != "" {
			out = append(out, diff)
		}
		out = append(out, removed[now.step.ID]...)
	}
	return out, nil
}

// editOf returns the change to a step that exists on both sides, or "".
func editOf(was, now flatStep, moved, changed bool) Edit {
	switch {
	case was.step.ID != now.step.ID:
		return Renamed
	case moved:
		return Moved
	case changed:
		return Changed
	}
	return ""
}

// compareTriggers compares triggers by id; their order does not matter.
func compareTriggers(from, to []Trigger) ([]TriggerDiff, error) {
	var out []TriggerDiff
	for _, was := range from {
		if !slices.ContainsFunc(to, func(t Trigger) bool { return t.ID == was.ID }) {
			out = append(out, TriggerDiff{Edit: Removed, ID: was.ID, From: &was})
		}
	}
	for _, now := range to {
		i := slices.IndexFunc(from, func(t Trigger) bool { return t.ID == now.ID })
		if i < 0 {
			out = append(out, TriggerDiff{Edit: Added, ID: now.ID, To: &now})
			continue
		}
		fields, err := compareFields(from[i], now)
		if err != nil {
			return nil, err
		}
		if len(fields) > 0 {
			out = append(out, TriggerDiff{Edit: Changed, ID: now.ID, From: &from[i], To: &now, Fields: fields})
		}
	}
	slices.SortFunc(out, func(a, b TriggerDiff) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// compareFields compares the JSON of two values member by member.
func compareFields(from, to any) ([]FieldDiff, error) {
	was, err := jsonValue(from)
	if err != nil {
		return nil, err
	}
	now, err := jsonValue(to)
	if err != nil {
		return nil, err
	}
	var c fieldComparer
	c.compare("", was, now)
	return c.out, c.err
}

// jsonValue returns the decoded JSON of a value, with numbers kept exactly.
func jsonValue(value any) (any, error) {
	text, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	return decodeExact(text)
}
