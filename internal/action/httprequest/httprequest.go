// Package httprequest is the action http.request: one call to a server, through
// the guarded client.
package httprequest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// HTTPError is the code of an answer whose status is a failure.
const HTTPError = "http_error"

// Client calls the outside.
type Client interface {
	Do(ctx context.Context, r egress.Request) (*egress.Response, error)
}

// Entry declares the action.
func Entry(client Client) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:  "http.request",
			Title: "Call a URL",
			Summary: "Sends an HTTP request and gives the answer. Network errors, time-outs and the statuses 408, 425, 429 and 5xx are tried again. " +
				"Every attempt carries the same Idempotency-Key, unless the step sets one. X-Service-Depth says how many runs stand above this one.",
			URLs:     []string{"/url"},
			Input:    inputSchema,
			Output:   outputSchema,
			Check:    check,
			Limits:   limits,
			Codes:    codes,
			Examples: examples,
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return run(ctx, client, req)
		}),
	}
}

func check(with map[string]any) []action.Problem {
	var problems []action.Problem
	if with["body"] != nil && with["form"] != nil {
		problems = append(problems, action.Problem{Pointer: "/form", Message: "cannot be sent together with body"})
	}
	if text, ok := with["url"].(string); ok {
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			problems = append(problems, action.Problem{Pointer: "/url", Message: "must be an absolute http or https URL"})
		}
	}
	return problems
}

func run(ctx context.Context, client Client, req action.Request) (action.Result, error) {
	call, err := compose(req)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	answer, err := client.Do(ctx, call)
	if failure, ok := errors.AsType[*egress.Error](err); ok {
		return action.Result{}, &action.Failure{Code: string(failure.Code), Message: failure.Message, Retryable: failure.Retryable}
	}
	if err != nil {
		return action.Result{}, err
	}
	if fails(req.Input["fail_on"], answer.Status) {
		return action.Result{}, refused(call, answer, req.Now)
	}
	return action.Result{Output: map[string]any{
		"status": answer.Status, "headers": headers(answer.Header), "body": body(answer),
	}}, nil
}

// fails tells whether a status is a failure: from 400 on, unless the step says
// otherwise.
func fails(rule any, status int) bool {
	text, ok := rule.(string)
	if !ok {
		return status >= http.StatusBadRequest
	}
	from, err := strconv.Atoi(strings.TrimPrefix(text, ">="))
	return err == nil && status >= from
}

func refused(call egress.Request, answer *egress.Response, now time.Time) error {
	failure := &action.Failure{Code: HTTPError, Message: fmt.Sprintf("%s answered %d %s", place(call.URL), answer.Status, http.StatusText(answer.Status))}
	switch {
	case answer.Status == http.StatusRequestTimeout, answer.Status == http.StatusTooEarly,
		answer.Status == http.StatusTooManyRequests, answer.Status >= http.StatusInternalServerError:
		failure.Retryable = true
		failure.RetryAfter = answer.RetryAfter(now)
	}
	return failure
}

// place names a URL without its query, where people keep tokens.
func place(text string) string {
	before, _, _ := strings.Cut(text, "?")
	return before
}

// headers shows an answer's headers by their lower-case names.
func headers(h http.Header) map[string]any {
	out := make(map[string]any, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return out
}

// body is the answer as a value: parsed when it is JSON, text when it is text,
// base64 when it is neither.
func body(answer *egress.Response) any {
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if media == "application/json" || strings.HasSuffix(media, "+json") {
		if value, err := expr.FromJSON(answer.Body); err == nil {
			return value
		}
	}
	if utf8.Valid(answer.Body) && !strings.ContainsRune(string(answer.Body), 0) {
		return string(answer.Body)
	}
	return map[string]any{"base64": base64.StdEncoding.EncodeToString(answer.Body)}
}
