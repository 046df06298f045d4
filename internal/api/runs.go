package api

import (
	"context"
	"encoding/json"
	"errors"
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

// duration returns the milliseconds between start and finish, or until now.
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
	Waiting    string `query:"waiting"`
}

func (s *Server) listRuns(ctx context.Context, in *listRunsRequest) (*reply, error) {
	status := run.Status(in.Status)
	if in.Status != "" && !status.Known() {
		return nil, parameter("status", "must be one of running, succeeded, failed, cancelled")
	}
	waiting, err := parseBool("waiting", in.Waiting)
	if err != nil {
		return nil, err
	}
	return paginate(ctx, s, in.page, []string{"runs", in.WorkflowID, in.Status, in.Waiting},
		func(p paging.Request) (paging.Page[run.Item], error) {
			return s.Runs.List(ctx, actorOf(ctx), in.WorkflowID, status, waiting, p)
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
	} `body:"optional"`
}

func (s *Server) startRun(ctx context.Context, in *startRunRequest) (commit, error) {
	wait, wantsWait := preferredWait(in.Prefer)
	wanted := run.Request{WorkflowID: in.WorkflowID, Payload: in.Body.Payload, Files: in.Body.Files, Watch: wantsWait}
	if in.Depth != nil { // the depth of the run that makes this request
		if *in.Depth < 0 {
			return nil, parameter(action.DepthHeader, "must not be negative")
		}
		wanted.Depth = min(*in.Depth, action.MaxDepth) + 1
	}
	var err error
	if wanted.Draft, err = s.draft(ctx, in); err != nil {
		return nil, err
	}
	prepared, err := s.Runs.PrepareStart(ctx, actorOf(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return s.commitStart(prepared, wait, wantsWait), nil
}

// draft returns the definition to run in place of the saved one, or nil.
func (s *Server) draft(ctx context.Context, in *startRunRequest) (*workflow.Unsaved, error) {
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
	draft, err := s.Workflows.Draft(ctx, actorOf(ctx), in.WorkflowID, body.draftTest())
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

// commitStart starts a prepared run and responds with it.
func (s *Server) commitStart(prepared *run.Prepared, wait time.Duration, wantsWait bool) commit {
	return func(ctx context.Context) (*reply, error) {
		started, committed, err := prepared.Commit(ctx)
		if err != nil {
			return nil, err
		}
		if !committed {
			return nil, errStale
		}
		return s.startedReply(started, wait, wantsWait), nil
	}
}

// startedReply responds with a started run, immediately or when it has ended.
func (s *Server) startedReply(started run.Started, wait time.Duration, wantsWait bool) *reply {
	response := ok(showRun(started.Detail)).withHeader("Location", "/v1/runs/"+started.ID)
	if wantsWait {
		response.afterCommit = func(ctx context.Context, connection *http.ResponseController) (*reply, error) {
			return s.awaitRun(ctx, connection, started, wait)
		}
	}
	return response
}

// awaitRun responds with the finished run, or with the running one when the wait
// times out.
func (s *Server) awaitRun(ctx context.Context, connection *http.ResponseController, started run.Started, wait time.Duration) (*reply, error) {
	// The write timeout starts after the wait. A connection without deadline
	// support has no timeout to extend.
	_ = connection.SetWriteDeadline(clock.Monotonic().Add(wait + time.Minute))
	detail, err := s.Runs.Await(ctx, actorOf(ctx), started, wait)
	if err != nil {
		return nil, err
	}
	response := ok(showRun(detail)).withHeader("Location", "/v1/runs/"+started.ID).
		withHeader("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	if detail.Status != run.Running {
		response.status = http.StatusOK
	}
	return response, nil
}

const maxWaitSeconds = 60

// preferredWait finds wait=N in a Prefer header. It ignores preferences it does
// not understand, as RFC 7240 requires.
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
		return time.Duration(min(n, maxWaitSeconds)) * time.Second, true
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

func (s *Server) retryRun(ctx context.Context, in *retryRunRequest) (commit, error) {
	wait, wantsWait := preferredWait(in.Prefer)
	prepared, err := s.Runs.PrepareRetry(ctx, actorOf(ctx), in.ID, run.RetryOptions{Version: run.RetryVersion(in.Body.Version), Watch: wantsWait})
	if err != nil {
		return nil, err
	}
	return s.commitStart(prepared, wait, wantsWait), nil
}

func (s *Server) cancelRun(ctx context.Context, in *runRequest) (*reply, error) {
	detail, err := s.Runs.Cancel(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showRun(detail)), nil
}
