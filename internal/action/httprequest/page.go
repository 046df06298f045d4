package httprequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// PaginationFailed is the code of pages that cannot be followed.
const PaginationFailed = "pagination_failed"

// progress is the state of a step after a page: how much it has read and where the next
// page is. What it has read is in the chunks of the state, one for each page.
type progress struct {
	Pages int `json:"pages"`
	// Cursor, Offset and URL locate the next page, depending on the style.
	Cursor json.RawMessage `json:"cursor,omitempty"`
	Offset int             `json:"offset,omitempty"`
	URL    string          `json:"url,omitempty"`
	// Files have the items before those of the chunks. End is set after the last page.
	Files []itemFile `json:"files,omitempty"`
	End   *end       `json:"end,omitempty"`
	// Items and Seen are what earlier releases had in place of chunks.
	Items json.RawMessage `json:"items,omitempty"`
	Seen  string          `json:"seen,omitempty"`

	chunks  []chunk // the last one is that of the page that is being read
	restart bool    // all chunks are replaced with the last one
}

// newProgress returns the progress of a step after its last checkpoint.
func newProgress(req action.Request, start int) (progress, error) {
	at := progress{Offset: start, chunks: make([]chunk, len(req.Chunks)+1)}
	if req.State == nil {
		return at, nil
	}
	err := json.Unmarshal(req.State, &at)
	for i, encoded := range req.Chunks {
		at.chunks[i] = decodeChunk(encoded)
	}
	if at.Items != nil {
		*at.page(), at.restart = chunk{[]byte(at.Seen), at.Items}, true
		at.Items, at.Seen = nil, ""
	}
	return at, err
}

// page returns the chunk of the page that is being read.
func (at *progress) page() *chunk { return &at.chunks[len(at.chunks)-1] }

// readPage requests the next page. While more follow, the result is a checkpoint.
func readPage(ctx context.Context, client transfer.Client, req action.Request, p *pagination) (action.Result, error) {
	at, err := newProgress(req, p.start)
	if err != nil {
		return action.Result{}, err
	}
	if at.End != nil {
		return at.join(ctx, req)
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
	if err := at.page().add(list); err != nil {
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
	return at.finish(ctx, req, end{More: more, Status: resp.Status, Headers: transfer.Headers(resp.Header)})
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

// setCursor makes the cursor the position of the next page.
func (at *progress) setCursor(cursor any) error {
	if _, err := transfer.Scalar(cursor); err != nil {
		return paginationFailure("next: the cursor " + err.Error())
	}
	encoded, err := strictjson.Encode(cursor)
	if err != nil {
		return err
	}
	at.Cursor = encoded
	return at.see("cursor", encoded)
}

// setURL makes a URL of a response the next page. It must be on the host of the
// step, because the request carries the headers of the step.
func (at *progress) setURL(requested, answered string, next any) error {
	text, ok := next.(string)
	if !ok {
		return paginationFailure("next: the URL of the next page is not a string")
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
		return paginationFailure("the URL of the next page is not valid")
	case !egress.SameHost(from, to):
		return paginationFailure(fmt.Sprintf("the next page is on %s, but the step calls %s: its headers, which may contain credentials, are not sent to another host", to.Host, from.Host))
	case from.Scheme == "https" && to.Scheme != "https":
		return paginationFailure("the URL of the next page changes from https to " + to.Scheme)
	}
	at.URL = to.String()
	return at.see("URL", []byte(at.URL))
}

// see records a cursor or URL. It fails if an earlier page already had it.
func (at *progress) see(kind string, position []byte) error {
	hash := hashPosition(position)
	before := 0
	for _, c := range at.chunks {
		if i := c.indexOf(hash); i >= 0 {
			return paginationFailure(fmt.Sprintf("page %d has the same %s of the next page as page %d: the pages would repeat without end", at.Pages, kind, before+i+1))
		}
		before += c.positions()
	}
	at.page().seen = append(at.page().seen, hash...)
	return nil
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
