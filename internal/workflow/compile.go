package workflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

// Problem is something that keeps a definition from running.
type Problem = action.Problem

func text(p Problem) string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + " (" + p.Hint + ")"
}

// Plan is a list of steps made ready to run: references resolved, expressions
// compiled. It does not change and can be shared.
type Plan struct {
	Steps []PlannedStep
	// Timeout and Share come from the settings; only the plan of a whole
	// workflow has them.
	Timeout time.Duration
	Share   *Share
}

// PlannedStep is a step with what it refers to.
type PlannedStep struct {
	Step
	// After are the indices of the steps that it needs.
	After  []int
	Input  *expr.Value
	When   *expr.Program // nil: always
	Action action.Entry
	// Limit bounds one attempt, Policy says what follows a passing failure.
	Limit  time.Duration
	Policy Policy
	// Block is set for a step that holds steps.
	Block *Block
}

// Block is the inside of a loop.
type Block struct {
	Body *Plan
	// Items is the list that is looped over, nil for one that is repeated.
	Items    *expr.Program
	Parallel int
	Until    *expr.Program
	Every    time.Duration
	Max      int
}

// Compile checks a definition and makes it ready to run. It reports every
// problem at once; a plan is only returned when there are none.
func Compile(d Definition, catalog *action.Catalog) (*Plan, []Problem) {
	c := &compiler{catalog: catalog, blocks: map[string]string{}}
	c.checkTriggers(d.Triggers)
	c.checkIDs("/steps", d.Steps, "")
	plan := c.compileLevel("/steps", d.Steps, level{visible: map[string]bool{}})
	c.compileSettings(d.Settings, plan)
	if len(c.problems) > 0 {
		slices.SortStableFunc(c.problems, func(a, b Problem) int { return stepOf(a.Pointer) - stepOf(b.Pointer) })
		return nil, c.problems
	}
	return plan, nil
}

// stepOf is the position of the top-level step that a pointer leads into, so
// that problems can be told in the order of the document.
func stepOf(pointer string) int {
	rest, found := strings.CutPrefix(pointer, "/steps/")
	if !found {
		return -1
	}
	number, _, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

type compiler struct {
	catalog  *action.Catalog
	names    []string
	blocks   map[string]string // of each step, the id of the block it is in
	problems []Problem
}

// level is where a list of steps stands: what it can refer to outside of itself.
type level struct {
	visible map[string]bool // steps outside that come before
	item    bool            // inside a foreach
	index   bool            // inside any loop
	depth   int
}

func (c *compiler) report(pointer, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// compileLevel compiles a list of steps: the top, or the body of a block.
func (c *compiler) compileLevel(at string, steps []Step, lv level) *Plan {
	plan := &Plan{Steps: make([]PlannedStep, len(steps))}
	index := map[string]int{}
	for i, step := range steps {
		if _, taken := index[step.ID]; !taken {
			index[step.ID] = i
		}
	}
	for i, step := range steps {
		plan.Steps[i] = PlannedStep{Step: step, After: c.needs(fmt.Sprintf("%s/%d", at, i), i, step, index)}
	}
	upstream := c.checkOrder(at, plan)
	for i := range plan.Steps {
		inner := lv
		inner.visible = map[string]bool{}
		for id := range lv.visible {
			inner.visible[id] = true
		}
		for before := range upstream[i] {
			inner.visible[steps[before].ID] = true
		}
		c.compileStep(fmt.Sprintf("%s/%d", at, i), &plan.Steps[i], inner)
	}
	return plan
}
