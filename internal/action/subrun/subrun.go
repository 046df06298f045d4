// Package subrun is the action flow.run: it starts a run of another workflow,
// once, and waits for its end unless told otherwise.
package subrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// The codes of the action.
const (
	ChainDepth   = "chain_depth_exceeded"
	NotStarted   = "run_not_started"
	RunFailed    = "run_failed"
	RunCancelled = "run_cancelled"
	RunDeleted   = "run_deleted"
)

// longest is how long the step waits at most.
const longest = 366 * 24 * time.Hour

// Child is a run to start.
type Child struct {
	Workspace  string
	WorkflowID string
	Payload    []byte
	// Run is the run that asks for it, Began when its step began.
	Run   action.Run
	Began time.Time
	// Waited says that the step waits for its end.
	Waited bool
}

// Starter starts runs: however often it is asked for the same one, once.
type Starter interface {
	StartChild(ctx context.Context, c Child) (runID string, err error)
}

// Entry declares the action.
func Entry(starter Starter) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:  "flow.run",
			Title: "Run another workflow",
			Summary: "Starts a run of a workflow of the same workspace and waits for its end, unless told otherwise. " +
				"The step fails when that run fails. At most 10 runs can stand above one another.",
			Stores: true,
			Input: `{
				"type": "object",
				"required": ["workflow_id"],
				"additionalProperties": false,
				"properties": {
					"workflow_id": {"type": "string", "minLength": 1, "description": "The workflow to run."},
					"payload": {"type": "object", "description": "What that workflow sees as trigger.payload."},
					"wait": {"type": "boolean", "description": "Whether to wait for the end of the run: true unless given."}
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"run_id": {"type": "string"},
					"status": {"type": "string", "description": "running for a step that does not wait, else succeeded."},
					"output": {"description": "The output of the last step of that workflow; null for a step that does not wait."}
				}
			}`,
			Limits: []string{"At most 10 runs can stand above one another.", "The step waits at most 366 days."},
			Codes: []action.Code{
				{Name: NotStarted, Meaning: "The run could not be started: the workflow is unknown, paused or refuses another run. A full queue is tried again."},
				{Name: RunFailed, Meaning: "The run failed."},
				{Name: RunCancelled, Meaning: "The run was cancelled."},
				{Name: RunDeleted, Meaning: "The workflow of the run was deleted."},
				{Name: ChainDepth, Meaning: "Ten runs stand above this one already."},
			},
			Examples: []action.Example{{
				Title:  "After the run has ended",
				With:   `{"workflow_id": "wf_01m7fe3gv0es8r65rzyjka792g", "payload": {"id": 42}}`,
				Answer: `{"run_id": "run_01m7fe3gv0es8r65rzyjka792h", "status": "succeeded", "output": {"total": 3}}`,
				Output: `{"run_id": "run_01m7fe3gv0es8r65rzyjka792h", "status": "succeeded", "output": {"total": 3}}`,
			}},
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			switch {
			case req.Answer != nil:
				return outcome(req.Answer)
			case !req.WokenAt.IsZero() && !req.WokenAt.After(req.Now):
				return action.Result{}, &action.Failure{Code: action.TimedOut, Message: "the run did not end within 366 days"}
			}
			return start(ctx, starter, req)
		}),
	}
}

func start(ctx context.Context, starter Starter, req action.Request) (action.Result, error) {
	if req.Run.Trial {
		return action.Result{}, &action.Failure{Code: NotStarted, Message: "a step that is only tried out starts no run"}
	}
	if req.Run.Depth >= action.MaxDepth {
		return action.Result{}, &action.Failure{Code: ChainDepth, Message: fmt.Sprintf("%d runs stand above this one, which is the most there can be", action.MaxDepth)}
	}
	payload := []byte("{}")
	if given, ok := req.Input["payload"]; ok && given != nil {
		encoded, err := strictjson.Encode(given)
		if err != nil {
			return action.Result{}, err
		}
		payload = encoded
	}
	workflowID, _ := req.Input["workflow_id"].(string)
	waits := req.Input["wait"] != false
	id, err := starter.StartChild(ctx, Child{
		Workspace: req.Workspace, WorkflowID: workflowID, Payload: payload, Run: req.Run, Began: req.Began, Waited: waits,
	})
	if err != nil {
		return action.Result{}, refused(err)
	}
	if !waits {
		return action.Result{Output: map[string]any{"run_id": id, "status": "running", "output": nil}}, nil
	}
	return action.Result{Wait: &action.Wait{
		Until: req.Began.Add(longest), Awaits: action.AwaitsRun, Reason: fmt.Sprintf("waits for the end of %s", id),
	}}, nil
}

// refused says why the run was not started. A queue that is full may be less so
// later.
func refused(err error) error {
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

// outcome turns the end of the run into that of the step.
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
