package workflow

import (
	"slices"
	"strings"
)

// Need is a step that another one comes after, or a path out of it.
type Need struct {
	Step int // its index in the list
	// Path is the id of a path of a switch, [ErrorPath], or "" for the step as a whole.
	Path string
}

// ErrorPath is the path out of a step that is taken when the step has failed.
const ErrorPath = "error"

// needPattern matches an entry of `needs`.
const needPattern = `^[a-z][a-z0-9_]{0,62}(\.[a-z][a-z0-9_]{0,62})?$`

// SplitNeed returns the step and the path, if any, that an entry of `needs` refers to.
func SplitNeed(need string) (id, path string) {
	id, path, _ = strings.Cut(need, ".")
	return id, path
}

// need returns an entry of `needs` as it is written.
func (p *Program) need(n Need) string {
	id := p.Steps[n.Step].ID
	if n.Path == "" {
		return id
	}
	return id + "." + n.Path
}

// inheritNeeds makes the steps after a disabled one come after what that step needs as well.
// A path out of a disabled step is never taken, so what needs it is skipped.
func (p *Program) inheritNeeds() {
	for i := range p.Steps {
		if slices.ContainsFunc(p.Steps[i].After, p.passesThrough) {
			p.Steps[i].After = p.inherited(p.Steps[i].After)
		}
	}
}

// passesThrough reports whether a need refers to a disabled step as a whole.
func (p *Program) passesThrough(n Need) bool { return n.Path == "" && p.Steps[n.Step].Disabled }

// inherited adds what disabled steps need to needs of them.
func (p *Program) inherited(needs []Need) []Need {
	var out []Need
	seen := map[Need]bool{}
	var add func([]Need)
	add = func(needs []Need) {
		for _, n := range needs {
			if seen[n] {
				continue
			}
			seen[n] = true
			out = append(out, n)
			if p.passesThrough(n) {
				add(p.Steps[n.Step].After)
			}
		}
	}
	add(needs)
	return out
}

// markHandled notes the steps whose failure another step handles.
func (p *Program) markHandled() {
	for _, step := range p.Steps {
		for _, n := range step.After {
			if n.Path == ErrorPath && !step.Disabled {
				p.Steps[n.Step].Handled = true
			}
		}
	}
}
