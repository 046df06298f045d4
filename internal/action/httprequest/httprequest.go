// Package httprequest implements the action http.request, which sends a request
// through the guarded client.
package httprequest

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
)

// responseFile is the value of response that stores the body as a file.
const responseFile = "file"

// Entry declares the action.
func Entry(client transfer.Client) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "http.request",
			Title:    "Call a URL",
			Keywords: []string{"request", "api", "rest", "http", "curl", "fetch", "webhook"},
			Summary: "Sends an HTTP request and returns the response. Network errors, timeouts and the statuses 408, 425, 429 and 5xx are retried. " +
				"Every attempt carries the same Idempotency-Key, unless the step sets one. X-Service-Depth is the number of ancestors of the run.",
			Connects: true,
			URLs:     []string{"/url"},
			XML:      []string{"/xml"},
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
	if given := givenBodies(with); len(given) > 1 {
		problems = append(problems, action.Problem{Pointer: "/" + given[1], Message: "cannot be sent together with " + given[0]})
	}
	if text, ok := with["url"].(string); ok && !transfer.IsURL(text) {
		problems = append(problems, action.Problem{Pointer: "/url", Message: "must be an absolute http or https URL"})
	}
	if with["paginate"] != nil && with["response"] == responseFile {
		problems = append(problems, action.Problem{Pointer: "/response", Message: "cannot be used together with paginate"})
	}
	_, found := parsePagination(with)
	return append(problems, found...)
}

func run(ctx context.Context, client transfer.Client, req action.Request) (action.Result, error) {
	pages, problems := parsePagination(req.Input)
	if len(problems) > 0 {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "with" + problems[0].Pointer + ": " + problems[0].Message}
	}
	if pages != nil {
		return readPage(ctx, client, req, pages)
	}
	call, err := compose(ctx, req)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	if req.Input["response"] == responseFile {
		return download(ctx, client, call, req)
	}
	resp, err := send(ctx, client, call, req)
	if err != nil {
		return action.Result{}, err
	}
	return action.Result{Output: output(resp)}, nil
}

// send sends a request and returns its response if the status is no failure.
func send(ctx context.Context, client transfer.Client, call egress.Request, req action.Request) (*egress.Response, error) {
	resp, err := client.Do(ctx, call)
	if err != nil {
		return nil, transfer.RequestFailure(err)
	}
	if err := checkStatus(resp, call, req); err != nil {
		return nil, err
	}
	return resp, nil
}

// checkStatus returns an error if the status of a response is a failure, or may be
// about the credential.
func checkStatus(resp *egress.Response, call egress.Request, req action.Request) error {
	rejected := transfer.IsRejected(req.Connection, resp)
	if !rejected && !isFailure(req.Input["fail_on"], resp.Status) {
		return nil
	}
	failure := transfer.StatusFailure(call, resp, output(resp), req.Now)
	failure.Rejected = rejected
	return failure
}

// output describes the response, whether or not its status is a failure.
func output(resp *egress.Response) map[string]any {
	return map[string]any{"status": resp.Status, "headers": transfer.Headers(resp.Header), "body": transfer.DecodeBody(resp)}
}

// isFailure reports whether a status counts as a failure. By default those are
// the statuses from 400.
func isFailure(rule any, status int) bool {
	text, ok := rule.(string)
	if !ok {
		return status >= http.StatusBadRequest
	}
	from, err := strconv.Atoi(strings.TrimPrefix(text, ">="))
	return err == nil && status >= from
}
