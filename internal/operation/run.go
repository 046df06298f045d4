package operation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/itemlist"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
)

// longestRead is how long requests that only read may take together before their
// results are recorded.
const longestRead = 2 * time.Second

// execution is one call of the action.
type execution struct {
	actions   *Actions
	service   *integration.Integration
	operation *integration.Operation
	req       action.Request
	names     map[string]any // that requests read beside those of a step, such as the cursor of a poll
	at        progress
	list      *itemlist.List
	// interrupted and retried say whether an earlier execution with the same progress may
	// have sent requests: those that only read, and the first that has an effect.
	interrupted, retried bool
	// began is when this execution began, on the monotonic clock.
	began time.Time
	// last is the last answer, part the part of the batch that is being sent, and chunk
	// that of the file.
	last  *answer
	part  []any
	chunk *chunk
}

// run continues an operation after its last checkpoint.
func run(ctx context.Context, a *Actions, i *integration.Integration, o *integration.Operation, req action.Request) (action.Result, error) {
	e, err := newExecution(a, i, o, req)
	if err != nil {
		return action.Result{}, err
	}
	return e.continueCalls(ctx)
}

func newExecution(a *Actions, i *integration.Integration, o *integration.Operation, req action.Request) (*execution, error) {
	if c := req.Connection; c == nil || c.Integration != i.ConnectedAs() {
		return nil, &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("the step needs a connection of %s", i.Name)}
	}
	at, err := readProgress(i, req)
	if err != nil {
		return nil, err
	}
	e := &execution{actions: a, service: i, operation: o, req: req, at: at, list: itemlist.Open(req.Chunks, at.Files), interrupted: req.Interrupted, retried: req.Retried}
	e.req.Input = withDefaults(o.Input, req.Input)
	return e, nil
}

// withDefaults returns the input with the defaults of what was not given.
func withDefaults(inputs []integration.Input, given map[string]any) map[string]any {
	out := maps.Clone(given)
	if out == nil {
		out = map[string]any{}
	}
	for _, in := range inputs {
		if out[in.Name] == nil && in.Default != nil {
			out[in.Name] = in.Default
		}
	}
	return out
}

// continueCalls makes the calls that are left. It returns a checkpoint after each one
// that has an effect.
func (e *execution) continueCalls(ctx context.Context) (action.Result, error) {
	e.began = clock.Monotonic()
	for e.at.Call < len(e.operation.Calls) {
		call := &e.operation.Calls[e.at.Call]
		if e.at.Ended { // only its list has to be joined
			return e.finishList(ctx)
		}
		skip, err := e.skips(call)
		if err != nil {
			return action.Result{}, err
		}
		if skip {
			e.next(call, nil)
			continue
		}
		got, err := e.perform(ctx, call)
		switch {
		case err != nil:
			return action.Result{}, err
		case got.result != nil:
			return *got.result, nil
		case got.goesOn:
			continue
		case e.at.Call == len(e.operation.Calls)-1:
			return e.output(got.value)
		}
		e.next(call, got.value)
		if e.mustRecord(call) {
			return e.checkpoint(ctx)
		}
	}
	return e.output(nil)
}

// mustRecord reports whether a checkpoint is due after a request.
func (e *execution) mustRecord(call *integration.Call) bool {
	return !call.Idempotency.Safe || time.Since(e.began) > longestRead
}

func (e *execution) skips(call *integration.Call) (bool, error) {
	if e.at.begun() {
		return false, nil
	}
	if call.Batch != nil {
		parts, err := e.batch(call)
		if err != nil || len(parts) == 0 {
			return true, err
		}
	}
	if call.If.IsZero() {
		return false, nil
	}
	holds, err := call.If.Holds(e.env(call))
	if err != nil {
		return false, expressionFailure("if", err)
	}
	return !holds, nil
}

