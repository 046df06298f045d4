package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/suggest"
)

var idPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

const idRule = "must start with a letter a-z and contain only a-z, 0-9 and _, at most 63 characters"

// checkIDs checks that ids are valid and unique in the whole workflow.
func (c *compiler) checkIDs(at string, steps []Step, block string) {
	for i, step := range steps {
		here := fmt.Sprintf("%s/%d", at, i)
		_, taken := c.blocks[step.ID]
		switch {
		case !idPattern.MatchString(step.ID):
			c.report(here+"/id", "", idRule)
		case taken:
			c.report(here+"/id", "", "the id %q is already used by another step", step.ID)
		default:
			c.blocks[step.ID] = block
			entry, _ := c.catalog.Find(step.Uses)
			c.answerable[step.ID] = entry.Spec.Answerable
			c.names = append(c.names, step.ID)
		}
		c.checkIDs(here+"/steps", step.Steps, step.ID)
	}
}

func (c *compiler) compileStep(at string, compiled *CompiledStep, sc scope) {
	step := compiled.Step
	if utf8.RuneCountInString(step.Name) > maxName {
		c.report(at+"/name", "", "must have at most %d characters", maxName)
	}
	if step.Join != "" && !slices.Contains([]Join{AnyRan, All, Always, First}, step.Join) {
		c.report(at+"/join", "", "must be one of any_ran, all, always, first")
	}
	if step.OnError != "" && step.OnError != Fail && step.OnError != Continue {
		c.report(at+"/on_error", "", "must be fail or continue")
	}
	if step.If != "" {
		compiled.When = c.compileExpr(at+"/if", string(step.If), sc)
	}
	if compiled.When != nil {
		compiled.Secrets = mergeNames(nil, compiled.When.Refs().Secrets)
	}
	if step.isBlock() {
		c.compileBlock(at, compiled, sc)
		return
	}
	compiled.Limit, compiled.Policy = c.stepTimeout(at, step), c.retryPolicy(at, step)
	problems := len(c.problems)
	c.compileAction(at, compiled, sc)
	if because, changed := c.changed(step.Uses, problems); changed {
		compiled.Action, compiled.checker = broken(step.Uses, because), nil
	}
}

// compileBare compiles an expression without checking its references.
func (c *compiler) compileBare(at, source string) *expr.Program {
	program, err := expr.CompileBare(source)
	if err != nil {
		c.reportExpr(at, err)
		return nil
	}
	return program
}

// compileExpr compiles an expression and checks its references.
func (c *compiler) compileExpr(at, source string, sc scope) *expr.Program {
	program := c.compileBare(at, source)
	if program != nil {
		c.checkRefs(at, program.Refs(), sc)
	}
	return program
}

// compileLoopExpr is compileExpr for a result that is recorded in plain text.
func (c *compiler) compileLoopExpr(at, source string, sc scope) *expr.Program {
	program := c.compileBare(at, source)
	if program != nil {
		c.checkRefs(at, c.rejectSecrets(at, program.Refs(), "the rounds of a loop are recorded in plain text"), sc)
	}
	return program
}

