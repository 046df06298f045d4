package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/usage"
)

// usageReports serves what a workspace uses of its limits.
type usageReports struct {
	usage *usage.Service
	files *file.Service
}

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

func (h *usageReports) get(ctx context.Context, in *usageRequest) (*transport.Reply, error) {
	actor := transport.Actor(ctx)
	days, err := transport.NumberOf("days", in.Days, defaultDays, maxDays)
	if err != nil {
		return nil, err
	}
	report, err := h.usage.Report(ctx, actor, days)
	if err != nil {
		return nil, err
	}
	limits := usageLimits(actor.Limits())
	limits.FileBytes = h.files.MaxBytes(actor.Workspace.Plan)
	body := usageBody{
		WorkspaceID: actor.Workspace.ID, Plan: actor.Workspace.Plan, RequestsPerMinute: actor.Workspace.RequestsPerMinute,
		Limits: limits, Current: usageNow(report.Current), Days: make([]usageDay, len(report.Days)),
	}
	for i, day := range report.Days {
		body.Days[i] = usageDay(day)
	}
	return transport.OK(body), nil
}
