package engine

import (
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/run"
)

// A step has one operation in a commit, and none if its failed one is given up there.
func TestStepWaitsForTheCommitOfItsOperation(t *testing.T) {
	t.Parallel()
	operates, retries, other := &run.Step{Path: "a"}, &run.Step{Path: "b"}, &run.Step{Path: "c"}
	c := pendingCommit{operations: []stepOperation{{operates, action.Operation{}}}, retried: []string{"b"}}
	if !c.blocks(operates) || !c.blocks(retries) || c.blocks(other) {
		t.Errorf("blocks %v, %v, %v; want true, true, false", c.blocks(operates), c.blocks(retries), c.blocks(other))
	}
	c.take(run.Decision{})
	if c.blocks(operates) || c.blocks(retries) {
		t.Error("a step is held after the commit")
	}
}
