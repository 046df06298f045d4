package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
)

type activeItem struct {
	workflowItem
	Activity activityBody `json:"activity"`
}

type activityBody struct {
	Triggers    []activityTrigger `json:"triggers"`
	NextRunAt   *string           `json:"next_run_at"`
	LastRun     *recentRun        `json:"last_run"`
	Recent      []recentRun       `json:"recent"`
	SuccessRate *float64          `json:"success_rate"`
}

type activityTrigger struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

type recentRun struct {
	ID         string  `json:"id"`
	Status     string  `json:"status"`
	Draft      bool    `json:"draft"`
	StartedAt  string  `json:"started_at"`
	FinishedAt *string `json:"finished_at"`
	DurationMS int64   `json:"duration_ms"`
}

func (h *workflows) listActivity(ctx context.Context, in *listWorkflowsRequest, filter workflow.Filter) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, in.Page, in.name(),
		func(p paging.Request) (paging.Page[workflow.ActiveItem], error) {
			return h.workflows.ListActive(ctx, transport.Actor(ctx), filter, p)
		},
		func(i workflow.ActiveItem) activeItem {
			return activeItem{showWorkflowItem(i.Item), showActivity(i.Activity)}
		})
}

func showActivity(a workflow.Activity) activityBody {
	body := activityBody{
		Triggers: make([]activityTrigger, len(a.Triggers)), NextRunAt: clock.FormatPtr(a.NextAt),
		Recent: make([]recentRun, len(a.Runs)), SuccessRate: a.SuccessRate(),
	}
	for i, trigger := range a.Triggers {
		body.Triggers[i] = activityTrigger(trigger)
	}
	for i, r := range a.Runs {
		body.Recent[i] = recentRun{
			ID: r.ID, Status: r.Status, Draft: r.Draft, StartedAt: clock.Format(r.StartedAt), FinishedAt: clock.FormatPtr(r.FinishedAt),
			DurationMS: duration(r.StartedAt, r.FinishedAt),
		}
	}
	if len(body.Recent) > 0 {
		body.LastRun = &body.Recent[0]
	}
	return body
}
