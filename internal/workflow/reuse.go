package workflow

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/stepmill/stepmill/internal/expr"
)

// Reuse says how much of a step's result under one version of its workflow is
// still valid under another version.
type Reuse int

// The degrees, from nothing to everything.
const (
	// ReuseNothing means that the step is new, or that it or a step it depends on
	// changed.
	ReuseNothing Reuse = iota
	// ReuseRounds means that the step is a foreach with an unchanged list, but
	// steps inside it changed. Its result is not valid, but the results of unchanged
	// steps in its rounds are.
	ReuseRounds
	// ReuseSuccess means that only timeout, retry, on_error or parallel changed.
	// They decide what happens when an attempt fails and how fast a loop runs, so
	// a success is still valid and a failure is not.
	ReuseSuccess
	// ReuseAll means that nothing the result depends on changed.
	ReuseAll
)

// ReusableSteps compares two programs of a workflow and returns, by step id, what
// a run of the earlier program can reuse under the later one. Nothing of a step
// that is missing from the map can be reused.
//
// A step depends on its own fields, on the steps it needs and those that they
// need, and on the blocks around it. Its display name does not matter. An
// expression that reads workflow.version has another value under another version.
// An expression that selects a step by a name known only at run time may read any
// step, so it depends on all of them. Triggers and settings do not affect the
// result of a step.
func ReusableSteps(from, to *Program) map[string]Reuse {
	c := reuseChecker{pins: from.Pins, out: map[string]Reuse{}}
	if c.list(from, to) < ReuseAll {
		c.dynamicChanged, c.out = true, map[string]Reuse{}
		c.list(from, to)
	}
	return c.out
}

type reuseChecker struct {
	pins Pins // pinned outputs that the run used instead of results
	out  map[string]Reuse
	// dynamicChanged is set if any step changed, which also changes every
	// expression that may read any step.
	dynamicChanged bool
}

// list compares two lists of steps: the top-level steps, or the bodies of a
// block. It returns how much of the whole list can be reused.
func (c *reuseChecker) list(from, to *Program) Reuse {
	l := listReuse{reuseChecker: c, from: from, to: to, known: make([]*Reuse, len(to.Steps))}
	least := ReuseAll
	for i := range to.Steps {
		least = min(least, l.step(i))
	}
	if len(from.Steps) != len(to.Steps) {
		return ReuseNothing
	}
	return least
}

type listReuse struct {
	*reuseChecker
	from, to *Program
	known    []*Reuse // by position in to
}

func (l *listReuse) step(i int) Reuse {
	if l.known[i] == nil {
		reuse := l.compare(i)
		l.known[i] = &reuse
		if reuse > ReuseNothing {
			l.out[l.to.Steps[i].ID] = reuse
		}
	}
	return *l.known[i]
}

// compare compares a step and everything that it depends on in its list. It is
// called only if the enclosing blocks are the same.
func (l *listReuse) compare(i int) Reuse {
	now := &l.to.Steps[i]
	at := slices.IndexFunc(l.from.Steps, func(s CompiledStep) bool { return s.ID == now.ID })
	if at < 0 {
		return ReuseNothing
	}
	for _, need := range now.After {
		if l.step(need.Step) < ReuseSuccess {
			return ReuseNothing
		}
	}
	was := &l.from.Steps[at]
	if _, pinned := l.pins[now.ID]; pinned || l.volatile(now) || !slices.Equal(l.from.needsOf(at), l.to.needsOf(i)) || !sameResult(was, now) {
		return ReuseNothing
	}
	own := ReuseAll
	if !sameHandling(was, now) {
		own = ReuseSuccess
	}
	if now.Block == nil {
		return own
	}
	switch inside := l.list(was.Block.Body, now.Block.Body); {
	case inside >= ReuseSuccess:
		return min(own, inside)
	case now.Block.Items != nil:
		return ReuseRounds
	}
	l.forget(now.Block.Body) // a repeat starts over
	return ReuseNothing
}

// volatile reports whether the step reads a value that differs between the two
// versions even if its own fields are the same.
func (l *listReuse) volatile(s *CompiledStep) bool {
	refs := s.refs()
	return refs.Version || refs.AllSteps && l.dynamicChanged
}

// forget removes the steps of a body from the result.
func (l *listReuse) forget(body *Program) {
	for i := range body.Steps {
		delete(l.out, body.Steps[i].ID)
		if block := body.Steps[i].Block; block != nil {
			l.forget(block.Body)
		}
	}
}

// needsOf returns what a step needs as it is written, sorted.
func (p *Program) needsOf(i int) []string {
	var needs []string
	for _, need := range p.Steps[i].After {
		needs = append(needs, p.need(need))
	}
	slices.Sort(needs)
	return needs
}

// refs returns the references of the step's own expressions.
func (s *CompiledStep) refs() expr.Refs {
	var refs expr.Refs
	if s.Input != nil {
		refs = refs.And(s.Input.Refs())
	}
	programs := []*expr.Program{s.When}
	if s.Switch != nil {
		for _, path := range s.Switch.Paths {
			programs = append(programs, path.When)
		}
	}
	if s.Block != nil {
		programs = append(programs, s.Block.Items, s.Block.Until)
	}
	for _, program := range programs {
		if program != nil {
			refs = refs.And(program.Refs())
		}
	}
	return refs
}

// sameResult reports whether two steps agree in the fields that decide whether a
// step runs and what its output is. It does not compare inner steps, except for
// the id of the last one, whose output is that of the block.
func sameResult(a, b *CompiledStep) bool {
	if a.Uses != b.Uses || a.Disabled != b.Disabled || a.If != b.If || cmp.Or(a.Join, AnyRan) != cmp.Or(b.Join, AnyRan) || !sameJSON(a.With, b.With) || !slices.Equal(a.Mask, b.Mask) {
		return false
	}
	if a.Block == nil || b.Block == nil {
		return a.Block == b.Block
	}
	return a.Foreach == b.Foreach && sameRepeat(a, b) && a.Block.lastStep() == b.Block.lastStep()
}

func sameRepeat(a, b *CompiledStep) bool {
	if a.Repeat == nil || b.Repeat == nil {
		return a.Repeat == b.Repeat
	}
	return a.Repeat.Until == b.Repeat.Until && a.Block.Every == b.Block.Every && a.Block.Max == b.Block.Max
}

func (b *Block) lastStep() string {
	if len(b.Body.Steps) == 0 {
		return ""
	}
	return b.Body.Steps[len(b.Body.Steps)-1].ID
}

// sameHandling reports whether two steps handle failures in the same way and have
// the same parallelism.
func sameHandling(a, b *CompiledStep) bool {
	return a.Limit == b.Limit && a.Policy == b.Policy && cmp.Or(a.OnError, Fail) == cmp.Or(b.OnError, Fail) && a.Handled == b.Handled &&
		(a.Block == nil || a.Block.Parallel == b.Block.Parallel)
}

// sameJSON reports whether two values are equal, ignoring the order of members.
func sameJSON(a, b json.RawMessage) bool {
	if a == nil {
		a = json.RawMessage("{}")
	}
	if b == nil {
		b = json.RawMessage("{}")
	}
	was, err := decodeExact(a)
	if err != nil {
		return false
	}
	now, err := decodeExact(b)
	return err == nil && reflect.DeepEqual(was, now)
}
