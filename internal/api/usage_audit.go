package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

type usageBody struct {
	WorkspaceID       string      `json:"workspace_id"`
	Plan              auth.Plan   `json:"plan"`
	RequestsPerMinute int         `json:"requests_per_minute"`
	Limits            usageLimits `json:"limits"`
	Current           usageNow    `json:"current"`
	Days              []usageDay  `json:"days"`
}

type usageLimits struct {
	RequestBodyBytes int64 `json:"request_body_bytes"`
	PayloadBytes     int   `json:"payload_bytes"`
	StepsPerWorkflow int   `json:"steps_per_workflow"`
	Workflows        int   `json:"workflows"`
	Webhooks         int   `json:"webhooks"`
	APIKeys          int   `json:"api_keys"`
	StepsPerRun      int   `json:"steps_per_run"`
	OutputBytes      int   `json:"output_bytes"`
	StateBytes       int   `json:"state_bytes"`
	ConcurrentRuns   int   `json:"concurrent_runs"`
	QueuedRuns       int   `json:"queued_runs"`
	Secrets          int   `json:"secrets"`
	Variables        int   `json:"variables"`
	Connections      int   `json:"connections"`
	VariableBytes    int   `json:"variable_bytes"`
	Tables           int   `json:"tables"`
	TableRows        int   `json:"table_rows"`
	RowBytes         int   `json:"row_bytes"`
	StateKeys        int   `json:"state_keys"`
	StoredBytes      int   `json:"stored_bytes"`
	FileBytes        int64 `json:"file_bytes"`
	RunFileBytes     int64 `json:"run_file_bytes"`
	StoredFileBytes  int64 `json:"stored_file_bytes"`
}

type usageNow struct {
	Workflows       int   `json:"workflows"`
	Webhooks        int   `json:"webhooks"`
	APIKeys         int   `json:"api_keys"`
	Secrets         int   `json:"secrets"`
	Variables       int   `json:"variables"`
	VariableBytes   int   `json:"variable_bytes"`
	Connections     int   `json:"connections"`
	RunningRuns     int   `json:"running_runs"`
	Tables          int   `json:"tables"`
	TableRows       int   `json:"table_rows"`
	StateKeys       int   `json:"state_keys"`
	StoredBytes     int   `json:"stored_bytes"`
	Files           int64 `json:"files"`
	StoredFileBytes int64 `json:"stored_file_bytes"`
}

type usageDay struct {
	Date          string `json:"date"`
	Requests      int64  `json:"requests"`
	RunsStarted   int64  `json:"runs_started"`
	RunsSucceeded int64  `json:"runs_succeeded"`
	RunsFailed    int64  `json:"runs_failed"`
	RunsCancelled int64  `json:"runs_cancelled"`
}

type usageRequest struct {
	Days *int `query:"days"`
}

const (
	defaultDays = 30
	maxDays     = 90
)

func (s *Server) getUsage(ctx context.Context, in *usageRequest) (*reply, error) {
	actor := actorOf(ctx)
	days, err := numberOf("days", in.Days, defaultDays, maxDays)
	if err != nil {
		return nil, err
	}
	report, err := s.Usage.Report(ctx, actor, days)
	if err != nil {
		return nil, err
	}
	limits := usageLimits(actor.Limits())
	limits.FileBytes = s.Files.MaxBytes(actor.Workspace.Plan)
	body := usageBody{
		WorkspaceID: actor.Workspace.ID, Plan: actor.Workspace.Plan, RequestsPerMinute: actor.Workspace.RequestsPerMinute,
		Limits: limits, Current: usageNow(report.Current), Days: make([]usageDay, len(report.Days)),
	}
	for i, day := range report.Days {
		body.Days[i] = usageDay(day)
	}
	return ok(body), nil
}

type auditBody struct {
	ID         string         `json:"id"`
	At         string         `json:"at"`
	Actor      auditActor     `json:"actor"`
	Action     string         `json:"action"`
	TargetType string         `json:"target_type"`
	TargetID   string         `json:"target_id"`
	Details    map[string]any `json:"details"`
	RequestID  *string        `json:"request_id"`
}

type auditActor struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
}

type listAuditRequest struct {
	page
	Action   string `query:"action"`
	TargetID string `query:"target_id"`
}

func (s *Server) listAudit(ctx context.Context, in *listAuditRequest) (*reply, error) {
	filter := audit.Filter{Action: in.Action, TargetID: in.TargetID}
	return paginate(ctx, s, in.page, []string{"audit", in.Action, in.TargetID},
		func(p paging.Request) (paging.Page[audit.Entry], error) {
			return s.Audit.List(ctx, actorOf(ctx).Workspace.ID, filter, p)
		},
		func(e audit.Entry) auditBody {
			return auditBody{
				ID: e.ID, At: clock.Format(e.At), Actor: auditActor{e.ActorType, orNull(e.ActorID)}, Action: e.Action,
				TargetType: e.TargetType, TargetID: e.TargetID, Details: e.Details, RequestID: orNull(e.RequestID),
			}
		})
}
