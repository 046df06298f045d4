package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

type roundsBody struct {
	StepID string      `json:"step_id"`
	Total  *int        `json:"total"`
	Counts roundCounts `json:"counts"`
	listBody[roundBody]
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
	page
	ID     string `path:"id"`
	Block  string `path:"step_id"`
	Status string `query:"status"`
}

func (s *Server) listRounds(ctx context.Context, in *listRoundsRequest) (*reply, error) {
	status := run.StepStatus(in.Status)
	if in.Status != "" && !status.Known() {
		return nil, parameter("status", "must be one of running, waiting, succeeded, failed, skipped, cancelled")
	}
	var found run.Rounds
	list, err := paginatedBody(ctx, s, in.page, []string{"rounds", in.ID, in.Status, in.Block},
		func(p paging.Request) (_ paging.Page[run.Round], err error) {
			found, err = s.Runs.Rounds(ctx, actorOf(ctx), in.ID, in.Block, status, p)
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
	return ok(roundsBody{StepID: found.Block, Total: found.Total, Counts: countsOf(found.Counts), listBody: list}), nil
}

func countsOf(counts map[run.StepStatus]int) roundCounts {
	return roundCounts{
		Running: counts[run.StepRunning], Waiting: counts[run.StepWaiting], Succeeded: counts[run.StepSucceeded],
		Failed: counts[run.StepFailed], Skipped: counts[run.StepSkipped], Cancelled: counts[run.StepCancelled],
	}
}
