package api

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/workflow"
)

type runs struct {
	runs      *run.Service
	workflows *workflow.Service
	links     *run.Links
	starts    runStarts
	cursors   *paging.Codec
}

type runItem struct {
	ID         string     `json:"id"`
	WorkflowID string     `json:"workflow_id"`
	Status     run.Status `json:"status"`
	StartedAt  string     `json:"started_at"`
	FinishedAt *string    `json:"finished_at"`
	DurationMS int64      `json:"duration_ms"`
}

// duration returns the milliseconds between start and finish, or until now.
func duration(started time.Time, finished *time.Time) int64 {
	if finished == nil {
		return clock.Millis(started, clock.Now())
	}
	return clock.Millis(started, *finished)
}

type listRunsRequest struct {
	transport.Page
	WorkflowID string `path:"workflow_id"`
	Status     string `query:"status"`
	Waiting    string `query:"waiting"`
}

func (h *runs) list(ctx context.Context, in *listRunsRequest) (*transport.Reply, error) {
	status := run.Status(in.Status)
	if in.Status != "" && !status.Known() {
		return nil, transport.Parameter("status", "must be one of running, succeeded, failed, cancelled")
	}
	waiting, err := parseBool("waiting", in.Waiting)
	if err != nil {
		return nil, err
	}
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"runs", in.WorkflowID, in.Status, in.Waiting},
		func(p paging.Request) (paging.Page[run.Item], error) {
			return h.runs.List(ctx, transport.Actor(ctx), in.WorkflowID, status, waiting, p)
		},
		func(i run.Item) runItem {
			return runItem{i.ID, i.WorkflowID, i.Status, clock.Format(i.StartedAt), clock.FormatPtr(i.FinishedAt), duration(i.StartedAt, i.FinishedAt)}
		})
}

type startRunRequest struct {
	WorkflowID string `path:"workflow_id"`
	Prefer     string `header:"Prefer"`
	Depth      *int   `header:"X-Service-Depth"`
	Body       struct {
		draftBody
		Payload json.RawMessage   `json:"payload"`
		Files   map[string]string `json:"files"`
		// TriggerID is the trigger of the definition that the run pretends was fired, with
		// Headers and Query.
		TriggerID *string         `json:"trigger_id"`
		Headers   json.RawMessage `json:"headers"`
		Query     json.RawMessage `json:"query"`
	} `body:"optional"`
}

func (h *runs) prepareStart(ctx context.Context, in *startRunRequest) (p preparedStart, err error) {
	p.wait, p.wantsWait = preferredWait(in.Prefer)
	wanted := run.Request{WorkflowID: in.WorkflowID, Payload: in.Body.Payload, Files: in.Body.Files, Watch: p.wantsWait}
	if in.Depth != nil { // the depth of the run that makes this request
		if *in.Depth < 0 {
			return p, transport.Parameter(action.DepthHeader, "must not be negative")
		}
		wanted.Depth = min(*in.Depth, action.MaxDepth) + 1
	}
	if wanted.Draft, err = h.draft(ctx, in); err != nil {
		return p, err
	}
	if wanted.Trigger, err = in.trigger(wanted.Draft); err != nil {
		return p, err
	}
	p.Prepared, err = h.runs.PrepareStart(ctx, transport.Actor(ctx), wanted)
	return p, err
}

// trigger returns the trigger that a run of a draft pretends was fired.
func (in *startRunRequest) trigger(draft *workflow.Unsaved) (run.Trigger, error) {
	body := in.Body
	given := run.Trigger{Headers: body.Headers, Query: body.Query}
	if err := requireObjects(body.Headers, body.Query); err != nil {
		return given, err
	}
	if body.TriggerID == nil {
		if body.Headers != nil || body.Query != nil {
			return given, fault.Field("/trigger_id", "is required with headers or a query")
		}
		return given, nil
	}
	if draft == nil {
		return given, fault.Field("/trigger_id", "applies to draft runs only: send a definition with it")
	}
	for _, t := range draft.Definition.Triggers {
		if t.ID == *body.TriggerID {
			given.Type, given.ID = t.Type, t.ID
			return given, nil
		}
	}
	return given, fault.Field("/trigger_id", "the definition has no trigger %q", *body.TriggerID)
}

// draft returns the definition to run in place of the saved one, or nil.
func (h *runs) draft(ctx context.Context, in *startRunRequest) (*workflow.Unsaved, error) {
	body := in.Body
	if body.Definition == nil {
		if body.UsePinned || body.Pinned != nil {
			return nil, fault.Field("/use_pinned", "applies to draft runs only: send a definition with it")
		}
		return nil, nil
	}
	if err := checkDraftScope(ctx); err != nil {
		return nil, err
	}
	draft, err := h.workflows.Draft(ctx, transport.Actor(ctx), in.WorkflowID, body.draftTest())
	if err != nil {
		return nil, workflow.InDefinition(err)
	}
	return &draft, nil
}

type runDefinitionBody struct {
	RunID           string             `json:"run_id"`
	WorkflowID      string             `json:"workflow_id"`
	WorkflowVersion int                `json:"workflow_version"`
	Draft           bool               `json:"draft"`
	Triggers        []workflow.Trigger `json:"triggers"`
	Steps           []workflow.Step    `json:"steps"`
	Settings        workflow.Settings  `json:"settings"`
}

func (h *runs) getDefinition(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	r, d, err := h.runs.Definition(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return transport.OK(runDefinitionBody{
		RunID: r.ID, WorkflowID: r.WorkflowID, WorkflowVersion: r.WorkflowVersion, Draft: r.Draft,
		Triggers: orEmpty(d.Triggers), Steps: orEmpty(d.Steps), Settings: d.Settings,
	}), nil
}

func (h *runs) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	detail, err := h.runs.Get(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showRun, detail, err)
}

type retryRunRequest struct {
	ID     string `path:"id"`
	Prefer string `header:"Prefer"`
	Body   struct {
		Version retryVersion `json:"version"`
	} `body:"optional"`
}

// retryVersion is the version that a retry requests, or empty.
type retryVersion run.RetryVersion

// UnmarshalJSON rejects unknown names. Only a missing member means the default.
func (v *retryVersion) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*string)(v)); err != nil {
		return err
	}
	if !run.RetryVersion(*v).Known() {
		return errors.New("must be pinned, for the version that the run executed, or current, for the current version of the workflow")
	}
	return nil
}

func (h *runs) prepareRetry(ctx context.Context, in *retryRunRequest) (p preparedStart, err error) {
	p.wait, p.wantsWait = preferredWait(in.Prefer)
	p.Prepared, err = h.runs.PrepareRetry(ctx, transport.Actor(ctx), in.ID, run.RetryOptions{Version: run.RetryVersion(in.Body.Version), Watch: p.wantsWait})
	return p, err
}

func (h *runs) cancel(ctx context.Context, tx txn.Tx, in *idRequest) (*transport.Reply, error) {
	detail, err := h.runs.In(tx).Cancel(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showRun, detail, err)
}
