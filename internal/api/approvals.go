package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type resumeStepRequest struct {
	ID     string `path:"id"`
	StepID string `path:"step_id"`
	Body   struct {
		Approved *bool           `json:"approved"`
		Comment  string          `json:"comment"`
		Data     json.RawMessage `json:"data" null:"ok"`
	} `body:"required"`
}

func (h *runs) resumeStep(ctx context.Context, tx txn.Tx, in *resumeStepRequest) (*transport.Reply, error) {
	if in.Body.Approved == nil {
		return nil, fault.Field("/approved", "is required")
	}
	detail, err := h.runs.In(tx).Resume(ctx, transport.Actor(ctx), in.ID, in.StepID, run.Resumption{
		Approved: *in.Body.Approved, Comment: in.Body.Comment, Data: in.Body.Data,
	})
	return transport.Respond(showRun, detail, err)
}

type approvalBody struct {
	RunID        string  `json:"run_id"`
	StepID       string  `json:"step_id"`
	StepName     string  `json:"step_name"`
	WorkflowID   string  `json:"workflow_id"`
	WorkflowName string  `json:"workflow_name"`
	Message      *string `json:"message"`
	Since        string  `json:"since"`
	Until        *string `json:"until"`
	// The links are shown only to callers who may decide.
	PageURL     *string `json:"page_url"`
	CallbackURL *string `json:"callback_url"`
}

func (h *runs) listApprovals(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	actor := transport.Actor(ctx)
	return transport.Paginate(ctx, h.cursors, *in, []string{"approvals"},
		func(p paging.Request) (paging.Page[run.Approval], error) {
			return h.runs.Approvals(ctx, actor, p)
		},
		func(a run.Approval) approvalBody {
			var input struct {
				Message *string `json:"message"`
			}
			// If the input cannot be decoded, there is no message to show.
			_ = json.Unmarshal(a.Input, &input)
			body := approvalBody{
				RunID: a.RunID, StepID: a.StepID, StepName: a.StepName, WorkflowID: a.WorkflowID, WorkflowName: a.WorkflowName,
				Message: input.Message, Since: clock.Format(a.Since), Until: clock.FormatPtr(a.Until),
			}
			if !auth.Grants(actor.Scopes, auth.Execute) {
				return body
			}
			if link, err := h.links.Link(ctx, actor.Workspace.ID, a.RunID, a.StepID); err == nil {
				body.PageURL, body.CallbackURL = &link.Page, &link.Callback
			}
			return body
		})
}

type listLogsRequest struct {
	transport.Page
	ID     string `path:"id"`
	StepID string `query:"step_id"`
}

type logLine struct {
	StepID  string `json:"step_id"`
	Attempt int    `json:"attempt"`
	At      string `json:"at"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

func (h *runs) listLogs(ctx context.Context, in *listLogsRequest) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"logs", in.ID, in.StepID},
		func(p paging.Request) (paging.Page[run.LogLine], error) {
			return h.runs.Logs(ctx, transport.Actor(ctx), in.ID, in.StepID, p)
		},
		func(l run.LogLine) logLine {
			return logLine{l.Path, l.Attempt, clock.Format(l.At), l.Level, l.Message}
		})
}
