package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Round summarizes one pass of a loop.
type Round struct {
	Index      int
	Status     StepStatus
	StartedAt  time.Time
	FinishedAt *time.Time
	// FailedStep is the path of the step that made the round fail; empty for none.
	FailedStep string
}

// Rounds are the rounds of a loop.
type Rounds struct {
	Block string
	// Total is the total number of rounds; nil if it is unknown.
	Total  *int
	Counts map[StepStatus]int
	Page   paging.Page[Round]
}

// RoundSteps are a loop and the steps of its rounds, without inputs and outputs
// and without the steps of nested loops.
type RoundSteps struct {
	Block Step
	Steps []Step
}

// Rounds lists the rounds of a loop, failed ones first, and counts them by status.
func (s *Service) Rounds(ctx context.Context, actor auth.Actor, runID, block string, status StepStatus, page paging.Request) (Rounds, error) {
	of, err := s.runSummary(ctx, actor, runID)
	if err != nil {
		return Rounds{}, err
	}
	found, err := s.store.RoundSteps(ctx, actor.Workspace.ID, runID, block)
	if err != nil {
		return Rounds{}, err
	}
	if found == nil {
		return Rounds{}, fault.New(fault.StepNotFound, "run %q has no step %q that has started", runID, block)
	}
	program, err := ProgramOf(ctx, s.programs, of)
	if err != nil && !errors.Is(err, workflow.ErrCorrupt) {
		return Rounds{}, err
	}
	all := found.summarize(program)
	out := Rounds{Block: block, Total: found.Block.items(), Counts: map[StepStatus]int{}}
	for _, round := range all {
		out.Counts[round.Status]++
	}
	out.Page = pageOfRounds(all, status, page)
	return out, nil
}

// items returns the number of items of a foreach, or nil if it is unknown.
func (s Step) items() *int {
	if s.Type != Foreach || s.Input == nil {
		return nil
	}
	list, err := itemsOf(s.Input)
	if err != nil {
		return nil
	}
	return &list.Count
}

// itemList is the stored list of a foreach: an array, or a reference to a list file,
// which has only the first items.
type itemList struct {
	Count int               `json:"count"`
	First []json.RawMessage `json:"first"`
}

// itemsOf returns the list in the input of a foreach.
func itemsOf(input json.RawMessage) (itemList, error) {
	var stored struct {
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(input, &stored); err != nil {
		return itemList{}, err
	}
	var list itemList
	if stored.Items == nil {
		return list, nil
	}
	if bytes.HasPrefix(stored.Items, []byte("{")) {
		err := json.Unmarshal(stored.Items, &list)
		return list, err
	}
	err := json.Unmarshal(stored.Items, &list.First)
	list.Count = len(list.First)
	return list, err
}

// summarize groups the steps by round. The program, if there is one, determines
// which failures are tolerated and how many steps a round has.
func (r RoundSteps) summarize(program *workflow.Program) []Round {
	size, tolerated := 0, map[string]bool{}
	if program != nil {
		if block := program.Find(LastOf(r.Block.Path)); block != nil && block.Block != nil {
			size = len(block.Block.Body.Steps)
			for _, step := range block.Block.Body.Steps {
				tolerated[step.ID] = step.Tolerated()
			}
		}
	}
	byIndex := map[int][]Step{}
	for _, step := range r.Steps {
		number, _, _ := strings.Cut(step.Path[len(r.Block.Path)+1:], "]")
		if n, err := strconv.Atoi(number); err == nil {
			byIndex[n] = append(byIndex[n], step)
		}
	}
	out := make([]Round, 0, len(byIndex))
	for n, steps := range byIndex {
		out = append(out, roundOf(n, steps, !r.Block.Status.Settled() && len(steps) < size, tolerated))
	}
	return out
}

// roundOf summarizes the steps of a round. If open is set, more steps will follow.
func roundOf(n int, steps []Step, open bool, tolerated map[string]bool) Round {
	round := Round{Index: n, Status: StepSkipped, StartedAt: steps[0].StartedAt}
	if open {
		round.Status = StepRunning
	}
	var last time.Time
	for _, step := range steps {
		if step.StartedAt.Before(round.StartedAt) {
			round.StartedAt = step.StartedAt
		}
		if step.FinishedAt != nil && step.FinishedAt.After(last) {
			last = *step.FinishedAt
		}
		status := step.Status
		if status == StepFailed && tolerated[LastOf(step.Path)] {
			status = StepSucceeded
		}
		if status == StepFailed && round.FailedStep == "" {
			round.FailedStep = step.Path
		}
		if rank(status) < rank(round.Status) {
			round.Status = status
		}
	}
	if round.Status.Settled() {
		round.FinishedAt = &last
	}
	return round
}

// rank orders statuses by how interesting they are to users.
func rank(s StepStatus) int {
	return slices.Index([]StepStatus{StepFailed, StepRunning, StepWaiting, StepCancelled, StepSucceeded, StepSkipped}, s)
}

func pageOfRounds(all []Round, status StepStatus, page paging.Request) paging.Page[Round] {
	key := func(r Round) string { return fmt.Sprintf("%d:%09d", rank(r.Status), r.Index) }
	wanted := slices.DeleteFunc(all, func(r Round) bool {
		return status != "" && r.Status != status || page.After != "" && key(r) <= page.After
	})
	slices.SortFunc(wanted, func(a, b Round) int { return cmp.Compare(key(a), key(b)) })
	return paging.Cut(wanted, page.Limit, key)
}
