package workflow

import (
	"fmt"
	"maps"
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
	// workflow has them, and what follows.
	Timeout time.Duration
	Share   *Share
	// Secrets are the names of all secrets that steps refer to, sorted.
	Secrets []string
	// Vars tells whether any expression of a step reads a variable.
	Vars bool
	// Links tells whether any step refers to a link.
	Links bool
	// Triggers are in the order of the definition.
	Triggers []PlannedTrigger
	// Pins stand in for the steps of a draft that have one.
	Pins Pins
}

// Trigger returns the trigger with an id; nil when there is none.
func (p *Plan) Trigger(id string) *PlannedTrigger {
	for i := range p.Triggers {
		if p.Triggers[i].ID == id {
			return &p.Triggers[i]
		}
	}
	return nil
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
	// Secrets are the names that the step's own input and condition refer to,
	// sorted.
	Secrets []string
	// Links are the ids of the steps whose links the input refers to, sorted.
	Links []string
	// Pure says that the action has no effect with this input.
	Pure bool
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

// Names are what expressions of a workspace can refer to.
type Names struct {
	Secrets   []string
	Variables []string
}

// Find returns the step with an id, wherever it is; nil when there is none.
func (p *Plan) Find(id string) *PlannedStep {
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.ID == id {
			return step
		}
		if step.Block == nil {
			continue
		}
		if inner := step.Block.Body.Find(id); inner != nil {
			return inner
		}
	}
	return nil
}

// Compile checks a definition and makes it ready to run. It reports every
// problem at once; a plan is only returned when there are none. Names of
// secrets and variables are not looked up: they may come and go.
func Compile(d Definition, catalog *action.Catalog) (*Plan, []Problem) {
	c, plan := compile(d, catalog)
	if problems := c.reported(); len(problems) > 0 {
		return nil, problems
	}
	return plan, nil
}

// Check reports what keeps a definition from being saved: what Compile reports,
// and secrets and variables that do not exist. It asks for the known names only
// if the definition refers to any.
func Check(d Definition, catalog *action.Catalog, known func() (Names, error)) ([]Problem, error) {
	c, _ := compile(d, catalog)
	if len(c.secrets)+len(c.vars) > 0 {
		names, err := known()
		if err != nil {
			return nil, err
		}
		c.checkNames("secret", c.secrets, names.Secrets)
		c.checkNames("variable", c.vars, names.Variables)
	}
	return c.reported(), nil
}

func compile(d Definition, catalog *action.Catalog) (*compiler, *Plan) {
	c := &compiler{catalog: catalog, blocks: map[string]string{}, answered: map[string]bool{}}
	triggers := c.compileTriggers(d.Triggers)
	secrets, vars := len(c.secrets), len(c.vars)
	c.allVars = false
	c.checkIDs("/steps", d.Steps, "")
	plan := c.compileLevel("/steps", d.Steps, level{visible: map[string]bool{}, around: map[string]bool{}})
	c.compileSettings(d.Settings, plan)
	plan.Triggers = triggers
	plan.Links = c.links
	plan.Secrets, plan.Vars = union(nil, c.secrets[secrets:]), len(c.vars) > vars || c.allVars
	return c, plan
}

// reported are the problems in the order of the document.
func (c *compiler) reported() []Problem {
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return stepOf(a.Pointer) - stepOf(b.Pointer) })
	return c.problems
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
	secrets  []expr.Ref        // with pointers from the top
	vars     []expr.Ref
	allVars  bool
	links    bool
	problems []Problem
	answered map[string]bool // steps that can be answered
}

// level is where a list of steps stands: what it can refer to outside of itself.
type level struct {
	visible map[string]bool // steps outside that come before
	around  map[string]bool // steps of this list and of those that it is in
	item    bool            // inside a foreach
	index   bool            // inside any loop
	depth   int
	// In a trigger that polls: its answer, and how far it has come.
	response bool
	cursor   bool
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
	upstream, around := c.checkOrder(at, plan), maps.Clone(lv.around)
	for id := range index {
		around[id] = true
	}
	for i := range plan.Steps {
		inner := lv
		inner.around = around
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
