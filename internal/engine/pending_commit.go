package engine

import (
	"fmt"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// maxChanged is the number of changed steps after which a commit is made.
	maxChanged = 500
	// recentChanges is how many recent changes are searched for duplicates.
	recentChanges = 8
	// maxOperations is the number of operations after which a commit is made. Other
	// runs of the workspace wait for the commit to change tables or keys. One with a
	// filter is enough.
	maxOperations = 32
)

// pendingCommit collects what the next commit of a run writes.
type pendingCommit struct {
	rev      int // of the last commit
	crashes  int // reset once the run gets past the steps it crashed at
	logBytes int // bytes in the logs of the run

	steps    []*run.Step
	attempts []run.Attempt
	logs     []run.LogLine
	// operations are the operations on tables and keys, one for each step at most.
	operations []stepOperation
	// retried are the steps whose operation failed and is tried again.
	retried []string
	// chunks are what checkpoints add to the states of steps; dropped are the steps whose
	// earlier ones are deleted.
	chunks   []run.Chunk
	dropped  []string
	files    []file.File // that steps have created
	holds    []string    // ids of other files that they refer to
	releases []string    // ids of files that no checkpoint needs any more
	// progress reports whether a step has a new checkpoint.
	progress bool
	// awaited reports whether a step needs the commit to continue.
	awaited bool
	// unanswered are the steps that settled because no answer arrived.
	unanswered []string
}

// stepOperation is the operation of a step.
type stepOperation struct {
	step *run.Step
	op   action.Operation
}

// add adds a changed step.
func (c *pendingCommit) add(step *run.Step) {
	if !slices.Contains(c.steps[max(0, len(c.steps)-recentChanges):], step) {
		c.steps = append(c.steps, step)
	}
}

// full reports whether a commit must follow. A loop of pure steps
// must neither block other writes for long nor start over after a crash.
func (c *pendingCommit) full() bool {
	return len(c.steps) >= maxChanged || c.awaited || c.operationsFull()
}

// operationsFull reports whether there are enough operations for a commit.
func (c *pendingCommit) operationsFull() bool {
	last := len(c.operations) - 1
	return len(c.operations) >= maxOperations || last >= 0 && c.operations[last].op.Rows != nil && c.operations[last].op.Rows.HasFilter()
}

// blocks reports whether a step continues only after the next commit: it has an
// operation there, or the answer of its failed one is removed. Both in one commit would
// repeat the operation if the commit is repeated.
func (c *pendingCommit) blocks(step *run.Step) bool {
	return slices.ContainsFunc(c.operations, func(o stepOperation) bool { return o.step == step }) || slices.Contains(c.retried, step.Path)
}

// awaitFile makes a commit follow if it records a file, which can be read only then. It
// reports whether that is so.
func (c *pendingCommit) awaitFile(id string) bool {
	c.awaited = c.awaited || slices.ContainsFunc(c.files, func(f file.File) bool { return f.ID == id })
	return c.awaited
}

// addLogs adds the lines of a step to the log of the run, up to its limit.
func (c *pendingCommit) addLogs(lines []run.LogLine) {
	for _, line := range lines {
		before := c.logBytes
		c.logBytes += len(line.Message) + len(line.Path)
		switch {
		case before > maxRunLog:
			return
		case c.logBytes > maxRunLog:
			line.Level, line.Message = string(action.Warn), fmt.Sprintf("the logs of a run are limited to %d bytes: further lines are dropped", maxRunLog)
		}
		c.logs = append(c.logs, line)
	}
}

// addChunk adds what a checkpoint adds to the state of a step.
func (c *pendingCommit) addChunk(step *run.Step, data []byte) {
	c.chunks = append(c.chunks, run.Chunk{Path: step.Path, Number: len(step.Chunks), Data: data})
	step.Chunks = append(step.Chunks, data)
}

// dropChunks removes the chunks of the state of a step.
func (c *pendingCommit) dropChunks(step *run.Step) {
	if len(step.Chunks) == 0 {
		return
	}
	step.Chunks = nil
	c.chunks = slices.DeleteFunc(c.chunks, func(chunk run.Chunk) bool { return chunk.Path == step.Path })
	c.dropped = append(c.dropped, step.Path)
}

// take moves the collected changes to a decision. A run that ends performs no more
// operations.
func (c *pendingCommit) take(decision run.Decision) run.Decision {
	decision.ClearCrashes = c.crashes > 0 && c.progress
	seen := make(map[*run.Step]bool, len(c.steps))
	for _, step := range c.steps {
		if !seen[step] {
			seen[step] = true
			decision.Steps = append(decision.Steps, *step)
			// A failed attempt also shows that the step no longer crashes.
			decision.ClearCrashes = decision.ClearCrashes || c.crashes > 0 && step.Status != run.StepRunning
		}
	}
	if decision.ClearCrashes {
		c.crashes = 0
	}
	if decision.Finish == nil {
		for _, o := range c.operations {
			decision.Operations = append(decision.Operations, run.Operation{Path: o.step.Path, Operation: o.op})
		}
	}
	c.rev++
	decision.Rev, decision.Attempts, decision.Logs, decision.LogBytes = c.rev, c.attempts, c.logs, c.logBytes
	decision.Unanswered, decision.Retried = c.unanswered, c.retried
	decision.Chunks, decision.DroppedChunks = c.chunks, c.dropped
	decision.Files, decision.Holds, decision.Releases = c.files, c.holds, c.releases
	c.discard()
	return decision
}

// discard drops the collected changes.
func (c *pendingCommit) discard() {
	c.steps, c.attempts, c.logs, c.unanswered, c.progress = c.steps[:0], nil, nil, nil, false
	c.operations, c.retried, c.chunks, c.dropped = nil, nil, nil, nil
	c.files, c.holds, c.releases, c.awaited = nil, nil, nil, false
}
