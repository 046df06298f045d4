package graphqlrequest

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
)

// GraphQLErrors is the code of an answer with errors.
const GraphQLErrors = "graphql_errors"

// responseType is the media type of answers in the specification GraphQL over HTTP.
const responseType = "application/graphql-response+json"

// Limits of the message of a failure.
const (
	maxMessages      = 5
	maxMessageLength = 300 // characters of one message
)

type answer struct {
	data       any
	errors     []any
	extensions map[string]any
	status     int
	headers    map[string]any
}

// parseAnswer returns the answer in a response, or nil if it has none. Not every service
// sets the Content-Type.
func parseAnswer(resp *egress.Response) *answer {
	body := transfer.DecodeBody(resp)
	if text, ok := body.(string); ok {
		body, _ = expr.FromJSON([]byte(text))
	}
	object, _ := body.(map[string]any)
	data, hasData := object["data"]
	given, hasErrors := object["errors"]
	if !hasData && !hasErrors {
		return nil
	}
	out := &answer{data: data, status: resp.Status, headers: transfer.Headers(resp.Header)}
	out.extensions, _ = object["extensions"].(map[string]any)
	switch given := given.(type) {
	case nil:
	case []any:
		out.errors = given
	default: // some services report an error of the request as a text
		out.errors = []any{map[string]any{"message": given}}
	}
	return out
}

// output returns the output of the step, with the list of errors if it is wanted.
func (a *answer) output(withErrors bool) map[string]any {
	out := map[string]any{"data": a.data, "extensions": a.extensions, "status": a.status, "headers": a.headers}
	if a.extensions == nil {
		out["extensions"] = map[string]any{}
	}
	if withErrors {
		out["errors"] = append([]any{}, a.errors...)
	}
	return out
}

// check returns the answer in a response if it is no failure.
func (in input) check(call egress.Request, resp *egress.Response, req action.Request) (*answer, error) {
	got := parseAnswer(resp)
	failure := in.failure(call, resp, got, req)
	rejected := transfer.IsRejected(req.Connection, resp)
	if failure == nil && rejected {
		failure = &action.Failure{Code: GraphQLErrors, Message: got.describe(call, req.Secrets), Output: got.output(true)}
	}
	if failure == nil {
		return got, nil
	}
	failure.Rejected = rejected
	return nil, failure
}

// failure returns the failure that a response means for the step, or nil. A mutation that
// may have been performed in part is not repeated.
func (in input) failure(call egress.Request, resp *egress.Response, got *answer, req action.Request) *action.Failure {
	isError := resp.Status >= http.StatusBadRequest
	switch {
	case got == nil && isError:
		return transfer.StatusFailure(call, resp, bodyOutput(resp), req.Now)
	case got == nil:
		return &action.Failure{Code: string(egress.InvalidResponse), Message: notGraphQL(call, resp), Output: bodyOutput(resp)}
	case len(got.errors) == 0 && isError:
		failure := transfer.StatusFailure(call, resp, got.output(true), req.Now)
		failure.Retryable = failure.Retryable && in.isRepeatable(got)
		return failure
	}
	isTransient := transfer.IsTransient(resp.Status) || slices.ContainsFunc(got.errors, isRateLimit)
	if len(got.errors) == 0 || in.returnErrors && !isTransient {
		return nil
	}
	failure := &action.Failure{Code: GraphQLErrors, Message: got.describe(call, req.Secrets), Output: got.output(true)}
	if isTransient && in.isRepeatable(got) {
		failure.Retryable, failure.RetryAfter = true, resp.RetryAfter(req.Now)
	}
	return failure
}

// isRepeatable reports whether an operation with a transient error can be sent again.
func (in input) isRepeatable(got *answer) bool {
	if in.operation.kind != mutation {
		return true
	}
	fields, _ := got.data.(map[string]any)
	for _, value := range fields {
		if value != nil {
			return false
		}
	}
	return true
}

// isRateLimit reports whether an error says that a rate limit is exceeded. The code is in
// the extensions of the error; GitHub has it in its type.
func isRateLimit(one any) bool {
	object, _ := one.(map[string]any)
	extensions, _ := object["extensions"].(map[string]any)
	for _, code := range []any{extensions["code"], object["type"]} {
		text, _ := code.(string)
		switch strings.ReplaceAll(strings.ToUpper(text), "_", "") {
		case "THROTTLED", "RATELIMITED", "RATELIMITEXCEEDED", "TOOMANYREQUESTS":
			return true
		}
	}
	return false
}

// describe returns what the errors of an answer say. Secrets are masked before a message
// is cut: the rest of one would not be recognized.
func (a *answer) describe(call egress.Request, secrets *mask.Masker) string {
	var messages []string
	for _, one := range a.errors[:min(len(a.errors), maxMessages)] {
		object, _ := one.(map[string]any)
		message, _ := object["message"].(string)
		message = secrets.Text(message)
		if runes := []rune(message); len(runes) > maxMessageLength {
			message = string(runes[:maxMessageLength]) + "…"
		}
		messages = append(messages, cmp.Or(message, "an error without a message"))
	}
	if more := len(a.errors) - len(messages); more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more", more))
	}
	return transfer.WithoutQuery(call.URL) + " returned errors: " + strings.Join(messages, "; ")
}

// notGraphQL says what a response without an answer is.
func notGraphQL(call egress.Request, resp *egress.Response) string {
	from := transfer.WithoutQuery(call.URL)
	if to := transfer.WithoutQuery(resp.URL); to != "" && to != from {
		from += ", redirected to " + to + ","
	}
	what := "JSON without data and errors"
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); len(resp.Body) == 0 {
		what = "an empty response"
	} else if !strings.HasSuffix(media, "json") {
		what = cmp.Or(media, "a response without a type")
	}
	return fmt.Sprintf("%s returned %s instead of the answer to a GraphQL request; check that the URL is that of the GraphQL endpoint", from, what)
}

// bodyOutput describes a response without an answer.
func bodyOutput(resp *egress.Response) map[string]any {
	return map[string]any{"status": resp.Status, "headers": transfer.Headers(resp.Header), "body": transfer.DecodeBody(resp)}
}
