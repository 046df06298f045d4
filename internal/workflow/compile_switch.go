package workflow

import (
	"fmt"
	"slices"

	"github.com/stepmill/stepmill/internal/expr"
)

// switchAction is the action that chooses between paths. The engine evaluates its conditions.
const switchAction = "flow.switch"

// Took reports whether a switch with this output took a path.
func Took(output map[string]any, path string) bool {
	paths, _ := output["paths"].([]any)
	return output["path"] == path || slices.Contains(paths, any(path))
}

// Switch is the compiled input of a switch.
type Switch struct {
	Paths []SwitchPath
	Else  string
	// All reports whether every path whose condition is true is taken.
	All bool
}

// SwitchPath is a path of a switch with its condition.
type SwitchPath struct {
	ID, Name string
	When     *expr.Program
}

// pathIDs returns the ids of the paths of a switch as far as its input can be read; nil for
// any other step.
func pathIDs(step Step) []string {
	if step.Uses != switchAction {
		return nil
	}
	input, err := decodeInput(step.With)
	if err != nil {
		return nil
	}
	ids := []string{}
	paths, _ := input["paths"].([]any)
	for _, each := range append(paths, map[string]any{"id": input["else"]}) {
		path, _ := each.(map[string]any)
		if id, _ := path["id"].(string); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// compileSwitch compiles the conditions of a switch and removes them from its input: they are
// expressions without ${{ }}, and those after the first that is true are not evaluated. What
// does not match the schema is reported elsewhere.
func (c *compiler) compileSwitch(at string, compiled *CompiledStep, input map[string]any, sc scope) {
	out := &Switch{All: input["match"] == "all"}
	compiled.Switch = out
	paths, _ := input["paths"].([]any)
	seen := map[string]bool{}
	for i, each := range paths {
		path, _ := each.(map[string]any)
		here := fmt.Sprintf("%s/paths/%d", at, i)
		one := SwitchPath{}
		one.ID, _ = path["id"].(string)
		one.Name, _ = path["name"].(string)
		c.checkPathID(here+"/id", one.ID)
		if seen[one.ID] && one.ID != "" {
			c.report(here+"/id", "", "the path %q is listed twice", one.ID)
		}
		seen[one.ID] = true
		one.When = c.compilePathCondition(here+"/when", path["when"], sc)
		delete(path, "when")
		if one.When != nil {
			compiled.Secrets = mergeNames(compiled.Secrets, one.When.Refs().Secrets)
		}
		out.Paths = append(out.Paths, one)
	}
	out.Else, _ = input["else"].(string)
	c.checkPathID(at+"/else", out.Else)
	if slices.ContainsFunc(out.Paths, func(p SwitchPath) bool { return p.ID == out.Else && out.Else != "" }) {
		c.report(at+"/else", "", "must be a path of its own, not one with a condition")
	}
}

func (c *compiler) checkPathID(at, id string) {
	if id == ErrorPath {
		c.report(at, "choose another id", "%q is the path that is taken when the step fails", ErrorPath)
	}
}

// compilePathCondition compiles a condition, which is a text, true or false.
func (c *compiler) compilePathCondition(at string, when any, sc scope) *expr.Program {
	switch value := when.(type) {
	case bool:
		return c.compileExpr(at, fmt.Sprint(value), sc)
	case string:
		if value != "" {
			return c.compileExpr(at, value, sc)
		}
	}
	return nil
}
