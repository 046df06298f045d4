package workflow

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Edit is what happened to a step or a trigger between two definitions.
type Edit string

// What can have happened. A step that was moved or renamed may have changed
// too: its fields say so.
const (
	Added   Edit = "added"
	Removed Edit = "removed"
	Changed Edit = "changed"
	Moved   Edit = "moved"   // to another block, or to another place in its list
	Renamed Edit = "renamed" // it has another id and is the same otherwise
)

// Diff is what differs between two definitions.
type Diff struct {
	Steps    []StepDiff
	Triggers []TriggerDiff
	Settings []FieldDiff
}

// Identical tells whether nothing differs that has a meaning.
func (d Diff) Identical() bool { return len(d.Steps)+len(d.Triggers)+len(d.Settings) == 0 }

// StepDiff is a step that differs. From and To are the step on both sides, nil
// where it is not there: without the steps inside it, which stand for
// themselves, and with needs written out and sorted.
type StepDiff struct {
	Edit   Edit
	ID     string // in the later definition, if it is there
	From   *Step
	To     *Step
	Fields []FieldDiff
	// FromBlock and ToBlock are the paths of the block it is in, "" at the top.
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

// FieldDiff is a member that differs, at its JSON pointer; nil where it is not
// there.
type FieldDiff struct {
	Pointer string
	From    json.RawMessage
	To      json.RawMessage
}

// Compare tells what differs between two definitions. Steps are the same when
// they have the same id, wherever they stand. What a step needs counts, not how
// it is written: needs that are left out are those of the order of the list.
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
	m, err := matchSteps(outline(from, "", ""), outline(to, "", ""))
	if err != nil {
		return nil, err
	}
	moved := m.moved()
	// What was removed is told after the step that it stood behind.
	removed, last := map[string][]StepDiff{}, ""
	for _, was := range m.from {
		if now, kept := m.forward[was.step.ID]; kept {
			last = now
			continue
		}
		removed[last] = append(removed[last], StepDiff{Edit: Removed, ID: was.step.ID, From: &was.step, FromBlock: was.path})
	}
	out := removed[""]
	for _, now := range m.to {
		diff := StepDiff{Edit: Added, ID: now.step.ID, To: &now.step, ToBlock: now.path}
		if was, kept := m.before(now); kept {
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

// editOf names what happened to a step that is on both sides, "" for nothing.
func editOf(was, now placed, moved, changed bool) Edit {
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

// compareTriggers compares triggers by id; their order has no meaning.
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

// compareFields compares the written form of two values member by member.
func compareFields(from, to any) ([]FieldDiff, error) {
	was, err := plainValue(from)
	if err != nil {
		return nil, err
	}
	now, err := plainValue(to)
	if err != nil {
		return nil, err
	}
	var c fieldComparer
	c.compare("", was, now)
	return c.out, c.err
}

// plainValue is the written form of a value, with numbers as they are written.
func plainValue(value any) (any, error) {
	text, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	return decodeExact(text)
}
