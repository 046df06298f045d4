package workflow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
)

// Problem is a reason why a definition cannot run.
type Problem = action.Problem

func problemText(p Problem) string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + " (" + p.Hint + ")"
}

// Program is a compiled list of steps: references are resolved and expressions
// compiled. It is immutable and can be shared.
type Program struct {
	Steps []CompiledStep
	// Timeout and Concurrency come from the settings. Only the program of a whole
	// workflow, not that of a block, has them and the fields below.
	Timeout     time.Duration
	Concurrency *ConcurrencyLimit
	// Secrets are the sorted names of all secrets that steps refer to.
	Secrets []string
	// Connections are the sorted names of all connections that steps and triggers use.
	Connections []string
	// Vars reports whether any expression of a step reads a variable.
	Vars bool
	// Links reports whether any step refers to a link.
	Links bool
	// Random reports whether any expression of a step uses random values.
	Random bool
	// Level is the release that the definition needs.
	Level int
	// Files reports whether steps or pins refer to files.
	Files bool
	// Triggers are in the order of the definition.
	Triggers []CompiledTrigger
	// Pins replace the outputs of pinned steps in a draft.
	Pins Pins
	// Masks are the paths into the outputs of steps whose values are masked, by the id
	// of the step.
	Masks map[string][]mask.Path
}

// Trigger returns the trigger with the given id, or nil.
func (p *Program) Trigger(id string) *CompiledTrigger {
	for i := range p.Triggers {
		if p.Triggers[i].ID == id {
			return &p.Triggers[i]
		}
	}
	return nil
}

// CompiledStep is a step with its compiled expressions and its action.
type CompiledStep struct {
	Step
	// After are the steps, or paths out of them, that it needs, with what the disabled ones
	// among them need. These only have to be skipped before it starts.
	After []Need
	// Handled reports whether a step needs the error path out of this one, so that its
	// failure is not that of the run.
	Handled bool
	Input   *expr.Value
	When    *expr.Program // nil: always
	Action  action.Entry
	checker *action.Catalog // nil if the action cannot be used any more
	// Limit is the timeout of one attempt; Policy says how the step is retried.
	Limit  time.Duration
	Policy Policy
	// Secrets are the sorted names that the step's own input and condition refer
	// to.
	Secrets []string
	// Links are the sorted ids of the steps whose links the input refers to.
	Links []string
	// Pure reports whether the action has no side effects with this input.
	Pure bool
	// Masked are the paths into the output whose values are masked.
	Masked []mask.Path
	// Block is set for a step that contains steps.
	Block *Block
	// Switch is set for a switch. Its conditions are not part of Input.
	Switch *Switch
}

// Tolerated reports whether the run, or the round, can succeed although the step failed.
func (s *CompiledStep) Tolerated() bool { return s.OnError == Continue || s.Handled }

// CheckInput validates an input against the schema of the action, once all values are known.
func (s *CompiledStep) CheckInput(input map[string]any) []Problem {
	if s.checker == nil { // the action cannot be used any more, which it says itself
		return nil
	}
	return s.checker.Check(s.Uses, input, func(string) bool { return false })
}

// Block is a compiled loop.
type Block struct {
	Body *Program
	// Items is the list of a foreach; nil for a repeat.
	Items    *expr.Program
	Parallel int
	Until    *expr.Program
	Every    time.Duration
	Max      int
}

// Names are the names in a workspace that a definition can refer to.
type Names struct {
	Secrets     []string
	Variables   []string
	Connections []ConnectionName
}

// ConnectionName is a name that a definition can use for a connection.
type ConnectionName struct {
	Name string
	// Now is the present name of the connection. Name may be one that it had before.
	Now string
	// Integration is the id of its integration, "" for a custom connection.
	Integration string
	// Closed is set if the caller may not use the connection.
	Closed bool
}

