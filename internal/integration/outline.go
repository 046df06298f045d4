package integration

import (
	"slices"

	"github.com/stepmill/stepmill/internal/clock"
)

// Outline is what lists show of an operation or a trigger. Unlike these themselves, it is
// known before anybody needs one of them.
type Outline struct {
	Name    string
	Title   string
	Summary string
	// Hidden operations are not offered to people.
	Hidden bool
	// Every is how often a trigger looks for something new.
	Every      string
	Deprecated *Deprecation
}

// detail is what most integrations are never asked for: it is compiled when it is first
// needed.
type detail struct {
	operations []Operation
	triggers   []Trigger
	hooks      []Hook
}

// OperationOutlines returns the outlines of the operations, in the order of the file.
func (i *Integration) OperationOutlines() []Outline { return i.operations }

// TriggerOutlines returns the outlines of the triggers, in the order of the file.
func (i *Integration) TriggerOutlines() []Outline { return i.triggers }

// Operations returns the operations, in the order of the file.
func (i *Integration) Operations() []Operation { return i.detail().operations }

// Triggers returns the triggers, in the order of the file.
func (i *Integration) Triggers() []Trigger { return i.detail().triggers }

func findOutline(outlines []Outline, name string) (Outline, bool) {
	at := slices.IndexFunc(outlines, func(one Outline) bool { return one.Name == name })
	if at < 0 {
		return Outline{}, false
	}
	return outlines[at], true
}

func outlineNames(outlines []Outline) []string {
	var out []string
	for _, one := range outlines {
		out = append(out, one.Name)
	}
	return out
}

func (i *Integration) outline(m *manifest) {
	for _, o := range m.Operations {
		i.operations = append(i.operations, Outline{Name: o.name, Title: o.value.Title, Summary: o.value.Summary, Hidden: o.value.Hidden, Deprecated: o.value.Deprecated})
	}
	for _, t := range m.Triggers {
		one := Outline{Name: t.name, Title: t.value.Title, Summary: t.value.Summary, Deprecated: t.value.Deprecated}
		if t.value.Poll != nil {
			one.Every = t.value.Poll.Every
			if every, err := clock.ParseDuration(one.Every); err == nil {
				one.Every = clock.FormatDuration(every)
			}
		}
		i.triggers = append(i.triggers, one)
	}
}
