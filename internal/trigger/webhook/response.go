package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Response is the response of a workflow to the caller of its hook.
type Response struct {
	Status int
	Header map[string]string
	Body   []byte
	// File is the body if it is a file; nil otherwise.
	File *expr.File
}

// Result waits for the run of a call to end, but at most for the given time. The
// response is nil if the run is still running, did not succeed, or returned a
// response that cannot be sent.
func (h *Hooks) Result(ctx context.Context, hook Hook, accepted Accepted, requestID string, atMost time.Duration) (*Response, run.Status, error) {
	actor, started := hook.Actor(requestID), accepted.started
	if accepted.Duplicate {
		var err error
		if started, err = h.runs.Watch(ctx, actor, accepted.RunID); err != nil {
			return nil, "", err
		}
	}
	detail, err := h.runs.Await(ctx, actor, started, atMost)
	if err != nil || detail.Status != run.Succeeded {
		return nil, detail.Status, err
	}
	program, err := h.programs.Get(ctx, detail.WorkflowID, detail.WorkflowVersion)
	if err != nil {
		return nil, "", err
	}
	output, files := finalOutput(program, detail.Steps)
	return h.respond(hook, output, files), run.Succeeded, nil
}

// respond converts the output of a workflow to a response. If that fails it
// returns nil and notes the error for the owner of the hook.
func (h *Hooks) respond(hook Hook, output json.RawMessage, files []string) *Response {
	response, err := parseResponse(output, files)
	if err != nil {
		h.inbox.Note(hook.Trigger, &trigger.Note{At: clock.Now(), Code: CodeInvalidResponse, Message: err.Error()}, nil)
		return nil
	}
	return response
}

// finalOutput returns the output of a workflow: that of the last step in its list
// that succeeded. It also returns the JSON pointers of the references to files inside it.
func finalOutput(program *workflow.Program, steps []run.Step) (output json.RawMessage, files []string) {
	if program == nil {
		return nil, nil
	}
	for _, step := range slices.Backward(program.Steps) {
		at := slices.IndexFunc(steps, func(s run.Step) bool { return s.Path == step.ID && s.Status == run.StepSucceeded })
		if at >= 0 {
			return steps[at].Output, steps[at].OutputFiles
		}
	}
	return nil, nil
}

// parseResponse converts an output to a response. A member named response defines
// status, headers and body; without one the output is sent as JSON. Files are the JSON
// pointers of the references to files inside the output.
func parseResponse(output json.RawMessage, files []string) (*Response, error) {
	if output == nil {
		output = json.RawMessage("{}")
	}
	var declared struct {
		Response *struct {
			Status  *int           `json:"status"`
			Headers map[string]any `json:"headers"`
			Body    any            `json:"body" null:"ok"`
		} `json:"response"`
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(output, &members); err != nil {
		return nil, fmt.Errorf("the output is not a JSON object")
	}
	if _, found := members["response"]; !found {
		return &Response{Status: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: output}, nil
	}
	if err := strictjson.Decode([]byte(`{"response": `+string(members["response"])+`}`), &declared); err != nil || declared.Response == nil {
		return nil, fmt.Errorf("response must be an object with status, headers and body, and nothing else")
	}
	out := &Response{Status: http.StatusOK, Header: map[string]string{}}
	if declared.Response.Status != nil {
		out.Status = *declared.Response.Status
	}
	if out.Status < 200 || out.Status > 599 {
		return nil, fmt.Errorf("response/status must be from 200 to 599")
	}
	if err := out.setHeaders(declared.Response.Headers); err != nil {
		return nil, err
	}
	body := declared.Response.Body
	if slices.Contains(files, responseBody) {
		whole, err := expr.FromJSONWithFiles(members["response"], []string{strings.TrimPrefix(responseBody, "/response")})
		if err != nil {
			return nil, err
		}
		object, _ := whole.(map[string]any)
		body = object["body"]
	}
	if err := out.setBody(body); err != nil {
		return nil, err
	}
	return out, nil
}

// responseBody is the JSON pointer of the body of a response in an output.
const responseBody = "/response/body"

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

// setBody sets the body: a string as text, {"base64": …} as bytes, a file as what it is,
// anything else as JSON.
func (r *Response) setBody(value any) error {
	media := "application/json"
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		media, r.Body = "text/plain; charset=utf-8", []byte(v)
		if !utf8.ValidString(v) {
			return fmt.Errorf("response/body is not valid UTF-8")
		}
	case *expr.File:
		media, r.File = v.Type, v
		if r.Header["Content-Disposition"] == "" {
			r.Header["Content-Disposition"] = mime.FormatMediaType("inline", map[string]string{"filename": v.Name})
		}
	default:
		if bytes, ok := decodeBase64(v); ok {
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

func decodeBase64(value any) ([]byte, bool) {
	object, _ := value.(map[string]any)
	text, ok := object["base64"].(string)
	if !ok || len(object) != 1 {
		return nil, false
	}
	bytes, err := base64.StdEncoding.DecodeString(text)
	return bytes, err == nil
}
