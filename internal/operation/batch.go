package operation

import (
	"context"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
)

func (e *execution) batch(call *integration.Call) ([]any, error) {
	value, err := e.env(call).Eval(call.Batch.Of)
	if err != nil {
		return nil, expressionFailure("batch/of", err)
	}
	list, ok := value.([]any)
	if value != nil && !ok {
		return nil, &action.Failure{Code: action.InvalidInput, Message: "the step needs a list, not another value"}
	}
	return list, nil
}

// selectPart sets the part of the batch that is sent next.
func (e *execution) selectPart(call *integration.Call) error {
	if call.Batch == nil {
		return nil
	}
	list, err := e.batch(call)
	if err != nil {
		return err
	}
	from := min(e.at.Part*call.Batch.Size, len(list))
	e.part = list[from:min(from+call.Batch.Size, len(list))]
	return nil
}

// addPart adds the result of a part of a batch. Lists are joined, otherwise the last
// result counts.
func (e *execution) addPart(ctx context.Context, call *integration.Call, got *answer) (outcome, error) {
	value, err := e.valueOf(call, got)
	if err != nil {
		return outcome{}, err
	}
	list, isList := value.([]any)
	if isList {
		if err := e.join(call, list); err != nil {
			return outcome{}, err
		}
	}
	all, err := e.batch(call)
	if err != nil {
		return outcome{}, err
	}
	e.at.Part++
	if ended := e.at.Part*call.Batch.Size >= len(all); ended && isList {
		items, err := e.joined(ctx, call)
		return outcome{value: map[string]any{"items": items}}, err
	} else if ended {
		return outcome{value: value}, nil
	}
	e.at.Since = e.req.Now
	if !e.mustRecord(call) {
		return outcome{goesOn: true}, nil
	}
	result, err := e.checkpoint(ctx)
	return outcome{result: &result}, err
}

// makesFiles reports whether the answers of a call become files. Lists of those are results
// in the state of the step, which keeps its files, unlike the items of other lists.
func makesFiles(call *integration.Call) bool {
	return call.Blobs != nil || call.Response == integration.ResponseFile
}

// join adds the result of a part to those of the parts before it.
func (e *execution) join(call *integration.Call, list []any) error {
	if !makesFiles(call) {
		return e.list.Add(list)
	}
	before, _ := e.at.Results[call.ID].([]any)
	e.setResult(call.ID, slices.Concat(before, list))
	return nil
}

func (e *execution) joined(ctx context.Context, call *integration.Call) (any, error) {
	if makesFiles(call) {
		return e.at.Results[call.ID], nil
	}
	return e.list.Items(ctx, e.req)
}