// Find returns the step with the given id, at any depth, or nil.
func (p *Program) Find(id string) *CompiledStep {
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

// Compile checks and compiles a definition. It reports all problems at once and
// returns a program only if there are none. It does not look up secrets, variables
// and connections, since they may be created or deleted at any time, and it does not
// run slow checks, which a saved workflow has passed.
func Compile(d Definition, catalog *action.Catalog, types *TriggerTypes) (*Program, []Problem) {
	return Vocabulary{Actions: catalog, Types: types}.compile(d)
}

func (v Vocabulary) compile(d Definition) (*Program, []Problem) {
	c, program := compile(d, v)
	if problems := c.sortedProblems(); len(problems) > 0 {
		return nil, problems
	}
	return program, nil
}

// Check reports why a definition cannot replace another one in a workspace: the problems
// that Compile and slow checks report, secrets, variables and connections that do not
// exist, and steps and triggers that are new or changed and use a connection that the
// caller may not use. It calls known only if the definition refers to any. Without
// problems it returns the level of the definition.
func Check(
	ctx context.Context, was, d Definition, catalog *action.Catalog, types *TriggerTypes, workspaceID string, known func() (Names, error),
) (problems []Problem, level int, err error) {
	c, _ := compile(d, Vocabulary{Actions: catalog, Types: types})
	if err := c.runSlowChecks(ctx, workspaceID); err != nil {
		return nil, 0, err
	}
	if len(c.secrets)+len(c.vars)+len(c.connections) > 0 {
		names, err := known()
		if err != nil {
			return nil, 0, err
		}
		c.checkNames("secret", c.secrets, names.Secrets)
		c.checkNames("variable", c.vars, names.Variables)
		c.checkConnections(names.Connections)
		if err := c.checkAccess(was, d, names.Connections); err != nil {
			return nil, 0, err
		}
	}
	if problems = c.sortedProblems(); len(problems) > 0 {
		return problems, 0, nil
	}
	level, err = c.level(d)
	return nil, level, err
}

// slowCheck is a step whose input needs a slow check.
type slowCheck struct {
	at    string // the pointer of the input
	spec  action.Spec
	input map[string]any
}

// runSlowChecks reports the problems that slow checks find.
func (c *compiler) runSlowChecks(ctx context.Context, workspaceID string) error {
	for _, check := range c.slowChecks {
		problems, err := check.spec.SlowCheck(ctx, workspaceID, check.input)
		if err != nil {
			return err
		}
		deferred := templated(check.input)
		for _, problem := range problems {
			if !deferred(problem.Pointer) {
				c.report(check.at+problem.Pointer, problem.Hint, "%s", problem.Message)
			}
		}
	}
	return nil
}

func compile(d Definition, v Vocabulary) (*compiler, *Program) {
	c := &compiler{catalog: v.Actions, types: v.Types, own: v.own, files: d.Files, blocks: map[string]string{}, answerable: map[string]bool{}, masks: map[string][]mask.Path{}, integrations: map[string]needed{}}
	triggers := c.compileTriggers(d.Triggers)
	secrets, vars := len(c.secrets), len(c.vars)
	c.allVars = false
	c.checkIDs("/steps", d.Steps, "")
	program := c.compileSteps("/steps", d.Steps, scope{visible: map[string]bool{}, enclosing: map[string]bool{}, random: true})
	c.compileSettings(d.Settings, program)
	program.Triggers = triggers
	program.Level = d.Level
	program.Links, program.Random, program.Masks, program.Files = c.links, c.random, c.masks, len(d.Files) > 0
	program.Connections = mergeNames(nil, c.connections)
	program.Secrets, program.Vars = mergeNames(nil, c.secrets[secrets:]), len(c.vars) > vars || c.allVars
	return c, program
}

// sortedProblems returns the problems in document order.
func (c *compiler) sortedProblems() []Problem {
	sortProblems(c.problems)
	return c.problems
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return topLevelIndex(a.Pointer) - topLevelIndex(b.Pointer) })
}

// topLevelIndex returns the index of the top-level step that a pointer leads
// into, or -1.
func topLevelIndex(pointer string) int {
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
	catalog     *action.Catalog
	types       *TriggerTypes
	own         func(name string) bool // of the Vocabulary
	files       References
	names       []string
	blocks      map[string]string // by step id, the id of its block
	secrets     []expr.Ref        // with pointers from the document root
	vars        []expr.Ref
	connections []expr.Ref
	// integrations has the connections that must belong to an integration, by pointer.
	integrations map[string]needed
	allVars      bool
	links        bool
	random       bool
	words        []string // of all expressions, each once
	problems     []Problem
	slowChecks   []slowCheck
	answerable   map[string]bool // by step id: waits for an answer
	masks        map[string][]mask.Path
}

// scope is what the expressions of a list of steps can refer to.
type scope struct {
	visible   map[string]bool // steps that end before
	enclosing map[string]bool // steps of this list and of the lists around it
	item      bool            // inside a foreach
	index     bool            // inside any loop
	random    bool            // in a step
	previous  bool            // inside a repeat
	depth     int
	// Only in a trigger.
	response bool
	cursor   bool
}

func (c *compiler) report(pointer, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// compileSteps compiles the top-level steps or the body of a block.
func (c *compiler) compileSteps(at string, steps []Step, sc scope) *Program {
	program := &Program{Steps: make([]CompiledStep, len(steps))}
	index := map[string]int{}
	for i, step := range steps {
		if _, taken := index[step.ID]; !taken {
			index[step.ID] = i
		}
	}
	for i, step := range steps {
		program.Steps[i] = CompiledStep{Step: step, After: c.resolveNeeds(fmt.Sprintf("%s/%d", at, i), i, steps, index)}
	}
	upstream, enclosing := c.checkOrder(at, program), maps.Clone(sc.enclosing)
	program.inheritNeeds()
	program.markHandled()
	for id := range index {
		enclosing[id] = true
	}
	for i := range program.Steps {
		inner := sc
		inner.enclosing = enclosing
		inner.visible = map[string]bool{}
		for id := range sc.visible {
			inner.visible[id] = true
		}
		for before := range upstream[i] {
			inner.visible[steps[before].ID] = true
		}
		c.compileStep(fmt.Sprintf("%s/%d", at, i), &program.Steps[i], inner)
	}
	return program
}
