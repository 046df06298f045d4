package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
)

const maxPages = 10_000

// limit returns the most items to return, 0 for all of them.
func (e *execution) limit() int {
	if e.req.Input[integration.AllInput] == true {
		return 0
	}
	switch n := e.req.Input[integration.LimitInput].(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return integration.DefaultLimit
}

// pageSize returns how many items a full page has, 0 if that is not known. A page is not
// larger than the limit.
func (e *execution) pageSize(call *integration.Call) int {
	if limit := e.limit(); limit > 0 && limit < call.Page.Size {
		return limit
	}
	return call.Page.Size
}

func (e *execution) page(call *integration.Call) map[string]any {
	if call.Page == nil {
		return nil
	}
	out := map[string]any{"number": e.at.Pages + 1, "offset": e.at.Count, "cursor": nil, "size": nil}
	if size := e.pageSize(call); size > 0 {
		out["size"] = size
	}
	if e.at.Cursor != nil {
		if cursor, err := expr.FromJSON(e.at.Cursor); err == nil {
			out["cursor"] = cursor
		}
	}
	return out
}

func (e *execution) itemsOf(call *integration.Call, got *answer) ([]any, integration.Env, error) {
	env := e.answerEnv(call, got)
	items, err := env.EvalList(call.Items)
	if err != nil {
		return nil, env, expressionFailure("items", err)
	}
	env.More["items"] = items
	return items, env, nil
}

func (e *execution) onlyPage(call *integration.Call, got *answer) (outcome, error) {
	items, env, err := e.itemsOf(call, got)
	if err != nil {
		return outcome{}, err
	}
	if call.Output == nil {
		return outcome{value: listOutput(items, false)}, nil
	}
	value, err := call.Output.Eval(env)
	if err != nil {
		return outcome{}, expressionFailure("output", err)
	}
	return outcome{value: value}, nil
}

func listOutput(items any, more bool) map[string]any {
	return map[string]any{"items": items, "more": more}
}

// addPage adds the items of a page, and finds the next one.
func (e *execution) addPage(ctx context.Context, call *integration.Call, got *answer) (outcome, error) {
	items, env, err := e.itemsOf(call, got)
	if err != nil {
		return outcome{}, err
	}
	more, err := e.advance(call, env, got, len(items))
	if err != nil {
		return outcome{}, err
	}
	if limit := e.limit(); limit > 0 && e.at.Count+len(items) >= limit {
		more = more || e.at.Count+len(items) > limit
		items = items[:limit-e.at.Count]
		e.at.Ended = true
	}
	if err := e.list.Add(items); err != nil {
		return outcome{}, err
	}
	e.at.Pages++
	e.at.Count += len(items)
	if e.at.Ended = e.at.Ended || !more || e.at.Pages >= maxPages; e.at.Ended {
		e.at.More = more
	}
	if e.at.Ended && !e.list.HasFiles() {
		value, err := e.listValue(ctx)
		return outcome{value: value}, err
	}
	result, err := e.checkpoint(ctx)
	return outcome{result: &result}, err
}

// finishList returns the output of a list whose last page has been read.
func (e *execution) finishList(ctx context.Context) (action.Result, error) {
	value, err := e.listValue(ctx)
	if err != nil {
		return action.Result{}, err
	}
	return e.output(value)
}

func (e *execution) listValue(ctx context.Context) (any, error) {
	items, err := e.list.Items(ctx, e.req)
	if err != nil {
		return nil, err
	}
	return listOutput(items, e.at.More), nil
}

// advance finds the next page, and reports whether there is one.
func (e *execution) advance(call *integration.Call, env integration.Env, got *answer, count int) (bool, error) {
	more, isKnown := true, call.Page.More != nil
	if isKnown {
		value, err := env.Eval(call.Page.More)
		if err != nil {
			return false, expressionFailure("page/more", err)
		}
		more = value == true
	}
	switch {
	case !more:
		return false, nil
	case call.Page.NextURL != nil:
		return e.advanceTo(env, got)
	case call.Page.Next != nil:
		return e.advanceCursor(call, env)
	}
	size := e.pageSize(call)
	return isKnown && count > 0 || !isKnown && count > 0 && count >= size, nil
}

func (e *execution) advanceCursor(call *integration.Call, env integration.Env) (bool, error) {
	value, err := env.Eval(call.Page.Next)
	if err != nil {
		return false, expressionFailure("page/next", err)
	}
	if value == nil || value == "" {
		return false, nil
	}
	cursor, err := strictjson.Encode(value)
	if err != nil {
		return false, err
	}
	e.at.Cursor = cursor
	return true, e.record(cursor)
}

func (e *execution) advanceTo(env integration.Env, got *answer) (bool, error) {
	value, err := env.Eval(e.operation.Calls[e.at.Call].Page.NextURL)
	if err != nil {
		return false, expressionFailure("page/next_url", err)
	}
	text, _ := value.(string)
	if text == "" {
		return false, nil
	}
	next, err := got.url.Parse(text)
	if err != nil {
		return false, pages.Failure("the service has sent a URL of the next page that is not valid")
	}
	e.at.URL = next.String()
	return true, e.record([]byte(e.at.URL))
}

// record fails if the list has been at a position before, so that it does not go round
// in circles.
func (e *execution) record(position json.RawMessage) error {
	if page, repeated := e.list.Seen(position); repeated {
		return pages.Failure(fmt.Sprintf("the service says after page %d that the next page is the one after page %d, again", e.at.Pages+1, page))
	}
	return nil
}
