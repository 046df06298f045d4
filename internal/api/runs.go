package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

type runItem struct {
	ID         string     `json:"id"`
	WorkflowID string     `json:"workflow_id"`
	Status     run.Status `json:"status"`
	StartedAt  string     `json:"started_at"`
	FinishedAt *string    `json:"finished_at"`
	DurationMS int64      `json:"duration_ms"`
}

// duration is the time taken, or so far.
func duration(started time.Time, finished *time.Time) int64 {
	if finished == nil {
		return clock.Millis(started, clock.Now())
	}
	return clock.Millis(started, *finished)
}

type listRunsRequest struct {
	page
	WorkflowID string `path:"workflow_id"`
	Status     string `query:"status"`
}

func (s *Server) listRuns(ctx context.Context, in *listRunsRequest) (*reply, error) {
	status := run.Status(in.Status)
	if in.Status != "" && !status.Known() {
		return nil, parameter("status", "must be one of running, succeeded, failed, cancelled")
	}
	return listing(ctx, s, in.page, []string{"runs", in.WorkflowID, in.Status},
		func(p paging.Request) (paging.Page[run.Item], error) {
			return s.Runs.List(ctx, actorOf(ctx), in.WorkflowID, status, p)
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
		Payload json.RawMessage `json:"payload"`
	} `body:"optional"`
}

func (s *Server) startRun(ctx context.Context, in *startRunRequest) (*reply, error) {
	wait, asked := preferredWait(in.Prefer)
	wanted := run.Request{WorkflowID: in.WorkflowID, Payload: in.Body.Payload, Watch: asked}
	if in.Depth != nil { // that of the run which the client was told of
		if *in.Depth < 0 {
			return nil, parameter(action.DepthHeader, "must not be negative")
		}
		wanted.Depth = min(*in.Depth, action.MaxDepth) + 1
	}
	var err error
	if wanted.Draft, err = s.draftOf(ctx, in); err != nil {
		return nil, err
	}
	started, err := s.Runs.Start(ctx, actorOf(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return s.begun(started, wait, asked), nil
}

// draftOf is what is to be run in the place of the saved definition; nil for
// nothing.
func (s *Server) draftOf(ctx context.Context, in *startRunRequest) (*workflow.Unsaved, error) {
	body := in.Body
	if body.Definition == nil {
		if body.UsePinned || body.Pinned != nil {
			return nil, fault.Field("/use_pinned", "counts for the run of a draft only, which has a definition")
		}
		return nil, nil
	}
	if err := mayDraft(ctx); err != nil {
		return nil, err
	}
	draft, err := s.Workflows.Draft(ctx, actorOf(ctx), in.WorkflowID, body.trying())
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

func (s *Server) getRunDefinition(ctx context.Context, in *runRequest) (*reply, error) {
	r, d, err := s.Runs.Definition(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(runDefinitionBody{
		RunID: r.ID, WorkflowID: r.WorkflowID, WorkflowVersion: r.WorkflowVersion, Draft: r.Draft,
		Triggers: orEmpty(d.Triggers), Steps: orEmpty(d.Steps), Settings: d.Settings,
	}), nil
}

// begun answers with a run that was started, at once or when it has ended.
func (s *Server) begun(started run.Started, wait time.Duration, asked bool) *reply {
	answer := ok(showRun(started.Detail)).with("Location", "/v1/runs/"+started.ID)
	if asked {
		answer.then = func(ctx context.Context, connection *http.ResponseController) (*reply, error) {
			return s.awaitRun(ctx, connection, started, wait)
		}
	}
	return answer
}

// awaitRun answers with the finished run, or with the running one when the
// time is over.
func (s *Server) awaitRun(ctx context.Context, connection *http.ResponseController, started run.Started, wait time.Duration) (*reply, error) {
	// Waiting is not slowness: the limit for writing begins after it. Without
	// support for deadlines there is no limit to lift.
	_ = connection.SetWriteDeadline(clock.Mark().Add(wait + time.Minute))
	detail, err := s.Runs.Await(ctx, actorOf(ctx), started, wait)
	if err != nil {
		return nil, err
	}
	answer := ok(showRun(detail)).with("Location", "/v1/runs/"+started.ID).
		with("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	if detail.Status != run.Running {
		answer.status = http.StatusOK
	}
	return answer, nil
}

const longestWait = 60

// preferredWait finds wait=N in a Prefer header. A preference that is not
// understood is passed over, as the header demands.
func preferredWait(header string) (time.Duration, bool) {
	for preference := range strings.FieldsFuncSeq(header, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, found := strings.Cut(strings.TrimSpace(preference), "=")
		if !found || !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		n, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
		if err != nil || n < 1 {
			return 0, false
		}
		return time.Duration(min(n, longestWait)) * time.Second, true
	}
	return 0, false
}

type runRequest struct {
	ID string `path:"id"`
}

func (s *Server) getRun(ctx context.Context, in *runRequest) (*reply, error) {
	detail, err := s.Runs.Get(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showRun(detail)), nil
}

type retryRunRequest struct {
	ID     string `path:"id"`
	Prefer string `header:"Prefer"`
}

func (s *Server) retryRun(ctx context.Context, in *retryRunRequest) (*reply, error) {
	wait, asked := preferredWait(in.Prefer)
	started, err := s.Runs.Retry(ctx, actorOf(ctx), in.ID, asked)
	if err != nil {
		return nil, err
	}
	return s.begun(started, wait, asked), nil
}

func (s *Server) cancelRun(ctx context.Context, in *runRequest) (*reply, error) {
	detail, err := s.Runs.Cancel(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showRun(detail)), nil
}
