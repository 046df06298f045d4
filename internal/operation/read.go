package operation

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
)

// reading is an operation that is executed for something else than a step, usually to
// read.
type reading struct {
	actions   *Actions
	service   *integration.Integration
	operation *integration.Operation
	// The reading is cut off after maxCalls pages or parts, or once its items need maxBytes.
	maxCalls, maxBytes int
}

// readRequest returns the request of a reading. Nothing of it is recorded.
func readRequest(now time.Time, workspace, key string, input map[string]any, c action.Connection) action.Request {
	return action.Request{
		Input: input, MaskedInput: input, Now: now, Began: now, Workspace: workspace, IdempotencyKey: key, Connection: &c,
		Run:     action.Run{Trial: true},
		Mask:    func(output map[string]any) (map[string]any, error) { return output, nil },
		Log:     func(action.Level, string) {},
		Secrets: c.Mask,
	}
}

// run calls the operation, whose requests read further names, until it has ended or is cut
// off. Its checkpoints are only held in memory. It returns the last execution, with what it
// has returned or, if it was cut off, without.
func (r reading) run(ctx context.Context, req action.Request, names map[string]any) (e *execution, value any, complete bool, err error) {
	for calls := 0; ; calls++ {
		if e, err = newExecution(r.actions, r.service, r.operation, req); err != nil {
			return nil, nil, false, err
		}
		e.names = names
		if calls == r.maxCalls || size(req.Chunks) > r.maxBytes {
			return e, nil, false, nil
		}
		result, err := e.continueCalls(ctx)
		switch {
		case err != nil:
			return nil, nil, false, err
		case result.Wait != nil:
			return nil, nil, false, &action.Failure{
				Code: integration.RateLimited, RetryAfter: result.Wait.For, Message: r.service.Name + " limits the number of requests",
			}
		case result.Checkpoint == nil:
			return e, result.Output, true, nil
		}
		if err := req.Resume(*result.Checkpoint); err != nil {
			return nil, nil, false, err
		}
		req.Interrupted = false // what comes next was never sent
	}
}

// masked returns a failure whose message has no secrets of the connection.
func masked(failure *action.Failure, c action.Connection) *action.Failure {
	out := *failure
	out.Message = c.Mask.Text(failure.Message)
	return &out
}

func size(chunks [][]byte) int {
	out := 0
	for _, chunk := range chunks {
		out += len(chunk)
	}
	return out
}
