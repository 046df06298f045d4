package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/run"
)

// comparison compares a finished run with the model.
type comparison struct {
	seen     map[string]run.Step
	left     map[string]bool // paths that were not compared yet
	attempts map[string]int  // number of earlier attempts by path
	cut      bool            // the run was ended from outside, or by a step
	problems []string
}

// compare returns the differences between a run and the model. Values of a run that
// reads steps too early are not compared, because they depend on timing.
func compare(s *sketch, by string, d run.Detail) []string {
	c := &comparison{seen: map[string]run.Step{}, left: map[string]bool{}, attempts: map[string]int{}}
	for _, step := range d.Steps {
		c.seen[step.Path], c.left[step.Path] = step, true
		if !step.Status.Settled() {
			c.problem("%s is %s in a run that is %s", step.Path, step.Status, d.Status)
		}
	}
	for _, a := range d.Attempts {
		c.attempts[a.Path]++
	}
	if s.racy {
		return c.problems
	}
	expected := (&model{by: by}).frame("", s.parts, scope{steps: map[string]*expectation{}})
	stopped := c.stopped(s, d)
	c.cut = d.Status == run.Cancelled || stopped
	c.frame("", s.parts, expected, c.cut)
	for path := range c.left {
		c.problem("%s is %s, but should not exist", path, c.seen[path].Status)
	}
	if !c.cut {
		if alwaysStops(s.parts, expected) {
			c.problem("no step has stopped the run")
		}
		c.ending(d, countedFailures(s.parts, expected))
	}
	return c.problems
}

func (c *comparison) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// stopped reports whether a step stopped the run, and checks that the run ended as the
// step says.
func (c *comparison) stopped(s *sketch, d run.Detail) bool {
	for _, step := range d.Steps {
		p, _ := s.find(step.Path)
		if p == nil || p.behavior.kind != "stop" || step.Status != run.StepSucceeded {
			continue
		}
		if string(d.Status) != p.behavior.text {
			c.problem("the run is %s although %s stopped it as %s", d.Status, step.Path, p.behavior.text)
		}
		if d.Status == run.Failed && (d.Error == nil || d.Error.Code != run.CodeStopped || d.Error.StepID != step.Path) {
			c.problem("the run failed with %+v although %s stopped it", d.Error, step.Path)
		}
		return true
	}
	return false
}

// alwaysStops reports whether a step stops the run regardless of timing.
func alwaysStops(parts []*part, expected map[string]*expectation) bool {
	for _, p := range parts {
		f := expected[p.id]
		if p.behavior.kind == "stop" && f.status == "succeeded" {
			return true
		}
		for i := 0; p.loop != nil && i < f.least; i++ {
			if alwaysStops(p.loop.body, f.rounds[i]) {
				return true
			}
		}
	}
	return false
}

func (c *comparison) ending(d run.Detail, causes []cause) {
	switch {
	case len(causes) == 0 && d.Status != run.Succeeded:
		c.problem("the run is %s (%+v), but no step makes it fail", d.Status, d.Error)
	case len(causes) > 0 && d.Status != run.Failed:
		c.problem("the run is %s, but should fail because of one of %v", d.Status, causes)
	case len(causes) > 0 && !slices.Contains(causes, cause{d.Error.Code, d.Error.StepID}):
		c.problem("the run failed because of %+v, not of one of %v", *d.Error, causes)
	}
}

// frame compares one pass through a list of steps. When it was cut short, steps
// may be missing or cancelled.
func (c *comparison) frame(prefix string, parts []*part, expected map[string]*expectation, cut bool) {
	for _, p := range parts {
		path, f := prefix+p.id, expected[p.id]
		step, there := c.seen[path]
		delete(c.left, path)
		switch {
		case !there && cut:
			continue
		case !there:
			c.problem("%s is missing; it should be %s", path, f.status)
			continue
		case cut && step.Status == run.StepCancelled:
			if f.status == "skipped" {
				c.problem("%s was cancelled, but should not have started", path)
			}
		default:
			c.step(step, f)
		}
		if p.loop != nil {
			c.rounds(path, p, f, step.Status == run.StepCancelled)
		}
	}
}

func (c *comparison) rounds(path string, p *part, f *expectation, cut bool) {
	begun := 0
	for seen := range c.seen {
		rest, inside := strings.CutPrefix(seen, path+"[")
		var n int
		if _, err := fmt.Sscanf(rest, "%d", &n); inside && err == nil {
			begun = max(begun, n+1)
		}
	}
	if begun > f.most || begun < f.least && !cut {
		c.problem("%s started %d rounds, want %d to %d", path, begun, f.least, f.most)
	}
	for i := range min(begun, f.most) {
		c.frame(fmt.Sprintf("%s[%d].", path, i), p.loop.body, f.rounds[i], cut)
	}
}

func (c *comparison) step(step run.Step, f *expectation) {
	if string(step.Status) != f.status {
		c.problem("%s is %s (%+v), but should be %s", step.Path, step.Status, step.Error, f.status)
		return
	}
	earlier := c.attempts[step.Path]
	if strings.HasPrefix(step.Reason, "copied from") {
		earlier = max(0, step.Attempt-1) // they belong to the retried run
	}
	if step.Attempt != f.attempt || earlier != max(0, f.attempt-1) {
		c.problem("%s has attempt %d and %d before it; it should be %d", step.Path, step.Attempt, c.attempts[step.Path], f.attempt)
	}
	if !matches(f.output, step.Output) {
		c.problem("%s has the output %s; it should be %v", step.Path, step.Output, f.output)
	}
	code := ""
	if step.Error != nil {
		code = step.Error.Code
	}
	if !slices.ContainsFunc(f.causes, func(c cause) bool { return c.code == code }) && (code != "" || f.status == "failed") {
		c.problem("%s failed with %q, which is none of %v", step.Path, code, f.causes)
	}
}

// matches reports whether an output is as expected.
func matches(want any, got json.RawMessage) bool {
	if got == nil {
		return want == nil
	}
	var value any
	return json.Unmarshal(got, &value) == nil && alike(want, value)
}

func alike(want, got any) bool {
	switch want := want.(type) {
	case anyOutput:
		return got != nil
	case int:
		return got == float64(want)
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(want, list, alike)
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || len(object) != len(want) {
			return false
		}
		for key, value := range want {
			found, there := object[key]
			if !there || !alike(value, found) {
				return false
			}
		}
		return true
	}
	return want == got
}
