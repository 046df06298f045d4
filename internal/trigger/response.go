package trigger

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Response is what a workflow returns to the caller of its hook.
type Response struct {
	Status int
	Header map[string]string
	Body   []byte
}

// Result waits for the end of the run of a call, at most for the given time. The
// response is nil while the run goes on, when it did not succeed, and when what
// it returns cannot be sent.
func (h *Hooks) Result(ctx context.Context, hook Hook, taken Taken, requestID string, atMost time.Duration) (*Response, run.Status, error) {
	actor, started := hook.Actor(requestID), taken.started
	if taken.Duplicate {
		var err error
		if started, err = h.runs.Watch(ctx, actor, taken.RunID); err != nil {
			return nil, "", err
		}
	}
	detail, err := h.runs.Await(ctx, actor, started, atMost)
	if err != nil || detail.Status != run.Succeeded {
		return nil, detail.Status, err
	}
	plan, err := h.plans.Get(ctx, detail.WorkflowID, detail.WorkflowVersion)
	if err != nil {
		return nil, "", err
	}
	return h.respond(hook, returned(plan, detail.Steps)), run.Succeeded, nil
}

// respond makes a response of what a workflow returns; nil when it cannot be
// sent, which the owner of the hook learns.
func (h *Hooks) respond(hook Hook, output json.RawMessage) *Response {
	response, err := respond(output)
	if err != nil {
		h.inbox.Note(hook.Trigger, &Note{At: clock.Now(), Code: CodeInvalidResponse, Message: err.Error()}, nil)
		return nil
	}
	return response
}

// returned is what a workflow returns: the output of the last step in its list
// that succeeded.
func returned(plan *workflow.Plan, steps []run.Step) json.RawMessage {
	if plan == nil {
		return nil
	}
	for _, planned := range slices.Backward(plan.Steps) {
		at := slices.IndexFunc(steps, func(s run.Step) bool { return s.Path == planned.ID && s.Status == run.StepSucceeded })
		if at >= 0 {
			return steps[at].Output
		}
	}
	return nil
}

// respond makes a response of an output. An output with a member response says
// itself what is sent; any other is sent as JSON.
func respond(output json.RawMessage) (*Response, error) {
	if output == nil {
		output = json.RawMessage("{}")
	}
	var said struct {
		Response *struct {
			Status  *int           `json:"status"`
			Headers map[string]any `json:"headers"`
			Body    any            `json:"body" null:"ok"`
		} `json:"response"`
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(output, &members); err != nil {
		return nil, fmt.Errorf("the output cannot be read")
	}
	if _, says := members["response"]; !says {
		return &Response{Status: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: output}, nil
	}
	if err := strictjson.Decode([]byte(`{"response": `+string(members["response"])+`}`), &said); err != nil || said.Response == nil {
		return nil, fmt.Errorf("response must be an object with status, headers and body, and nothing else")
	}
	out := &Response{Status: http.StatusOK, Header: map[string]string{}}
	if said.Response.Status != nil {
		out.Status = *said.Response.Status
	}
	if out.Status < 200 || out.Status > 599 {
		return nil, fmt.Errorf("response/status must be from 200 to 599")
	}
	if err := out.setHeaders(said.Response.Headers); err != nil {
		return nil, err
	}
	if err := out.setBody(said.Response.Body); err != nil {
		return nil, err
	}
	return out, nil
}

// forbidden are the headers that a workflow cannot set: those that belong to the
// connection, and those that protect everything else that is served here.
var forbidden = []string{
	"connection", "content-length", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
	"alt-svc", "clear-site-data", "content-encoding", "content-security-policy", "content-security-policy-report-only", "cross-origin-embedder-policy",
	"cross-origin-opener-policy", "cross-origin-resource-policy", "date", "origin-agent-cluster", "permissions-policy", "public-key-pins", "refresh",
	"referrer-policy", "server", "service-worker-allowed", "set-cookie", "sourcemap", "strict-transport-security", "www-authenticate",
	"x-content-type-options", "x-frame-options", "x-request-id", "x-robots-tag", "x-xss-protection",
}

const (
	maxHeaders     = 50
	maxHeaderValue = 4 << 10
)

func (r *Response) setHeaders(given map[string]any) error {
	if len(given) > maxHeaders {
		return fmt.Errorf("response/headers must have at most %d members", maxHeaders)
	}
	for name, value := range given {
		lower := strings.ToLower(name)
		if !workflow.HeaderName(name) {
			return fmt.Errorf("response/headers: %q is not the name of a header", run.Clip(name, 100))
		}
		if slices.Contains(forbidden, lower) || strings.HasPrefix(lower, "x-ratelimit-") || strings.HasPrefix(lower, "sec-") {
			return fmt.Errorf("response/headers: %s cannot be set", lower)
		}
		text, ok := scalar(value)
		if !ok {
			return fmt.Errorf("response/headers/%s must be text, a number or a truth value", lower)
		}
		if len(text) > maxHeaderValue || strings.ContainsFunc(text, unprintable) {
			return fmt.Errorf("response/headers/%s must be printable ASCII of at most %d characters", lower, maxHeaderValue)
		}
		r.Header[http.CanonicalHeaderKey(name)] = text
	}
	return nil
}

func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool, int, float64, json.Number:
		return fmt.Sprint(v), true
	}
	return "", false
}

func unprintable(c rune) bool { return c < ' ' && c != '\t' || c > '~' }

// setBody sets the body: text as text, {"base64": …} as bytes, anything else as
// JSON.
func (r *Response) setBody(value any) error {
	media := "application/json"
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		media, r.Body = "text/plain; charset=utf-8", []byte(v)
		if !utf8.ValidString(v) {
			return fmt.Errorf("response/body is not text")
		}
	default:
		if bytes, ok := inBase64(v); ok {
			media, r.Body = "application/octet-stream", bytes
			break
		}
		var err error
		if r.Body, err = strictjson.Encode(v); err != nil {
			return err
		}
	}
	if r.Header["Content-Type"] == "" {
		r.Header["Content-Type"] = media
	}
	return nil
}

func inBase64(value any) ([]byte, bool) {
	object, _ := value.(map[string]any)
	text, ok := object["base64"].(string)
	if !ok || len(object) != 1 {
		return nil, false
	}
	bytes, err := base64.StdEncoding.DecodeString(text)
	return bytes, err == nil
}
