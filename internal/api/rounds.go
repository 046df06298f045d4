package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
)

type roundsBody struct {
	StepID string      `json:"step_id"`
	Total  *int        `json:"total"`
	Counts roundCounts `json:"counts"`
	transport.ListBody[roundBody]
}

type roundCounts struct {
	Running   int `json:"running"`
	Waiting   int `json:"waiting"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled"`
}

type roundBody struct {
	Index        int            `json:"index"`
	Status       run.StepStatus `json:"status"`
	StartedAt    string         `json:"started_at"`
	FinishedAt   *string        `json:"finished_at"`
	DurationMS   int64          `json:"duration_ms"`
	FailedStepID *string        `json:"failed_step_id"`
}

type listRoundsRequest struct {
	transport.Page
	ID     string `path:"id"`
	Block  string `path:"step_id"`
	Status string `query:"status"`
}

func (h *runs) listRounds(ctx context.Context, in *listRoundsRequest) (*transport.Reply, error) {
	status := run.StepStatus(in.Status)
	if in.Status != "" && !status.Known() {
		return nil, transport.Parameter("status", "must be one of running, waiting, succeeded, failed, skipped, cancelled")
	}
	var found run.Rounds
	list, err := transport.PaginatedBody(ctx, h.cursors, in.Page, []string{"rounds", in.ID, in.Status, in.Block},
		func(p paging.Request) (_ paging.Page[run.Round], err error) {
			found, err = h.runs.Rounds(ctx, transport.Actor(ctx), in.ID, in.Block, status, p)
			return found.Page, err
		},
		func(r run.Round) roundBody {
			return roundBody{
				Index: r.Index, Status: r.Status, StartedAt: clock.Format(r.StartedAt), FinishedAt: clock.FormatPtr(r.FinishedAt),
				DurationMS: duration(r.StartedAt, r.FinishedAt), FailedStepID: orNull(r.FailedStep),
			}
		})
	if err != nil {
		return nil, err
	}
	return transport.OK(roundsBody{StepID: found.Block, Total: found.Total, Counts: countsOf(found.Counts), ListBody: list}), nil
}

func countsOf(counts map[run.StepStatus]int) roundCounts {
	return roundCounts{
		Running: counts[run.StepRunning], Waiting: counts[run.StepWaiting], Succeeded: counts[run.StepSucceeded],
		Failed: counts[run.StepFailed], Skipped: counts[run.StepSkipped], Cancelled: counts[run.StepCancelled],
	}
}
