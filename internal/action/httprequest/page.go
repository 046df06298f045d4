package httprequest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// PaginationFailed is the code of pages that cannot be followed.
const PaginationFailed = "pagination_failed"

// readPage requests the next page. While more follow, the result is a checkpoint.
func readPage(ctx context.Context, client transfer.Client, req action.Request, p *pagination) (action.Result, error) {
	at, err := newProgress(req, p.start)
	if err != nil {
		return action.Result{}, err
	}
	if at.End != nil {
		return at.finish(ctx, req)
	}
	call, err := p.compose(ctx, req, at)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	resp, err := send(ctx, client, call, req)
	if err != nil {
		return action.Result{}, err
	}
	// The next page may need a secret, such as a key in its URL. Items must not have one.
	env := &expr.Env{Values: output(resp), Now: req.Now}
	env.Values["page"] = p.describe(at)
	masked, _ := req.Secrets.Value(env.Values).(map[string]any)
	list, err := p.items.EvalList(&expr.Env{Values: masked, Now: req.Now}, expr.Budget{})
	if err != nil {
		return action.Result{}, expressionFailure("items", err)
	}
	at.Pages++
	if err := at.list.Add(list); err != nil {
		return action.Result{}, err
	}
	more, err := p.advance(&at, call.URL, resp, env, len(list))
	switch {
	case err != nil:
		return action.Result{}, err
	case more && at.Pages < p.maxPages:
		return at.checkpoint(ctx, req)
	case more:
		req.Log(action.Warn, fmt.Sprintf("stopped after %d pages, the most that max_pages allows; there are more", at.Pages))
	}
	at.End = &end{More: more, Status: resp.Status, Headers: transfer.Headers(resp.Header)}
	if at.list.HasFiles() {
		return at.checkpoint(ctx, req) // the page need not be requested again if joining the files fails
	}
	return at.finish(ctx, req)
}

// compose builds the request for a page.
func (p *pagination) compose(ctx context.Context, req action.Request, at progress) (egress.Request, error) {
	req.Input = maps.Clone(req.Input)
	var err error
	switch {
	case at.URL != "":
		req.Input["url"] = at.URL
		delete(req.Input, "query") // the URL has everything
	case p.style == byPage:
		err = p.set(req.Input, p.start+at.Pages)
	case p.style == byOffset:
		err = p.set(req.Input, at.Offset)
	case at.Cursor != nil:
		var cursor any
		if cursor, err = expr.FromJSON(at.Cursor); err == nil {
			err = p.set(req.Input, cursor)
		}
	}
	if err != nil {
		return egress.Request{}, err
	}
	call, err := compose(ctx, req)
	if err == nil {
		// A receiver that recognizes repetitions must not take a page for the one before.
		call.Header.Set("Idempotency-Key", call.Header.Get("Idempotency-Key")+"/"+strconv.Itoa(at.Pages+1))
	}
	return call, err
}

// set sets the parameter of the page in the query, the form or the body.
func (p *pagination) set(input map[string]any, value any) error {
	form, isForm := input["form"].(map[string]any)
	body, isObject := input["body"].(map[string]any)
	switch {
	case !p.inBody:
		query, _ := input["query"].(map[string]any)
		input["query"] = with(query, p.param, value)
	case isForm:
		input["form"] = with(form, p.param, value)
	case isObject || len(givenBodies(input)) == 0:
		input["body"] = withPath(body, p.param, value)
	default:
		return errors.New("paginate/in: the parameter can be in the body only if that is an object or a form")
	}
	return nil
}

// with returns a copy of an object in which a member is set.
func with(object map[string]any, name string, value any) map[string]any {
	out := make(map[string]any, len(object)+1)
	maps.Copy(out, object)
	out[name] = value
	return out
}

// withPath returns a copy of an object in which the member at a path such as
// variables.after is set.
func withPath(object map[string]any, path string, value any) map[string]any {
	name, rest, nested := strings.Cut(path, ".")
	if nested {
		inner, _ := object[name].(map[string]any)
		value = withPath(inner, rest, value)
	}
	return with(object, name, value)
}

// describe returns the page that expressions read as page.
func (p *pagination) describe(at progress) map[string]any {
	page := map[string]any{"number": at.Pages + 1, "cursor": nil, "offset": at.Offset, "size": nil}
	if p.style == byPage {
		page["number"] = p.start + at.Pages
	}
	if p.size > 0 {
		page["size"] = p.size
	}
	if cursor, err := expr.FromJSON(at.Cursor); at.Cursor != nil && err == nil {
		page["cursor"] = cursor
	}
	return page
}

// advance moves to the next page. It returns false after the last page.
func (p *pagination) advance(at *progress, requested string, resp *egress.Response, env *expr.Env, count int) (bool, error) {
	at.Offset += p.step(count)
	more, err := p.continues(env, count)
	if err != nil || !more {
		return false, err
	}
	var next any
	switch p.style {
	case byPage, byOffset:
		return true, nil
	case byLink:
		next = transfer.NextLink(resp.Header)
	case byCursor, byNextURL:
		if next, err = p.next.Eval(env, expr.Budget{}); err != nil {
			return false, expressionFailure("next", err)
		}
	}
	if next == nil || next == "" || next == false {
		return false, nil
	}
	if p.style == byCursor {
		err = at.setCursor(next)
	} else {
		err = at.setURL(requested, resp.URL, next)
	}
	return err == nil, err
}

// step returns how far a page moves the offset.
func (p *pagination) step(count int) int {
	if p.size > 0 {
		return p.size
	}
	return count
}

// continues reports whether another page can follow, as far as the items tell. The
// expression more replaces the default: a page number or offset ends with a page that
// is empty or not full.
func (p *pagination) continues(env *expr.Env, count int) (bool, error) {
	if p.more != nil {
		more, err := p.more.EvalBool(env, expr.Budget{})
		if err != nil {
			return false, expressionFailure("more", err)
		}
		return more, nil
	}
	if p.style == byPage || p.style == byOffset {
		return count > 0 && count >= p.size, nil
	}
	return true, nil
}

func paginationFailure(message string) error {
	return &action.Failure{Code: PaginationFailed, Message: message}
}

// expressionFailure returns the failure of an expression of paginate.
func expressionFailure(name string, err error) error {
	failure, ok := errors.AsType[*expr.Error](err)
	if !ok {
		return err
	}
	return &action.Failure{Code: failure.Code, Message: "paginate/" + name + ": " + failure.Error()}
}
