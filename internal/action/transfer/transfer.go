// Package transfer has what actions share that call other servers. It builds the bodies
// of requests, stores or decodes those of responses, and streams files both ways. The
// action decides which requests are sent and which responses are failures.
package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
)

// Client sends requests to other servers.
type Client interface {
	Do(ctx context.Context, r egress.Request) (*egress.Response, error)
	Stream(ctx context.Context, r egress.Request) (*egress.Stream, error)
}

// RequestFailure returns an error of the client as a failure of the step. If a file that
// is part of the body could not be read, that is the failure.
func RequestFailure(err error) error {
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		return failure
	}
	if failure, ok := errors.AsType[*egress.Error](err); ok {
		return &action.Failure{Code: string(failure.Code), Message: failure.Message, Retryable: failure.Retryable}
	}
	return err
}

// IsRejected reports whether a server that received the credential of a connection may
// have rejected it. A redirect can lead to another server, which did not receive it.
func IsRejected(c *action.Connection, resp *egress.Response) bool {
	if c == nil || c.Accepted || resp.Status != http.StatusUnauthorized {
		return false
	}
	from, err := url.Parse(resp.URL)
	return err == nil && c.Credential.Allows(from)
}

// Headers returns headers by lowercase name.
func Headers(h http.Header) map[string]any {
	out := make(map[string]any, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return out
}

// Scalar returns a string, a number or a boolean as text. Other values are errors.
func Scalar(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case json.Number:
		return v.String(), nil
	}
	return "", errors.New("must be a string, a number or a boolean")
}