// next moves on to the call after the given one.
func (e *execution) next(call *integration.Call, result any) {
	e.at = progress{Call: e.at.Call + 1, Results: e.at.Results, Since: e.req.Now, Restarts: e.at.Restarts}
	if call.ID != "" {
		e.setResult(call.ID, result)
	}
	e.list, e.chunk = itemlist.New(), nil
}

// outcome is what a request has led to: the result of its call, or that of this execution.
// If the call goes on, it has neither.
type outcome struct {
	value  any
	result *action.Result
	goesOn bool
}

// perform makes a call, or the next part of it.
func (e *execution) perform(ctx context.Context, call *integration.Call) (outcome, error) {
	if wait, err := e.awaitTurn(ctx, call); err != nil || wait != nil {
		return outcome{result: wait}, err
	}
	got, err := e.request(ctx, call)
	if restart, ok := asRestart(err); ok {
		return e.restart(ctx, restart)
	}
	if err != nil {
		return outcome{}, err
	}
	e.last = got
	switch {
	case call.Page != nil:
		return e.addPage(ctx, call, got)
	case call.Batch != nil:
		return e.addPart(ctx, call, got)
	case call.Chunk != nil:
		return e.addChunk(ctx, call, got)
	case call.Items != nil:
		return e.onlyPage(call, got)
	}
	value, err := e.valueOf(call, got)
	return outcome{value: value}, err
}

func (e *execution) valueOf(call *integration.Call, got *answer) (any, error) {
	if call.Output == nil {
		return got.body, nil
	}
	value, err := call.Output.Eval(e.answerEnv(call, got))
	if err != nil {
		return nil, expressionFailure("output", err)
	}
	return value, nil
}

// restart drops the progress, because the service says that it is void.
func (e *execution) restart(ctx context.Context, because *action.Failure) (outcome, error) {
	if e.at.Restarts >= maxRestarts {
		return outcome{}, because
	}
	e.at = progress{Restarts: e.at.Restarts + 1, Since: e.req.Now}
	e.list = itemlist.New()
	result, err := e.checkpoint(ctx)
	return outcome{result: &result}, err
}

// maxRestarts is how often an operation begins anew before it fails.
const maxRestarts = 3

func (e *execution) output(value any) (action.Result, error) {
	if e.operation.Output == nil {
		return action.Result{Output: value}, nil
	}
	last := e.lastCall()
	if last.ID != "" {
		e.setResult(last.ID, value)
	}
	env := e.answerEnv(last, e.last)
	if list, ok := value.(map[string]any); ok && (last.Items != nil || last.Batch != nil) {
		env.More["items"] = list["items"]
	}
	out, err := e.operation.Output.Eval(env)
	if err != nil {
		return action.Result{}, expressionFailure("output", err)
	}
	return action.Result{Output: out}, nil
}

func (e *execution) lastCall() *integration.Call {
	return &e.operation.Calls[len(e.operation.Calls)-1]
}

func (e *execution) setResult(id string, value any) {
	results := make(map[string]any, len(e.at.Results)+1)
	maps.Copy(results, e.at.Results)
	results[id] = value
	e.at.Results = results
}

func (e *execution) env(call *integration.Call) integration.Env {
	key := e.key()
	more := map[string]any{
		"input": e.req.Input, "results": e.at.Results, "page": e.page(call), "batch": e.part, "chunk": e.chunk.values(),
		"step": map[string]any{"key": key, "uuid": uuidOf(key)},
	}
	maps.Copy(more, e.names)
	return integration.Env{Connection: e.req.Connection.Variables, Now: e.req.Now, More: more}
}

func expressionFailure(where string, err error) error {
	failure, ok := errors.AsType[*expr.Error](err)
	if !ok {
		return &action.Failure{Code: action.InvalidInput, Message: where + ": " + err.Error()}
	}
	return &action.Failure{Code: failure.Code, Message: "the integration cannot make sense of the answer, in " + where + ": " + failure.Message}
}