func (c *compiler) compileAction(at string, compiled *CompiledStep, sc scope) {
	if compiled.Uses == "" {
		c.report(at+"/uses", "", "is required")
		return
	}
	entry, known := c.catalog.Find(compiled.Uses)
	if !known {
		hint := ""
		if near := c.catalog.Hint(compiled.Uses); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		c.report(at+"/uses", hint, "unknown action %q", compiled.Uses)
	}
	compiled.Action, compiled.checker = entry, c.catalog
	if compiled.Timeout == "" && entry.Spec.Timeout > 0 {
		compiled.Limit = entry.Spec.Timeout
	}
	c.compileMask(at, compiled)
	c.checkStepConnection(at, compiled.Step, entry.Spec)
	input, err := decodeInput(compiled.With)
	if err != nil {
		c.report(at+"/with", "", "must be an object")
		return
	}
	c.files.place(input, at+"/with")
	var problems []Problem
	if known {
		problems = c.catalog.Check(compiled.Uses, input, templated(input))
	}
	if compiled.Uses == switchAction {
		c.compileSwitch(at+"/with", compiled, input, sc)
	}
	value, err := expr.CompileValue(input, escapes(entry.Spec))
	if err != nil {
		c.reportExpr(at+"/with", err)
	} else {
		c.checkInput(at+"/with", compiled, value.Refs(), sc)
	}
	compiled.Input = value
	if !known {
		return
	}
	compiled.Pure = entry.Spec.Pure && !slices.ContainsFunc(entry.Spec.Effects, func(field string) bool {
		_, given := input[field]
		return given
	})
	for _, problem := range problems {
		c.report(at+"/with"+problem.Pointer, problem.Hint, "%s", problem.Message)
	}
	if entry.Spec.SlowCheck != nil && len(problems) == 0 {
		c.slowChecks = append(c.slowChecks, slowCheck{at + "/with", entry.Spec, input})
	}
}

func escapes(spec action.Spec) map[string]expr.Escape {
	out := make(map[string]expr.Escape, len(spec.URLs)+len(spec.XML))
	for _, pointer := range spec.URLs {
		out[pointer] = expr.EscapeURL
	}
	for _, pointer := range spec.XML {
		out[pointer] = expr.EscapeXML
	}
	return out
}

func decodeInput(raw json.RawMessage) (map[string]any, error) {
	if raw == nil {
		return map[string]any{}, nil
	}
	value, err := expr.FromJSON(raw)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return object, nil
}

// reportExpr reports the problems of the expressions below a pointer.
func (c *compiler) reportExpr(at string, err error) {
	if many, ok := errors.AsType[expr.Errors](err); ok {
		for _, e := range many {
			c.report(at+e.Pointer, "", "%s (column %d)", e.Message, e.Column)
		}
		return
	}
	if single, ok := errors.AsType[*expr.Error](err); ok {
		c.report(at+single.Pointer, "", "%s (column %d)", single.Message, single.Column)
		return
	}
	c.report(at, "", "%s", err)
}

// resolveNeeds returns what a step needs. Without needs, that is the previous step in the
// list.
func (c *compiler) resolveNeeds(at string, i int, steps []Step, index map[string]int) []Need {
	if steps[i].Needs == nil {
		if i == 0 {
			return nil
		}
		return []Need{{Step: i - 1}}
	}
	var after []Need
	for n, text := range *steps[i].Needs {
		place := fmt.Sprintf("%s/needs/%d", at, n)
		id, path := SplitNeed(text)
		position, known := index[id]
		need := Need{position, path}
		_, elsewhere := c.blocks[id]
		switch {
		case !known && elsewhere:
			c.report(place, "", "step %q is not in this list of steps: steps inside and outside a block cannot need each other", id)
		case !known:
			c.report(place, c.didYouMean(id), "there is no step %q", id)
		case position == i:
			c.report(place, "", "a step cannot need itself")
		case slices.Contains(after, need):
			c.report(place, "", "%q is listed twice", text)
		case !c.checkPath(place, text, steps[position]):
		default:
			after = append(after, need)
		}
	}
	return after
}

// checkPath reports whether a step has the path that a need refers to.
func (c *compiler) checkPath(at, need string, step Step) bool {
	id, path := SplitNeed(need)
	if path == ErrorPath || id == need {
		return true
	}
	paths := pathIDs(step)
	switch {
	case slices.Contains(paths, path):
		return true
	case paths == nil:
		c.report(at, fmt.Sprintf("write %q, or %q for what happens if it fails", id, id+"."+ErrorPath), "step %q has no paths: it is not a flow.switch", id)
	default:
		c.report(at, didYouMean(path, append(paths, ErrorPath)), "step %q has no path %q", id, path)
	}
	return false
}

func (c *compiler) didYouMean(id string) string { return didYouMean(id, c.names) }

func didYouMean(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}
