package run

import (
	"context"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// Listed is a run in the list of all workflows.
type Listed struct {
	Item
	WorkflowName string
	Trigger      string // its type
	Draft        bool
	Error        *Failure
	StartedBy    *Starter
	// Waiting is what the run waits for; nil if it does not wait.
	Waiting *Waiting
}

// Filter narrows the list of all runs. Empty fields match every run.
type Filter struct {
	Status     Status
	WorkflowID string
	Trigger    string // its type
	// StartedAfter is inclusive and StartedBefore exclusive, both with millisecond
	// precision.
	StartedAfter  *time.Time
	StartedBefore *time.Time
	// Text matches a prefix of the run id, of the workflow name (ignoring case) or of
	// the error code, or a part of the error message.
	Text string
	// Waiting selects runs that wait or runs that do not; nil selects both.
	Waiting *bool
	// Queued reports whether a run is queued in memory, which the store does not
	// know; nil if no run is.
	Queued func(runID string) bool
}

// Waits reports whether a run counts as waiting; stored is what the store knows.
func (f Filter) Waits(r Listed, stored bool) bool {
	return r.Status == Running && (stored || f.Queued != nil && f.Queued(r.ID))
}

// Span returns the range of run ids that can match: from is inclusive and below
// exclusive. A run id contains the time of its start.
func (f Filter) Span() (from, below string) {
	below = "~" // after every id
	if f.StartedAfter != nil {
		from = uid.LowerBound(uid.Run, *f.StartedAfter)
	}
	if f.StartedBefore != nil {
		below = uid.LowerBound(uid.Run, *f.StartedBefore)
	}
	if f.byID() {
		from, below = max(from, f.Text), min(below, f.Text+"~")
	}
	return from, below
}

func (f Filter) byID() bool { return strings.HasPrefix(f.Text, string(uid.Run)+"_") }

// Matches reports whether a run of the workflow and in the span matches the rest of
// the filter.
func (f Filter) Matches(r Listed) bool {
	if f.Status != "" && r.Status != f.Status || f.Trigger != "" && r.Trigger != f.Trigger {
		return false
	}
	return f.Text == "" || f.byID() || hasPrefixFold(r.WorkflowName, f.Text) || r.Error != nil && f.inError(*r.Error)
}

// inError reports whether an error matches the text. The number of runs examined
// for a page is bounded, and so is the cost.
func (f Filter) inError(e Failure) bool {
	return strings.HasPrefix(e.Code, f.Text) || strings.Contains(strings.ToLower(e.Message), strings.ToLower(f.Text))
}

// hasPrefixFold is strings.HasPrefix, ignoring case.
func hasPrefixFold(text, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(text), strings.ToLower(prefix))
}

// StepFilter narrows the list of a run's steps. Empty fields match every step.
type StepFilter struct {
	Status StepStatus
	// Block is the path of a loop. It selects the steps of its own rounds, not those
	// of nested loops.
	Block string
}

// StepDetail is a step with its earlier attempts, oldest first.
type StepDetail struct {
	Step
	Attempts []Attempt
}

// Lists are the paginated queries of the store.
type Lists interface {
	// Runs lists the runs of a workflow, newest first.
	Runs(ctx context.Context, workspaceID, workflowID string, status Status, page paging.Request) (paging.Page[Item], error)
	// AllRuns lists the runs of a workspace, newest first. The number of rows examined
	// per page is bounded, so a page may hold fewer runs than requested, or none, and
	// still have a next one.
	AllRuns(ctx context.Context, workspaceID string, filter Filter, page paging.Request) (paging.Page[Listed], error)
	// Steps lists the steps of a run in the order in which they started, without
	// inputs and outputs; false if the run does not exist.
	Steps(ctx context.Context, workspaceID, runID string, filter StepFilter, page paging.Request) (paging.Page[Step], bool, error)
	// Approvals lists the steps that wait for a decision.
	Approvals(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Approval], error)
	// Logs lists the log lines of a run, or of one of its steps; false if the run
	// does not exist.
	Logs(ctx context.Context, workspaceID, runID, path string, page paging.Request) (paging.Page[LogLine], bool, error)
	// RoundSteps reads the steps in the rounds of a loop; nil if the loop does not
	// exist.
	RoundSteps(ctx context.Context, workspaceID, runID, block string) (*RoundSteps, error)
	// StepsAt reads the steps of a run with the given paths, if they exist.
	StepsAt(ctx context.Context, workspaceID, runID string, paths []string) ([]Step, error)
	// Step reads one step; false if the run does not exist.
	Step(ctx context.Context, workspaceID, runID, path string) (*StepDetail, bool, error)
}

// ListAll lists the runs of all workflows, most recent first.
func (s *Service) ListAll(ctx context.Context, actor auth.Actor, filter Filter, page paging.Request) (paging.Page[Listed], error) {
	if filter.WorkflowID != "" {
		if _, err := s.workflowRef(ctx, actor.Workspace.ID, filter.WorkflowID); err != nil {
			return paging.Page[Listed]{}, err
		}
	}
	if filter.Waiting != nil && *filter.Waiting {
		if filter.Status != "" && filter.Status != Running { // only a run that is running waits
			return paging.Page[Listed]{Items: []Listed{}}, nil
		}
		filter.Status = Running
	}
	filter.Queued = s.queued
	return s.store.AllRuns(ctx, actor.Workspace.ID, filter, page)
}

// Steps lists the steps of a run in the order in which they started, without
// inputs and outputs.
func (s *Service) Steps(ctx context.Context, actor auth.Actor, runID string, filter StepFilter, page paging.Request) (paging.Page[Step], error) {
	if !uid.Valid(uid.Run, runID) {
		return paging.Page[Step]{}, notFound(runID)
	}
	steps, exists, err := s.store.Steps(ctx, actor.Workspace.ID, runID, filter, page)
	if err == nil && !exists {
		err = notFound(runID)
	}
	return steps, err
}

// Step reads one step of a run with its input, output and attempts.
func (s *Service) Step(ctx context.Context, actor auth.Actor, runID, path string) (StepDetail, error) {
	if !uid.Valid(uid.Run, runID) {
		return StepDetail{}, notFound(runID)
	}
	step, exists, err := s.store.Step(ctx, actor.Workspace.ID, runID, path)
	if err == nil && !exists {
		err = notFound(runID)
	}
	return fault.Found(step, err, func(path string) error {
		return fault.New(fault.StepNotFound, "run %q has no step %q that has started", runID, path)
	}, path)
}
