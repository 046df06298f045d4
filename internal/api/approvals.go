package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
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

func (s *Server) resumeStep(ctx context.Context, in *resumeStepRequest) (*reply, error) {
	if in.Body.Approved == nil {
		return nil, fault.Field("/approved", "is required")
	}
	detail, err := s.Runs.Resume(ctx, actorOf(ctx), in.ID, in.StepID, run.Resumption{
		Approved: *in.Body.Approved, Comment: in.Body.Comment, Data: in.Body.Data,
	})
	if err != nil {
		return nil, err
	}
	return ok(showRun(detail)), nil
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

func (s *Server) listApprovals(ctx context.Context, in *page) (*reply, error) {
	actor := actorOf(ctx)
	return paginate(ctx, s, *in, []string{"approvals"},
		func(p paging.Request) (paging.Page[run.Approval], error) {
			return s.Runs.Approvals(ctx, actor, p)
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
			if link, err := s.Links.Link(ctx, actor.Workspace.ID, a.RunID, a.StepID); err == nil {
				body.PageURL, body.CallbackURL = &link.Page, &link.Callback
			}
			return body
		})
}

type listLogsRequest struct {
	page
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

func (s *Server) listLogs(ctx context.Context, in *listLogsRequest) (*reply, error) {
	return paginate(ctx, s, in.page, []string{"logs", in.ID, in.StepID},
		func(p paging.Request) (paging.Page[run.LogLine], error) {
			return s.Runs.Logs(ctx, actorOf(ctx), in.ID, in.StepID, p)
		},
		func(l run.LogLine) logLine {
			return logLine{l.Path, l.Attempt, clock.Format(l.At), l.Level, l.Message}
		})
}
