package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/fault"
)

// Batch is a request of a trigger to start several runs. They start in the same
// transaction that updates the trigger.
type Batch struct {
	WorkspaceID string
	WorkflowID  string
	Triggers    []Trigger
	Fire        Fire
}

// Starts holds the runs of a batch, ready to be written.
type Starts struct {
	Starts []Start
	Fire   Fire
	// Rejected counts the items of the batch that start no run. Summarize describes
	// them, given the final number.
	Rejected  int
	Summarize func(rejected int) *NotFired
}

// FireAll starts a run for each item of a batch and returns their ids. Items that
// cannot start a run, for example because they are too large or the concurrency
// limit is reached, are skipped and recorded with the trigger. FireAll fails if no
// item can start a run, with the error of the first, and if the queue has no room
// for all of them.
func (s *Service) FireAll(ctx context.Context, b Batch) ([]string, error) {
	for {
		ready, rejection, err := s.prepareAll(ctx, b)
		if err != nil {
			return nil, err
		}
		if len(ready.Starts) == 0 {
			return nil, rejection
		}
		started, err := s.tryAll(ctx, ready)
		if err != nil || started != nil {
			return started, err
		}
	}
}

// prepareAll prepares the runs of a batch. It also returns the error of the first
// rejected item, if any.
func (s *Service) prepareAll(ctx context.Context, b Batch) (ready Starts, rejection, err error) {
	ready.Fire = b.Fire
	for _, trigger := range b.Triggers {
		start := Start{Run: Run{WorkspaceID: b.WorkspaceID, WorkflowID: b.WorkflowID, Trigger: trigger}, Fire: &b.Fire}
		err := s.prepare(ctx, &start)
		switch wrong, ok := fault.As(err); {
		case ok && wrong.Code.Status() < 500 && wrong.Code != fault.WorkflowNotFound:
			ready.Rejected++
			if rejection == nil {
				rejection = err
			}
			continue
		case err != nil:
			return Starts{}, nil, err
		}
		start.Fire = nil
		ready.Starts = append(ready.Starts, start)
	}
	total := len(b.Triggers)
	ready.Summarize = func(rejected int) *NotFired {
		idle := &NotFired{Code: string(fault.ConcurrencyLimit), Message: "the concurrency limit of the workflow is reached"}
		if wrong, ok := fault.As(rejection); ok {
			idle.Code, idle.Message = string(wrong.Code), wrong.Message
		}
		idle.Message = fmt.Sprintf("%d of %d items started no run; the first: %s", rejected, total, idle.Message)
		return idle
	}
	return ready, rejection, nil
}

// tryAll writes the runs. It returns nil if their workflow has changed in the
// meantime.
func (s *Service) tryAll(ctx context.Context, ready Starts) ([]string, error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	plan := ready.Starts[0].Plan
	for i := range ready.Starts {
		var room bool
		start := &ready.Starts[i]
		if start.Node, room = s.queue.Reserve(start.Run.WorkspaceID, start.Run.ID, plan.Limits().QueuedRuns); !room {
			s.unreserve(ready.Starts[:i], nil)
			return nil, queueFull(plan)
		}
	}
	failpoint.Hit(failpoint.BeforeAcceptCommit, ready.Starts[0].Run.ID)
	started, err := s.store.StartRuns(ctx, ready)
	s.unreserve(ready.Starts, started)
	switch {
	case errors.Is(err, ErrQueueFull):
		return nil, queueFull(plan)
	case errors.Is(err, ErrAtLimit):
		return nil, fault.New(fault.ConcurrencyLimit, "the concurrency limit of workflow %q is reached: try again when a run has ended", ready.Starts[0].Run.WorkflowID)
	}
	return started, err
}

// unreserve releases the slots of the runs that did not start.
func (s *Service) unreserve(starts []Start, started []string) {
	there := map[string]bool{}
	for _, id := range started {
		there[id] = true
	}
	for _, start := range starts {
		if !there[start.Run.ID] {
			s.queue.Unreserve(start.Run.ID)
		}
	}
}
