package httprequest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// readPage requests the next page. While more follow, the result is a checkpoint.
func readPage(ctx context.Context, client transfer.Client, req action.Request, p *pagination) (action.Result, error) {
	at, err := pages.Open(req, p.start)
	if err != nil {
		return action.Result{}, err
	}
	if at.End != nil {
		return at.Finish(ctx, req)
	}
	call, err := p.compose(ctx, req, at)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	resp, err := send(ctx, client, call, req)
	if err != nil {
		return action.Result{}, err
	}
	env := &expr.Env{Values: output(resp), Now: req.Now}
	if env.Values["page"], err = p.describe(at); err != nil {
		return action.Result{}, err
	}
	count, err := at.Read(req, p.rules.Items, env.Values)
	if err != nil {
		return action.Result{}, err
	}
	more, err := p.advance(at, call.URL, resp, env, count)
	if err != nil {
		return action.Result{}, err
	}
	return at.Continue(ctx, req, more, p.rules.Max, resp)
}

func (p *pagination) compose(ctx context.Context, req action.Request, at *pages.Progress) (egress.Request, error) {
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
		if cursor, err = at.Position(); err == nil {
			err = p.set(req.Input, cursor)
		}
	}
	if err != nil {
		return egress.Request{}, err
	}
	call, err := compose(ctx, req)
	if err == nil {
		at.SetKey(&call)
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
		input["query"] = pages.With(query, p.param, value)
	case isForm:
		input["form"] = pages.With(form, p.param, value)
	case isObject || len(givenBodies(input)) == 0:
		input["body"] = pages.WithPath(body, p.param, value)
	default:
		return errors.New("paginate/in: the parameter can be in the body only if that is an object or a form")
	}
	return nil
}

// describe returns the page that expressions read as page.
func (p *pagination) describe(at *pages.Progress) (map[string]any, error) {
	cursor, err := at.Position()
	page := map[string]any{"number": at.Pages + 1, "cursor": cursor, "offset": at.Offset, "size": nil}
	if p.style == byPage {
		page["number"] = p.start + at.Pages
	}
	if p.size > 0 {
		page["size"] = p.size
	}
	return page, err
}

// advance moves to the next page. It returns false after the last page.
func (p *pagination) advance(at *pages.Progress, requested string, resp *egress.Response, env *expr.Env, count int) (bool, error) {
	at.Offset += p.step(count)
	// A page number or offset ends with a page that is empty or not full.
	counted := p.style == byPage || p.style == byOffset
	more, err := p.rules.Continues(env, !counted || count > 0 && count >= p.size)
	if err != nil || !more || counted {
		return more, err
	}
	if p.style == byLink {
		link := transfer.NextLink(resp.Header)
		if link == "" {
			return false, nil
		}
		return true, follow(at, requested, resp.URL, link)
	}
	next, err := p.rules.Following(env)
	switch {
	case err != nil || next == nil:
		return false, err
	case p.style == byCursor:
		return true, at.SetCursor(next)
	}
	return true, follow(at, requested, resp.URL, next)
}

// step returns how far a page moves the offset.
func (p *pagination) step(count int) int {
	if p.size > 0 {
		return p.size
	}
	return count
}

// follow makes a URL of a response the next page. It must be on the host of the step,
// because the request carries the headers of the step.
func follow(at *pages.Progress, requested, answered string, next any) error {
	text, ok := next.(string)
	if !ok {
		return pages.Failure("next: the URL of the next page is not a string")
	}
	from, err := url.Parse(requested)
	if err != nil {
		return err
	}
	base, err := url.Parse(answered)
	if err != nil {
		return err
	}
	to, err := base.Parse(text)
	switch {
	case err != nil:
		return pages.Failure("the URL of the next page is not valid")
	case !egress.SameHost(from, to):
		return pages.Failure(fmt.Sprintf("the next page is on %s, but the step calls %s: its headers, which may contain credentials, are not sent to another host", to.Host, from.Host))
	case from.Scheme == "https" && to.Scheme != "https":
		return pages.Failure("the URL of the next page changes from https to " + to.Scheme)
	}
	return at.SetURL(to.String())
}
