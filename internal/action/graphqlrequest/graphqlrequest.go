// Package graphqlrequest implements the action graphql.request, which sends an operation
// to a GraphQL service through the guarded client.
package graphqlrequest

import (
	"context"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// returnErrors is the value of errors that makes the errors of an answer part of the output.
const returnErrors = "return"

// Entry declares the action.
func Entry(client transfer.Client) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "graphql.request",
			Title:    "Call a GraphQL service",
			Keywords: []string{"query", "mutation"},
			Summary: "Sends a GraphQL query or mutation and returns its data. Errors in the answer fail the step. Network errors, timeouts, rate limits and the statuses 408, 425, 429 and 5xx are retried. " +
				"Every attempt carries the same Idempotency-Key, unless the step sets one.",
			Connects: true,
			URLs:     []string{"/url"},
			Input:    inputSchema,
			Output:   outputSchema,
			Check: func(with map[string]any) []action.Problem {
				_, problems := parseInput(with)
				return problems
			},
			Limits:   limits,
			Codes:    codes,
			Examples: examples,
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return run(ctx, client, req)
		}),
	}
}

// input is the part of the input of a step that decides how its answer is treated.
type input struct {
	operation    operation
	returnErrors bool
	pages        *pagination // nil for none
}

// parseInput returns the input of a step and the problems that the schema does not express.
func parseInput(with map[string]any) (input, []action.Problem) {
	in := input{returnErrors: with["errors"] == returnErrors}
	var problems []action.Problem
	report := func(member, message, hint string) {
		problems = append(problems, action.Problem{Pointer: "/" + member, Message: message, Hint: hint})
	}
	if url, ok := with["url"].(string); ok && !transfer.IsURL(url) {
		report("url", "must be an absolute http or https URL", "")
	}
	document, _ := with["query"].(string)
	named, _ := with["operation_name"].(string)
	all, err := parseDocument(document)
	if err != nil {
		report("query", "is not valid GraphQL: "+err.Error(), "")
		return in, problems
	}
	var member, problem string
	if in.operation, member, problem = findOperation(all, named); problem != "" {
		report(member, problem, "")
		return in, problems
	}
	if in.operation.kind == subscription {
		report("query", "a subscription cannot be sent: a step gets one answer to each request", "use a query, or a trigger for the events of the service")
	}
	given, ok := with["paginate"].(map[string]any)
	if !ok {
		return in, problems
	}
	if in.returnErrors {
		report("errors", "cannot be return together with paginate", "")
	}
	var found []action.Problem
	in.pages, found = parsePagination(given, in.operation)
	return in, append(problems, found...)
}

func run(ctx context.Context, client transfer.Client, req action.Request) (action.Result, error) {
	in, problems := parseInput(req.Input)
	if len(problems) > 0 {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "with" + problems[0].Pointer + ": " + problems[0].Message}
	}
	if in.pages != nil {
		return readPage(ctx, client, req, in)
	}
	call, err := compose(req)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	_, got, err := send(ctx, client, call, req, in)
	if err != nil {
		return action.Result{}, err
	}
	return action.Result{Output: got.output(in.returnErrors)}, nil
}

func compose(req action.Request) (egress.Request, error) {
	url, _ := req.Input["url"].(string)
	body := map[string]any{"query": req.Input["query"]}
	for member, field := range map[string]string{"variables": "variables", "operation_name": "operationName"} {
		if value := req.Input[member]; value != nil && value != "" {
			body[field] = value
		}
	}
	encoded, err := strictjson.Encode(body)
	if err != nil {
		return egress.Request{}, err
	}
	call := egress.Request{
		Workspace: req.Workspace, Method: http.MethodPost, URL: url, Body: encoded, FollowRedirects: true,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {strings.Join([]string{responseType, "application/json"}, ", ")}},
	}
	err = transfer.Complete(&call, req)
	return call, err
}

// send sends a request and returns its answer if that is no failure.
func send(ctx context.Context, client transfer.Client, call egress.Request, req action.Request, in input) (*egress.Response, *answer, error) {
	resp, err := client.Do(ctx, call)
	if err != nil {
		return nil, nil, transfer.RequestFailure(err)
	}
	got, err := in.check(call, resp, req)
	return resp, got, err
}
