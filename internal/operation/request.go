package operation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// maxAnswer is the most bytes of an answer that is not stored as a file.
const maxAnswer = 4 << 20

// key returns the key of the next request. It is the same whenever that is repeated, and
// another one for every other request.
func (e *execution) key(call *integration.Call) string {
	key := e.req.IdempotencyKey
	if call.ID != "" {
		key += "/" + call.ID
	}
	if call.Page != nil || call.Batch != nil {
		key += "/" + strconv.Itoa(e.at.Pages+e.at.Part+1)
	}
	if e.at.Restarts > 0 {
		key += "/r" + strconv.Itoa(e.at.Restarts)
	}
	return key
}

// uuidOf makes a UUID of a key (version 8 of RFC 9562), for services that take nothing
// else.
func uuidOf(key string) string {
	id := sha256.Sum256([]byte(key))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

// request sends the next request of a call and returns its answer. If an earlier
// execution may have sent it, what the manifest says about repeated requests applies.
func (e *execution) request(ctx context.Context, call *integration.Call) (*answer, error) {
	if err := e.selectPart(call); err != nil {
		return nil, err
	}
	if (e.interrupted || e.retried) && !call.Idempotency.Safe {
		found, err := e.beforeRepeat(ctx, call)
		if found != nil || err != nil {
			return found, err
		}
	}
	got, err := e.send(ctx, call)
	if failure, ok := unknownOutcome(err); ok && !e.mayRepeat(call) && call.Idempotency.Find == nil && call.OnUnknown == integration.Fail {
		return nil, outcomeUnknown(failure.Message)
	}
	return got, err
}

// beforeRepeat looks for the effect of a request that may have been sent before. It fails
// if the request must not be sent again.
func (e *execution) beforeRepeat(ctx context.Context, call *integration.Call) (*answer, error) {
	if find := call.Idempotency.Find; find != nil {
		got, err := e.send(ctx, find)
		if err != nil {
			return nil, err
		}
		value, err := find.Output.Eval(e.answerEnv(find, got))
		if err != nil || value == nil {
			return nil, err
		}
		got.body = value
		return got, nil
	}
	if e.interrupted && !e.mayRepeat(call) && call.OnUnknown == integration.Fail {
		return nil, outcomeUnknown("Stepmill was interrupted while it sent the request")
	}
	return nil, nil
}

// mayRepeat reports whether the service recognizes a repeated request.
func (e *execution) mayRepeat(call *integration.Call) bool {
	remembered := call.Idempotency.Remembered
	return call.Idempotency.Safe || remembered > 0 && e.req.Now.Sub(e.at.Since) < remembered
}

func outcomeUnknown(why string) error {
	return &action.Failure{Code: OutcomeUnknown, Message: why + "; it is not known whether the service has done what the step asked for"}
}

// send sends the request of a call once.
func (e *execution) send(ctx context.Context, call *integration.Call) (*answer, error) {
	request, err := e.compose(ctx, call)
	if err != nil {
		return nil, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	if call.Response == integration.ResponseFile {
		return e.download(ctx, call, request)
	}
	resp, err := e.actions.client.Do(ctx, request)
	if err != nil {
		return nil, transfer.RequestFailure(err)
	}
	return e.judge(call, resp)
}

// compose returns the request of a call.
func (e *execution) compose(ctx context.Context, call *integration.Call) (egress.Request, error) {
	rendered, err := e.service.Render(call, e.env(call))
	if err != nil {
		return egress.Request{}, err
	}
	out := egress.Request{
		Workspace: e.req.Workspace, Method: rendered.Method, URL: rendered.URL, Header: rendered.Header,
		FollowRedirects: rendered.Method == http.MethodGet || rendered.Method == http.MethodHead, MaxBody: maxAnswer, Timeout: e.operation.Timeout,
	}
	if e.at.URL != "" && call.Page != nil {
		out.URL = e.at.URL
	}
	if !call.NoAuth {
		out.Credential = e.req.Connection.Credential
	}
	out.Header.Set(action.DepthHeader, strconv.Itoa(e.req.Run.Depth))
	if err := e.setBody(ctx, &out, rendered); err != nil {
		return egress.Request{}, err
	}
	return out, nil
}

// setBody sets the body of a request. Files in it are streamed.
func (e *execution) setBody(ctx context.Context, out *egress.Request, r *integration.Request) (err error) {
	switch raw := r.Raw.(type) {
	case *expr.File:
		setType(out.Header, raw.Type)
		transfer.Body{{File: raw}}.Attach(ctx, e.req.Files, out)
		return nil
	case string:
		setType(out.Header, "text/plain; charset=utf-8")
		out.Body = []byte(raw)
		return nil
	case nil:
	default:
		return fmt.Errorf("the body must be text or a file")
	}
	if r.Multipart != nil {
		parts, err := transfer.ParseParts(r.Multipart)
		if err != nil {
			return err
		}
		body, mediaType, err := transfer.Multipart(parts)
		if err != nil {
			return err
		}
		out.Header.Set("Content-Type", mediaType)
		body.Attach(ctx, e.req.Files, out)
		return nil
	}
	given := out.Header.Get("Content-Type")
	if replaced, files := replaceFiles(r.JSON); files != nil {
		return e.setJSONWithFiles(ctx, out, replaced, files)
	}
	if out.Body, err = r.EncodeBody(); given != "" {
		out.Header.Set("Content-Type", given)
	}
	return err
}

// setType sets the type of a body unless the manifest does.
func setType(header http.Header, mediaType string) {
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", mediaType)
	}
}

// embeddedFile is a file in JSON, with the text that stands for it until it is sent.
type embeddedFile struct {
	placeholder string
	integration.Base64
}

// replaceFiles replaces the files in a value by placeholders.
func replaceFiles(value any) (any, []embeddedFile) {
	var files []embeddedFile
	var replace func(v any) any
	replace = func(v any) any {
		switch v := v.(type) {
		case integration.Base64:
			sum := sha256.Sum256([]byte(v.File.ID + strconv.Itoa(len(files))))
			files = append(files, embeddedFile{hex.EncodeToString(sum[:]), v})
			return files[len(files)-1].placeholder
		case map[string]any:
			out := make(map[string]any, len(v))
			for name, member := range v {
				out[name] = replace(member)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i, item := range v {
				out[i] = replace(item)
			}
			return out
		}
		return v
	}
	replaced := replace(value)
	return replaced, files
}

// setJSONWithFiles sets a JSON body in which files are encoded while they are sent.
func (e *execution) setJSONWithFiles(ctx context.Context, out *egress.Request, value any, files []embeddedFile) error {
	encoded, err := strictjson.Encode(value)
	if err != nil {
		return err
	}
	var body transfer.Body
	for len(files) > 0 {
		first, at := 0, -1
		for i, f := range files { // in the order in which they stand in the text
			if index := bytes.Index(encoded, []byte(f.placeholder)); at < 0 || index < at {
				first, at = i, index
			}
		}
		f := files[first]
		before := append(bytes.Clone(encoded[:at]), f.Prefix...)
		body = append(body, transfer.Segment{Data: before}, transfer.Segment{File: f.File, Encoding: transfer.Base64})
		encoded, files = encoded[at+len(f.placeholder):], append(files[:first:first], files[first+1:]...)
	}
	body = append(body, transfer.Segment{Data: encoded})
	setType(out.Header, "application/json")
	body.Attach(ctx, e.req.Files, out)
	return nil
}

// parsedURL returns the URL of an answer, against which relative URLs are read.
func parsedURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		return &url.URL{}
	}
	return u
}
