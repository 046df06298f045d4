package api

import (
	"context"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
)

// maxFilter limits the length of text filters.
const maxFilter = 200

type listedRun struct {
	ID           string       `json:"id"`
	WorkflowID   string       `json:"workflow_id"`
	WorkflowName string       `json:"workflow_name"`
	Status       run.Status   `json:"status"`
	Trigger      string       `json:"trigger"`
	Draft        bool         `json:"draft"`
	StartedAt    string       `json:"started_at"`
	FinishedAt   *string      `json:"finished_at"`
	DurationMS   int64        `json:"duration_ms"`
	Error        *stepError   `json:"error"`
	StartedBy    *starter     `json:"started_by"`
	WaitingFor   *waitingBody `json:"waiting_for"`
}

type listAllRunsRequest struct {
	transport.Page
	Status        string `query:"status"`
	WorkflowID    string `query:"workflow_id"`
	Trigger       string `query:"trigger"`
	StartedAfter  string `query:"started_after"`
	StartedBefore string `query:"started_before"`
	Text          string `query:"text"`
	Waiting       string `query:"waiting"`
}

func (in *listAllRunsRequest) filter() (run.Filter, error) {
	f := run.Filter{Status: run.Status(in.Status), WorkflowID: in.WorkflowID, Trigger: in.Trigger, Text: in.Text}
	if in.Status != "" && !f.Status.Known() {
		return f, transport.Parameter("status", "must be one of running, succeeded, failed, cancelled")
	}
	for _, text := range []struct{ name, value string }{{"trigger", in.Trigger}, {"text", in.Text}} {
		if len(text.value) > maxFilter {
			return f, transport.Parameter(text.name, "must not be longer than %d bytes", maxFilter)
		}
	}
	var err error
	if f.StartedAfter, err = parseTime("started_after", in.StartedAfter); err != nil {
		return f, err
	}
	if f.StartedBefore, err = parseTime("started_before", in.StartedBefore); err != nil {
		return f, err
	}
	f.Waiting, err = parseBool("waiting", in.Waiting)
	return f, err
}

// parseBool parses an optional boolean parameter. It returns nil if the parameter is missing.
func parseBool(name, value string) (*bool, error) {
	switch value {
	case "":
		return nil, nil
	case "true", "false":
		yes := value == "true"
		return &yes, nil
	}
	return nil, transport.Parameter(name, "must be true or false")
}

// parseTime parses an optional time parameter. It returns nil if the parameter is missing.
func parseTime(name, value string) (*time.Time, error) {
	if value == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return nil, transport.Parameter(name, "must be a time such as 2026-11-15T09:30:00Z; encode a plus sign as %%2B")
	}
	return &at, nil
}

func (h *runs) listAll(ctx context.Context, in *listAllRunsRequest) (*transport.Reply, error) {
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	name := []string{"all runs", in.Status, strconv.Quote(in.WorkflowID), strconv.Quote(in.Trigger), in.StartedAfter, in.StartedBefore, strconv.Quote(in.Text), in.Waiting}
	return transport.Paginate(ctx, h.cursors, in.Page, name,
		func(p paging.Request) (paging.Page[run.Listed], error) {
			return h.runs.ListAll(ctx, transport.Actor(ctx), filter, p)
		},
		showListedRun)
}

func showListedRun(r run.Listed) listedRun {
	return listedRun{
		ID: r.ID, WorkflowID: r.WorkflowID, WorkflowName: r.WorkflowName, Status: r.Status, Trigger: r.Trigger, Draft: r.Draft,
		StartedAt: clock.Format(r.StartedAt), FinishedAt: clock.FormatPtr(r.FinishedAt), DurationMS: duration(r.StartedAt, r.FinishedAt),
		Error: showFailure(r.Error), StartedBy: showStarter(r.StartedBy), WaitingFor: showWaiting(r.Waiting),
	}
}

type listStepsRequest struct {
	transport.Page
	ID     string `path:"id"`
	Status string `query:"status"`
	Block  string `query:"block"`
}

func (h *runs) listSteps(ctx context.Context, in *listStepsRequest) (*transport.Reply, error) {
	filter := run.StepFilter{Status: run.StepStatus(in.Status), Block: in.Block}
	if in.Status != "" && !filter.Status.Known() {
		return nil, transport.Parameter("status", "must be one of running, waiting, succeeded, failed, skipped, cancelled")
	}
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"steps", in.ID, in.Status, in.Block},
		func(p paging.Request) (paging.Page[run.Step], error) {
			return h.runs.Steps(ctx, transport.Actor(ctx), in.ID, filter, p)
		},
		showStepFields)
}

type stepRequest struct {
	ID     string `path:"id"`
	StepID string `path:"step_id"`
}

func (h *runs) getStep(ctx context.Context, in *stepRequest) (*transport.Reply, error) {
	step, err := h.runs.Step(ctx, transport.Actor(ctx), in.ID, in.StepID)
	if err != nil {
		return nil, err
	}
	return transport.OK(showStep(step.Step, step.Attempts)), nil
}
