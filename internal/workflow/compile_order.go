package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
)

// checkOrder reports cycles, and returns for each step the set of steps that
// come before it.
func (c *compiler) checkOrder(at string, plan *Plan) []map[int]bool {
	upstream := make([]map[int]bool, len(plan.Steps))
	const (
		unseen = iota
		open
		closed
	)
	state := make([]int, len(plan.Steps))
	var path []int
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		path = append(path, i)
		upstream[i] = map[int]bool{}
		for _, before := range plan.Steps[i].After {
			switch state[before] {
			case open:
				c.reportCycle(at, plan, path[slices.Index(path, before):])
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
	for i := range plan.Steps {
		if state[i] == unseen {
			visit(i)
		}
	}
	return upstream
}

func (c *compiler) reportCycle(at string, plan *Plan, cycle []int) {
	var names []string
	for _, i := range cycle {
		names = append(names, plan.Steps[i].ID)
	}
	names = append(names, plan.Steps[cycle[0]].ID)
	slices.Reverse(names)
	c.report(fmt.Sprintf("%s/%d/needs", at, cycle[0]), "", "the steps wait for each other: %s", strings.Join(names, " → "))
}

// checkRefs reports names in expressions that do not exist, or need not have a
// value by then.
func (c *compiler) checkRefs(at string, refs expr.Refs, lv level) {
	for _, ref := range refs.Steps {
		c.checkStepRef(at+ref.Pointer, ref.Name, lv)
	}
	for _, ref := range refs.Links {
		c.report(at+ref.Pointer, "", "a link can be used only in the input of a step")
	}
	if refs.Item && !lv.item {
		c.report(at, "", "item exists only inside a foreach")
	}
	if refs.Index && !lv.index {
		c.report(at, "", "index exists only inside a loop")
	}
	if refs.Response && !lv.response {
		c.report(at, "", "response exists only in a trigger that polls, once it has its answer")
	}
	if refs.Cursor && !lv.cursor {
		c.report(at, "", "cursor exists only in a trigger that polls")
	}
	c.secrets = append(c.secrets, below(at, refs.Secrets)...)
	c.vars = append(c.vars, below(at, refs.Vars)...)
	c.allVars = c.allVars || refs.AllVars
}

// checkLinks reports links of steps that have none here.
func (c *compiler) checkLinks(at string, refs []expr.Ref, lv level) {
	for _, ref := range refs {
		block, known := c.blocks[ref.Name]
		switch {
		case !known:
			c.report(at+ref.Pointer, c.didYouMean(ref.Name), "there is no step %q", ref.Name)
		case !c.answered[ref.Name]:
			c.report(at+ref.Pointer, "", "step %q has no links: it does not wait for an answer", ref.Name)
		case !lv.around[ref.Name]:
			c.report(at+ref.Pointer, "", "step %q is inside the block %q: each round has links of its own, which are known only there", ref.Name, block)
		}
	}
}

func (c *compiler) checkStepRef(at, id string, lv level) {
	block, known := c.blocks[id]
	switch {
	case lv.visible[id]:
	case !known:
		c.report(at, c.didYouMean(id), "there is no step %q", id)
	case block != "":
		c.report(at, fmt.Sprintf("the results of its rounds are in steps.%s.output.items", block), "step %q is inside the block %q", id, block)
	default:
		c.report(at, fmt.Sprintf("add %q to needs", id), "step %q does not come before this one", id)
	}
}
