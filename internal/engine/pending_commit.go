package engine

import (
	"fmt"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// maxChanged is the number of changed steps after which a commit is made.
	maxChanged = 500
	// recentChanges is how many recent changes are searched for duplicates.
	recentChanges = 8
)

// pendingCommit collects what the next commit of a run writes.
type pendingCommit struct {
	rev     int // of the last commit
	crashes int // reset once the run gets past the steps it crashed at
	logged  int // bytes in the logs of the run

	steps    []*run.Step
	attempts []run.Attempt
	logs     []run.LogLine
	// progress reports whether a step has a new checkpoint.
	progress bool
	// unanswered are the steps that settled because no answer arrived.
	unanswered []string
}

// add adds a changed step.
func (c *pendingCommit) add(step *run.Step) {
	if !slices.Contains(c.steps[max(0, len(c.steps)-recentChanges):], step) {
		c.steps = append(c.steps, step)
	}
}

// full reports whether there are enough changes for a commit. A loop of pure steps
// must neither block other writes for long nor start over after a crash.
func (c *pendingCommit) full() bool { return len(c.steps) >= maxChanged }

// addLogs adds the lines of a step to the log of the run, up to its limit.
func (c *pendingCommit) addLogs(lines []run.LogLine) {
	for _, line := range lines {
		before := c.logged
		c.logged += len(line.Message) + len(line.Path)
		switch {
		case before > maxRunLog:
			return
		case c.logged > maxRunLog:
			line.Level, line.Message = string(action.Warn), fmt.Sprintf("the logs of a run are limited to %d bytes: further lines are dropped", maxRunLog)
		}
		c.logs = append(c.logs, line)
	}
}

// take moves the collected changes to a decision.
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
	c.rev++
	decision.Rev, decision.Attempts, decision.Logs, decision.Logged, decision.Unanswered = c.rev, c.attempts, c.logs, c.logged, c.unanswered
	c.discard()
	return decision
}

// discard drops the collected changes.
func (c *pendingCommit) discard() {
	c.steps, c.attempts, c.logs, c.unanswered, c.progress = c.steps[:0], nil, nil, nil, false
}
