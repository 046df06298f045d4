// Package subrun implements the action flow.run, which starts a run of another
// workflow, exactly once, and by default waits for it to end.
package subrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Error codes of the action.
const (
	ChainDepth   = "chain_depth_exceeded"
	NotStarted   = "run_not_started"
	RunFailed    = "run_failed"
	RunCancelled = "run_cancelled"
	RunDeleted   = "run_deleted"
)

const maxWait = 366 * 24 * time.Hour

// Child is a run to start.
type Child struct {
	Workspace  string
	WorkflowID string
	Payload    []byte
	Files      []string // the JSON pointers of the files inside Payload
	// Run is the parent run, and Began is when its step began.
	Run   action.Run
	Began time.Time
	// Waited reports whether the step waits for the run to end.
	Waited bool
}

// Starter starts runs. It is idempotent: repeated calls for the same child start
// one run.
type Starter interface {
	StartChild(ctx context.Context, c Child) (runID string, err error)
}

// Entry declares the action.
func Entry(starter Starter) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "flow.run",
			Title:    "Run another workflow",
			Keywords: []string{"subworkflow", "sub workflow", "execute workflow", "call workflow", "child"},
			Summary: "Starts a run of another workflow in the same workspace, exactly once, and, by default, waits for it to end. " +
				"The step fails if that run fails. A run can have at most 10 ancestors.",
			Stores: true,
			Input: `{
				"type": "object",
				"required": ["workflow_id"],
				"additionalProperties": false,
				"properties": {
					"workflow_id": {"type": "string", "minLength": 1, "description": "The workflow to run, in the same workspace."},
					"payload": {"type": "object", "description": "The payload, which the workflow sees as trigger.payload. Defaults to {}."},
					"wait": {"type": "boolean", "description": "Whether to wait for the run to end. Defaults to true. The step then fails unless the run succeeds."}
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"run_id": {"type": "string"},
					"status": {"type": "string", "description": "running if the step does not wait, otherwise succeeded."},
					"output": {"description": "The output of the last step of that workflow. Null if the step does not wait."}
				}
			}`,
			Limits: []string{"A run can have at most 10 ancestors.", "The step waits at most 366 days."},
			Codes: []action.Code{
				{Name: NotStarted, Meaning: "The run could not be started because the workflow is unknown or paused, or its concurrency limit is reached. The start is retried if the queue is full."},
				{Name: RunFailed, Meaning: "The run failed."},
				{Name: RunCancelled, Meaning: "The run was cancelled."},
				{Name: RunDeleted, Meaning: "The workflow of the run was deleted."},
				{Name: ChainDepth, Meaning: "The run already has 10 ancestors."},
			},
			Examples: []action.Example{{
				Title:  "Run a workflow and wait for its result",
				With:   `{"workflow_id": "wf_01m7fe3gv0es8r65rzyjka792g", "payload": {"id": 42}}`,
				Answer: `{"run_id": "run_01m7fe3gv0es8r65rzyjka792h", "status": "succeeded", "output": {"total": 3}}`,
				Output: `{"run_id": "run_01m7fe3gv0es8r65rzyjka792h", "status": "succeeded", "output": {"total": 3}}`,
			}},
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			switch {
			case req.Answer != nil:
				return outcome(req.Answer)
			case !req.WokenAt.IsZero() && req.Left <= 0:
				return action.Result{}, &action.Failure{Code: action.TimedOut, Message: "the run did not end within 366 days"}
			}
			return start(ctx, starter, req)
		}),
	}
}

func start(ctx context.Context, starter Starter, req action.Request) (action.Result, error) {
	if req.Run.Trial {
		return action.Result{}, &action.Failure{Code: NotStarted, Message: "a step test does not start runs"}
	}
	if req.Run.Depth >= action.MaxDepth {
		return action.Result{}, &action.Failure{Code: ChainDepth, Message: fmt.Sprintf("the run already has %d ancestors, the maximum; check for workflows that start each other", action.MaxDepth)}
	}
	payload, files := []byte("{}"), []string(nil)
	if given, ok := req.MaskedInput["payload"]; ok && given != nil {
		encoded, err := strictjson.Encode(given)
		if err != nil {
			return action.Result{}, err
		}
		payload, files = encoded, expr.FilePointers(given)
	}
	workflowID, _ := req.Input["workflow_id"].(string)
	waits := req.Input["wait"] != false
	id, err := starter.StartChild(ctx, Child{
		Workspace: req.Workspace, WorkflowID: workflowID, Payload: payload, Files: files, Run: req.Run, Began: req.Began, Waited: waits,
	})
	if err != nil {
		return action.Result{}, startFailure(err)
	}
	if !waits {
		return action.Result{Output: map[string]any{"run_id": id, "status": "running", "output": nil}}, nil
	}
	return action.Result{Wait: &action.Wait{
		For: maxWait, Awaits: action.AwaitsRun, Reason: fmt.Sprintf("waits for %s to end", id),
	}}, nil
}

// startFailure returns why the run was not started. A full queue is retryable.
func startFailure(err error) error {
	because, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	status := because.Code.Status()
	return &action.Failure{
		Code: NotStarted, Message: fmt.Sprintf("%s (%s)", because.Message, because.Code),
		Retryable: status == http.StatusTooManyRequests || status >= http.StatusInternalServerError, RetryAfter: because.RetryAfter,
	}
}

func outcome(answer map[string]any) (action.Result, error) {
	id, status := answer["run_id"], answer["status"]
	failed := func(code, format string, args ...any) (action.Result, error) {
		return action.Result{}, &action.Failure{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	switch status {
	case "succeeded":
		return action.Result{Output: map[string]any{"run_id": id, "status": status, "output": answer["output"]}}, nil
	case "cancelled":
		return failed(RunCancelled, "%v was cancelled", id)
	case "deleted":
		return failed(RunDeleted, "the workflow of %v was deleted", id)
	}
	return failed(RunFailed, "%v failed: %v", id, answer["error"])
}
