package operation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
)

type answer struct {
	status  int
	headers map[string]string // by lowercase name
	body    any
	next    string // the URL of the next page in the header Link
	url     *url.URL
}

// newAnswer reads a response in the way that the call says.
func newAnswer(call *integration.Call, resp *egress.Response) (*answer, error) {
	out := &answer{status: resp.Status, headers: map[string]string{}, next: transfer.NextLink(resp.Header), url: parsedURL(resp.URL)}
	for name, values := range resp.Header {
		out.headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	var err error
	switch {
	case len(resp.Body) == 0 || call.Response == integration.ResponseNone && resp.Status < http.StatusBadRequest:
	case call.Response == integration.ResponseText && resp.Status < http.StatusBadRequest:
		out.body = string(resp.Body)
	case call.Response == integration.ResponseXML:
		out.body, err = parseXML(resp.Body)
	case call.Response == integration.ResponseText || call.Response == integration.ResponseFile || call.Response == integration.ResponseNone:
		out.body = transfer.DecodeBody(resp) // of an error
	default:
		if out.body, err = expr.FromJSON(resp.Body); err != nil && resp.Status >= http.StatusBadRequest {
			out.body, err = transfer.DecodeBody(resp), nil
		}
	}
	if err != nil {
		return nil, &action.Failure{Code: string(egress.InvalidResponse), Message: "the answer of the service cannot be read: " + err.Error(), Retryable: resp.Status >= http.StatusInternalServerError}
	}
	return out, nil
}

// xmlParser is the function parseXML of expressions.
var xmlParser = sync.OnceValues(func() (*expr.Program, error) {
	return expr.NewScope(map[string][]string{"text": nil}).Compile("parseXML(text)")
})

func parseXML(text []byte) (any, error) {
	program, err := xmlParser()
	if err != nil {
		return nil, err
	}
	return program.Eval(&expr.Env{Values: map[string]any{"text": string(text)}}, expr.Budget{Memory: 8 * maxAnswer, Result: maxAnswer})
}

// answerEnv returns the names that what looks at an answer can read.
func (e *execution) answerEnv(call *integration.Call, got *answer) integration.Env {
	env := e.env(call)
	env.More["link"] = map[string]any{}
	if got == nil {
		return env
	}
	env.Status, env.Headers, env.Body = got.status, got.headers, got.body
	if got.next != "" {
		env.More["link"] = map[string]any{"next": got.next}
	}
	return env
}

func (e *execution) download(ctx context.Context, call *integration.Call, request egress.Request) (*answer, error) {
	if e.req.Files == nil {
		return nil, &action.Failure{Code: action.InvalidInput, Message: "files can only be created by steps of a workflow"}
	}
	name, _, err := call.FileName.Text(e.answerEnv(call, nil))
	if err != nil {
		return nil, expressionFailure("file_name", err)
	}
	if call.Blobs != nil {
		return e.downloadBlobs(ctx, call, request, name)
	}
	file, resp, err := transfer.Download(ctx, e.actions.client, request, e.req.Files, name)
	if err != nil {
		return nil, transfer.RequestFailure(err)
	}
	got, err := e.judge(call, resp)
	if err == nil && file != nil {
		got.body = file
	}
	return got, err
}

func (e *execution) downloadBlobs(ctx context.Context, call *integration.Call, request egress.Request, name string) (*answer, error) {
	files, resp, err := transfer.DownloadBlobs(ctx, e.actions.client, request, e.req.Files, call.Blobs, name)
	if err != nil {
		return nil, transfer.RequestFailure(err)
	}
	got, err := e.judge(call, resp)
	if err != nil || files == nil {
		return got, err
	}
	for _, path := range call.Blobs {
		got.body = path.Replace(got.body, func(number any) any {
			text, _ := number.(string)
			if i, err := strconv.Atoi(text); err == nil && i < len(files) {
				return files[i]
			}
			return number
		})
	}
	return got, nil
}

func (e *execution) judge(call *integration.Call, resp *egress.Response) (*answer, error) {
	got, err := newAnswer(call, resp)
	if err != nil {
		return nil, err
	}
	env := e.answerEnv(call, got)
	e.actions.rates.learn(e, env)
	for _, rule := range slices.Concat(call.Errors, e.service.Errors) {
		holds, err := rule.When.Holds(env)
		if err != nil {
			return nil, expressionFailure("errors/when", err)
		}
		if holds {
			return e.apply(rule, env, got, resp)
		}
	}
	if problem := graphQLError(call, got.body); problem != "" {
		return nil, e.failure(integration.Failed, "", problem, got, resp)
	}
	if got.status >= http.StatusBadRequest {
		return nil, e.failure(kindOf(got.status), "", "", got, resp)
	}
	return got, nil
}

func (e *execution) apply(rule integration.ErrorRule, env integration.Env, got *answer, resp *egress.Response) (*answer, error) {
	kind := rule.Kind
	switch kind {
	case integration.NoError:
		return got, nil
	case "":
		kind = kindOf(got.status)
	}
	// An error in the description of an error must not hide it.
	code, _, _ := rule.Code.Text(env)
	message, _, _ := rule.Message.Text(env)
	failure := e.failure(kind, code, message, got, resp)
	if after, err := rule.RetryAfter.Eval(env); err == nil && after != nil {
		failure.RetryAfter = e.retryAfter(after)
	}
	if kind == integration.Restart {
		return nil, &restartError{failure}
	}
	return nil, failure
}

// restartError means that the operation has to begin anew.
type restartError struct{ failure *action.Failure }

func (e *restartError) Error() string { return e.failure.Error() }

func asRestart(err error) (*action.Failure, bool) {
	if restart, ok := errors.AsType[*restartError](err); ok {
		return restart.failure, true
	}
	return nil, false
}

// kindOf returns the kind of error that a status means.
func kindOf(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return integration.Invalid
	case http.StatusUnauthorized:
		return integration.Reconnect
	case http.StatusPaymentRequired, http.StatusForbidden:
		return integration.Denied
	case http.StatusNotFound, http.StatusGone:
		return integration.NotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return integration.Conflict
	case http.StatusTooManyRequests:
		return integration.RateLimited
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return integration.Unavailable
	}
	if status >= http.StatusInternalServerError {
		return integration.Unavailable
	}
	return integration.Failed
}

