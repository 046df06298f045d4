package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
)

// checkOrder reports cycles and returns, for each step, the set of steps that
// come before it.
func (c *compiler) checkOrder(at string, program *Program) []map[int]bool {
	upstream := make([]map[int]bool, len(program.Steps))
	const (
		unseen = iota
		open
		closed
	)
	state := make([]int, len(program.Steps))
	var path []int
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		path = append(path, i)
		upstream[i] = map[int]bool{}
		for _, need := range program.Steps[i].After {
			before := need.Step
			switch state[before] {
			case open:
				c.reportCycle(at, program, path[slices.Index(path, before):])
				continue
			case unseen:
				visit(before)
			}
			upstream[i][before] = true
			for far := range upstream[before] {
				upstream[i][far] = true
			}
		}
		path = path[:len(path)-1]
		state[i] = closed
	}
	for i := range program.Steps {
		if state[i] == unseen {
			visit(i)
		}
	}
	return upstream
}

func (c *compiler) reportCycle(at string, program *Program, cycle []int) {
	var names []string
	for _, i := range cycle {
		names = append(names, program.Steps[i].ID)
	}
	names = append(names, program.Steps[cycle[0]].ID)
	slices.Reverse(names)
	c.report(fmt.Sprintf("%s/%d/needs", at, cycle[0]), "", "the steps need each other in a cycle: %s", strings.Join(names, " → "))
}

// checkRefs reports names in expressions that do not exist or may not have a
// value yet.
func (c *compiler) checkRefs(at string, refs expr.Refs, sc scope) {
	for _, ref := range refs.Steps {
		c.checkStepRef(at+ref.Pointer, ref.Name, sc)
	}
	for _, ref := range refs.Links {
		c.report(at+ref.Pointer, "", "a link can be used only in the input of a step")
	}
	if refs.Item && !sc.item {
		c.report(at, "", "item is available only inside a foreach")
	}
	if refs.Index && !sc.index {
		c.report(at, "", "index is available only inside a loop")
	}
	if refs.Previous && !sc.previous {
		c.report(at, "", "previous is available only inside a repeat")
	}
	if refs.Response && !sc.response {
		c.report(at, "", "response is available only in the items, key and cursor of a poll trigger")
	}
	if refs.Cursor && !sc.cursor {
		c.report(at, "", "cursor is available only in a poll trigger")
	}
	for _, ref := range refs.Random {
		if !sc.random {
			c.report(at+ref.Pointer, "use it in the step that needs it", "%s() is available only in steps", ref.Name)
		}
	}
	c.random = c.random || sc.random && len(refs.Random) > 0
	c.secrets = append(c.secrets, prefixPointers(at, refs.Secrets)...)
	c.vars = append(c.vars, prefixPointers(at, refs.Vars)...)
	c.allVars = c.allVars || refs.AllVars
	for _, word := range refs.Words {
		if !slices.Contains(c.words, word) {
			c.words = append(c.words, word)
		}
	}
}

// checkLinks reports references to links that do not exist in this scope.
func (c *compiler) checkLinks(at string, refs []expr.Ref, sc scope) {
	for _, ref := range refs {
		block, known := c.blocks[ref.Name]
		switch {
		case !known:
			c.report(at+ref.Pointer, c.didYouMean(ref.Name), "there is no step %q", ref.Name)
		case !c.answerable[ref.Name]:
			c.report(at+ref.Pointer, "", "step %q has no links: it does not wait for an answer", ref.Name)
		case !sc.enclosing[ref.Name]:
			c.report(at+ref.Pointer, "", "step %q is inside the block %q: its links can be used only inside that block", ref.Name, block)
		}
	}
}

func (c *compiler) checkStepRef(at, id string, sc scope) {
	block, known := c.blocks[id]
	switch {
	case sc.visible[id]:
	case !known:
		c.report(at, c.didYouMean(id), "there is no step %q", id)
	case block != "":
		c.report(at, fmt.Sprintf("read the results of its rounds from steps.%s.output.items", block), "step %q is inside the block %q", id, block)
	default:
		c.report(at, fmt.Sprintf("add %q to needs", id), "step %q does not come before this one", id)
	}
}
