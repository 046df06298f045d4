package workflow

import (
	"time"
)

// MaxBlockDepth is the maximum nesting depth of blocks.
const MaxBlockDepth = 5

const (
	maxParallel = 100
	// maxRounds limits the rounds of a repeat.
	maxRounds     = 10_000
	defaultRounds = 100
	maxEvery      = 366 * 24 * time.Hour
)

// isBlock reports whether the step has any member of a block, valid or not.
func (s Step) isBlock() bool {
	return s.Foreach != "" || s.Repeat != nil || s.Steps != nil || s.Parallel != 0
}

// Kind returns what the API shows as the type of a step: the action, or the kind
// of block.
func (s Step) Kind() string {
	switch {
	case s.Foreach != "":
		return "foreach"
	case s.Repeat != nil:
		return "repeat"
	}
	return s.Uses
}

// compileBlock compiles a step that contains steps.
func (c *compiler) compileBlock(at string, compiled *CompiledStep, sc scope) {
	step := compiled.Step
	c.checkBlockFields(at, step)
	block := &Block{Parallel: max(1, step.Parallel)}
	if step.Foreach != "" {
		block.Items = c.compileLoopExpr(at+"/foreach", step.Foreach, sc)
	}
	body := sc
	body.index, body.item, body.depth = true, sc.item || step.Foreach != "", sc.depth+1
	body.previous = sc.previous || step.Repeat != nil
	if body.depth > MaxBlockDepth {
		c.report(at, "", "blocks can be nested at most %d levels deep", MaxBlockDepth)
		return
	}
	block.Body = c.compileSteps(at+"/steps", step.Steps, body)
	if step.Repeat != nil {
		c.compileRepeat(at+"/repeat", step, block, body)
	}
	compiled.Block = block
}

func (c *compiler) checkBlockFields(at string, step Step) {
	if len(step.Steps) == 0 {
		c.report(at+"/steps", "", "a loop needs at least one step")
	}
	switch {
	case step.Foreach != "" && step.Repeat != nil:
		c.report(at+"/repeat", "", "a block cannot have both foreach and repeat")
	case step.Foreach == "" && step.Repeat == nil:
		c.report(at, "add foreach or repeat", "a step that contains steps must be a loop")
	}
	if step.Uses != "" {
		c.report(at+"/uses", "", "a block contains steps and cannot use an action")
	}
	if step.With != nil {
		c.report(at+"/with", "move it to a step inside the block", "a block takes no input")
	}
	if step.Retry != nil {
		c.report(at+"/retry", "set it on the steps inside the block", "a block cannot have retry")
	}
	if step.Timeout != "" {
		c.report(at+"/timeout", "set it on the steps inside the block", "a block cannot have a timeout")
	}
	if step.Mask != nil {
		c.report(at+"/mask", "set it on the steps inside the block", "a block cannot have a mask")
	}
	if step.Connection != "" || step.OnBrokenConnection != "" {
		c.report(at+"/connection", "set it on the steps inside the block", "a block cannot have a connection")
	}
	if step.Parallel != 0 && step.Foreach == "" {
		c.report(at+"/parallel", "", "only foreach can run rounds in parallel")
	}
	if step.Parallel < 0 || step.Parallel > maxParallel {
		c.report(at+"/parallel", "", "must be between 1 and %d", maxParallel)
	}
}

// compileRepeat compiles the condition that ends a repeat. The condition reads
// the steps of the round that has just ended.
func (c *compiler) compileRepeat(at string, step Step, block *Block, body scope) {
	untilScope := body
	untilScope.visible = map[string]bool{}
	for id := range body.visible {
		untilScope.visible[id] = true
	}
	for _, inner := range step.Steps {
		untilScope.visible[inner.ID] = true
	}
	if step.Repeat.Until == "" {
		c.report(at+"/until", "", "is required")
	} else {
		block.Until = c.compileLoopExpr(at+"/until", step.Repeat.Until, untilScope)
	}
	if step.Repeat.Every != "" {
		block.Every = c.parseDuration(at+"/every", step.Repeat.Every, maxEvery)
	}
	block.Max = step.Repeat.Max
	if block.Max == 0 {
		block.Max = defaultRounds
	}
	if block.Max < 1 || block.Max > maxRounds {
		c.report(at+"/max", "", "must be between 1 and %d", maxRounds)
	}
}