func (e *execution) failure(kind, code, message string, got *answer, resp *egress.Response) *action.Failure {
	if message == "" {
		message = strings.TrimSpace(fmt.Sprintf("%s responded with %d %s", e.service.Name, got.status, http.StatusText(got.status)))
		if code != "" {
			message += " (" + code + ")"
		}
	}
	out := &action.Failure{Code: kind, Message: message, Output: map[string]any{"status": got.status, "body": got.body}}
	if code != "" {
		out.Output["service_code"] = code
	}
	switch kind {
	case integration.RateLimited, integration.Unavailable:
		out.Retryable, out.RetryAfter = true, resp.RetryAfter(e.req.Now)
	case integration.Reconnect:
		out.Rejected = !e.req.Connection.Accepted
	}
	return out
}

// retryAfter returns the delay that a service asks for: a number of seconds, or a time.
func (e *execution) retryAfter(value any) time.Duration {
	switch v := value.(type) {
	case int:
		return time.Duration(v) * time.Second
	case float64:
		return time.Duration(v * float64(time.Second))
	case time.Time:
		return max(0, v.Sub(e.req.Now))
	case string:
		if seconds, err := strconv.ParseFloat(v, 64); err == nil {
			return time.Duration(seconds * float64(time.Second))
		}
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return max(0, at.Sub(e.req.Now))
		}
	}
	return 0
}

// graphQLError returns the message of the errors in an answer to a GraphQL query.
func graphQLError(call *integration.Call, body any) string {
	object, _ := body.(map[string]any)
	list, _ := object["errors"].([]any)
	if call.GraphQL == "" || len(list) == 0 {
		return ""
	}
	var out []string
	for _, one := range list {
		if message, ok := one.(map[string]any); ok {
			if text, ok := message["message"].(string); ok {
				out = append(out, text)
			}
		}
	}
	if out == nil {
		return "the service reports errors without a message"
	}
	return strings.Join(out, "; ")
}

// unknownOutcome returns the failure of a request of which it is not known whether the
// service has received it.
func unknownOutcome(err error) (*action.Failure, bool) {
	failure, ok := errors.AsType[*action.Failure](err)
	if !ok {
		return nil, false
	}
	switch failure.Code {
	case string(egress.TimedOut), string(egress.ConnectionFailed), string(egress.InvalidResponse):
		return failure, true
	}
	status, _ := failure.Output["status"].(int)
	return failure, status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}
