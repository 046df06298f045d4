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
}

// Filter narrows the list of all runs. What is empty does not.
type Filter struct {
	Status     Status
	WorkflowID string
	Trigger    string // its type
	// StartedAfter is the first moment that counts, StartedBefore the first
	// that does not, both to the millisecond.
	StartedAfter  *time.Time
	StartedBefore *time.Time
	// Text is how the id of a run begins, or the name of a workflow, in upper or
	// lower case, or the code of an error, or a part of its message.
	Text string
}

// Span is the range of ids that the filter leaves: from the first on, up to but
// not including the second. The time of a start is in the id.
func (f Filter) Span() (from, below string) {
	below = "~" // after every id
	if f.StartedAfter != nil {
		from = uid.Least(uid.Run, *f.StartedAfter)
	}
	if f.StartedBefore != nil {
		below = uid.Least(uid.Run, *f.StartedBefore)
	}
	if f.byID() {
		from, below = max(from, f.Text), min(below, f.Text+"~")
	}
	return from, below
}

func (f Filter) byID() bool { return strings.HasPrefix(f.Text, string(uid.Run)+"_") }

// Matches tells whether a run in the span, of the workflow, is one that is
// looked for.
func (f Filter) Matches(r Listed) bool {
	if f.Status != "" && r.Status != f.Status || f.Trigger != "" && r.Trigger != f.Trigger {
		return false
	}
	return f.Text == "" || f.byID() || hasPrefixFold(r.WorkflowName, f.Text) || r.Error != nil && f.inError(*r.Error)
}

// inError looks for the text in an error. How many runs are looked at for a page
// is bounded, so that this costs no more than the walk.
func (f Filter) inError(e Failure) bool {
	return strings.HasPrefix(e.Code, f.Text) || strings.Contains(strings.ToLower(e.Message), strings.ToLower(f.Text))
}

// hasPrefixFold is strings.HasPrefix, whatever the case of the letters.
func hasPrefixFold(text, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(text), strings.ToLower(prefix))
}

// StepFilter narrows the list of a run's steps. What is empty does not.
type StepFilter struct {
	Status StepStatus
	// Block is the path of a block: only the steps of its own rounds count, not
	// those of blocks inside it.
	Block string
}

// StepDetail is a step with its earlier attempts, oldest first.
type StepDetail struct {
	Step
	Attempts []Attempt
}

// Lists are the parts of the store that are read page by page.
type Lists interface {
	// AllRuns lists the runs of a workspace, newest first. A page may hold fewer
	// runs than asked for, or none, and still have a next one: how many rows are
	// looked at for it is bounded.
	AllRuns(ctx context.Context, workspaceID string, filter Filter, page paging.Request) (paging.Page[Listed], error)
	// Steps lists the steps of a run in the order they started, without input
	// and output; false when there is no such run.
	Steps(ctx context.Context, workspaceID, runID string, filter StepFilter, page paging.Request) (paging.Page[Step], bool, error)
	// RoundSteps reads the steps in the rounds of a loop; nil when there is no such
	// step.
	RoundSteps(ctx context.Context, workspaceID, runID, block string) (*RoundSteps, error)
	// StepsAt reads the steps of a run at some paths, as far as they are there.
	StepsAt(ctx context.Context, workspaceID, runID string, paths []string) ([]Step, error)
	// Step reads one step; false when there is no such run.
	Step(ctx context.Context, workspaceID, runID, path string) (*StepDetail, bool, error)
}

// ListAll lists the runs of all workflows, most recent first.
func (s *Service) ListAll(ctx context.Context, actor auth.Actor, filter Filter, page paging.Request) (paging.Page[Listed], error) {
	if filter.WorkflowID != "" {
		if _, err := s.head(ctx, actor.Workspace.ID, filter.WorkflowID); err != nil {
			return paging.Page[Listed]{}, err
		}
	}
	return s.store.AllRuns(ctx, actor.Workspace.ID, filter, page)
}

// Steps lists the steps of a run in the order they started, without input and
// output.
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

// Step reads one step of a run with all there is of it.
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
