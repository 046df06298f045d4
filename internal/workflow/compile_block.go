package workflow

import (
	"time"
)

// MaxBlockDepth is how deep blocks can be nested.
const MaxBlockDepth = 5

const (
	maxParallel = 100
	// maxRounds bounds a block that is repeated.
	maxRounds     = 10_000
	defaultRounds = 100
	maxEvery      = 366 * 24 * time.Hour
)

// isBlock tells whether the step is meant to be a block, rightly or not.
func (s Step) isBlock() bool {
	return s.Foreach != "" || s.Repeat != nil || s.Steps != nil || s.Parallel != 0
}

// Kind is what the API shows as the type of a step: the action, or the kind of
// block.
func (s Step) Kind() string {
	switch {
	case s.Foreach != "":
		return "foreach"
	case s.Repeat != nil:
		return "repeat"
	}
	return s.Uses
}

// compileBlock compiles a step that holds steps.
func (c *compiler) compileBlock(at string, planned *PlannedStep, lv level) {
	step := planned.Step
	c.checkBlockFields(at, step)
	block := &Block{Parallel: max(1, step.Parallel)}
	if step.Foreach != "" {
		block.Items = c.openProgram(at+"/foreach", step.Foreach, lv)
	}
	body := lv
	body.index, body.item, body.depth = true, lv.item || step.Foreach != "", lv.depth+1
	if body.depth > MaxBlockDepth {
		c.report(at, "", "blocks can be nested at most %d deep", MaxBlockDepth)
		return
	}
	block.Body = c.compileLevel(at+"/steps", step.Steps, body)
	if step.Repeat != nil {
		c.compileRepeat(at+"/repeat", step, block, body)
	}
	planned.Block = block
}

func (c *compiler) checkBlockFields(at string, step Step) {
	if len(step.Steps) == 0 {
		c.report(at+"/steps", "", "a loop needs at least one step")
	}
	switch {
	case step.Foreach != "" && step.Repeat != nil:
		c.report(at+"/repeat", "", "a block has either foreach or repeat")
	case step.Foreach == "" && step.Repeat == nil:
		c.report(at, "add foreach or repeat", "a step with steps of its own is a loop and says over what")
	}
	if step.Uses != "" {
		c.report(at+"/uses", "", "a block holds steps and uses no action itself")
	}
	if step.With != nil {
		c.report(at+"/with", "", "a block has no input")
	}
	if step.Retry != nil {
		c.report(at+"/retry", "", "belongs to the steps inside the block")
	}
	if step.Timeout != "" {
		c.report(at+"/timeout", "", "belongs to the steps inside the block")
	}
	if step.Parallel != 0 && step.Foreach == "" {
		c.report(at+"/parallel", "", "only foreach can run rounds in parallel")
	}
	if step.Parallel < 0 || step.Parallel > maxParallel {
		c.report(at+"/parallel", "", "must be between 1 and %d", maxParallel)
	}
}

// compileRepeat compiles the condition that ends the rounds. It looks at the
// round that has just ended.
func (c *compiler) compileRepeat(at string, step Step, block *Block, body level) {
	seen := body
	seen.visible = map[string]bool{}
	for id := range body.visible {
		seen.visible[id] = true
	}
	for _, inner := range step.Steps {
		seen.visible[inner.ID] = true
	}
	if step.Repeat.Until == "" {
		c.report(at+"/until", "", "is required")
	} else {
		block.Until = c.openProgram(at+"/until", step.Repeat.Until, seen)
	}
	if step.Repeat.Every != "" {
		block.Every = c.length(at+"/every", step.Repeat.Every, maxEvery)
	}
	block.Max = step.Repeat.Max
	if block.Max == 0 {
		block.Max = defaultRounds
	}
	if block.Max < 1 || block.Max > maxRounds {
		c.report(at+"/max", "", "must be between 1 and %d", maxRounds)
	}
}
