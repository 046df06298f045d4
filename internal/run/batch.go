package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/fault"
)

// Batch asks for several runs on behalf of a trigger. They start together with
// what the trigger changes of itself, or not at all.
type Batch struct {
	WorkspaceID string
	WorkflowID  string
	Triggers    []Trigger
	Fire        Fire
}

// Starts are the runs of a batch, ready to be written.
type Starts struct {
	Starts []Start
	Fire   Fire
	// Refused is how many of the batch are left out; Left tells that with those
	// that turn out to be too many.
	Refused int
	Left    func(refused int) *Idle
}

// FireAll starts a run for each of a batch and returns their ids. One that cannot be started, because
// it is too large or one too many, is left out and recorded with the trigger. It
// fails when none can be started, with the reason of the first, and when there is
// no room for all of them.
func (s *Service) FireAll(ctx context.Context, b Batch) ([]string, error) {
	for {
		ready, refusal, err := s.prepareAll(ctx, b)
		if err != nil {
			return nil, err
		}
		if len(ready.Starts) == 0 {
			return nil, refusal
		}
		started, err := s.tryAll(ctx, ready)
		if err != nil || started != nil {
			return started, err
		}
	}
}

// prepareAll makes the runs of a batch ready, and returns why the first was
// refused, if one was.
func (s *Service) prepareAll(ctx context.Context, b Batch) (ready Starts, refusal, err error) {
	ready.Fire = b.Fire
	for _, trigger := range b.Triggers {
		start := Start{Run: Run{WorkspaceID: b.WorkspaceID, WorkflowID: b.WorkflowID, Trigger: trigger}, Fire: &b.Fire}
		err := s.prepare(ctx, &start)
		switch wrong, ok := fault.As(err); {
		case ok && wrong.Code.Status() < 500 && wrong.Code != fault.WorkflowNotFound:
			ready.Refused++
			if refusal == nil {
				refusal = err
			}
			continue
		case err != nil:
			return Starts{}, nil, err
		}
		start.Fire = nil
		ready.Starts = append(ready.Starts, start)
	}
	total := len(b.Triggers)
	ready.Left = func(refused int) *Idle {
		idle := &Idle{Code: string(fault.ConcurrencyLimit), Message: "as many runs as may be are under way, and the settings of the workflow refuse more"}
		if wrong, ok := fault.As(refusal); ok {
			idle.Code, idle.Message = string(wrong.Code), wrong.Message
		}
		idle.Message = fmt.Sprintf("%d of %d items started nothing; the first: %s", refused, total, idle.Message)
		return idle
	}
	return ready, refusal, nil
}

// tryAll writes the runs. It answers nil when their workflow has changed in the
// meantime.
func (s *Service) tryAll(ctx context.Context, ready Starts) ([]string, error) {
	plan := ready.Starts[0].Plan
	for i := range ready.Starts {
		start, room := &ready.Starts[i], false
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
		return nil, fault.New(fault.ConcurrencyLimit, "as many runs of workflow %q as may be are under way, and its settings refuse more", ready.Starts[0].Run.WorkflowID)
	}
	return started, err
}

// unreserve gives back the places of those that did not start.
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
