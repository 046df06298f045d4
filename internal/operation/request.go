package operation

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
)

// maxAnswer is the most bytes of an answer that is not stored as a file.
const maxAnswer = 4 << 20

// key returns the key of the next request. It is the same whenever that is repeated, also
// for the call that looks for its effect, and another one for every other request.
func (e *execution) key() string {
	call := &e.operation.Calls[min(e.at.Call, len(e.operation.Calls)-1)]
	key := e.req.IdempotencyKey
	if call.ID != "" {
		key += "/" + call.ID
	}
	switch {
	case call.Page != nil || call.Batch != nil:
		key += "/" + strconv.Itoa(e.at.Pages+e.at.Part+1)
	case call.Chunk != nil:
		key += "/" + strconv.FormatInt(e.at.Sent, 10)
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
	if got, err := e.selectChunk(ctx, call); got != nil || err != nil {
		return got, err
	}
	if (e.interrupted || e.retried) && !call.Idempotency.Safe {
		found, err := e.beforeRepeat(ctx, call)
		if found != nil || err != nil {
			return found, err
		}
	}
	got, err := e.send(ctx, call)
	if failure, ok := unknownOutcome(err); ok && !e.mayRepeat(call) && !findsOut(call) && call.OnUnknown == integration.Fail {
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

// findsOut reports whether a request tells what an earlier one has done.
func findsOut(call *integration.Call) bool {
	return call.Idempotency.Find != nil || call.Chunk != nil && call.Chunk.Ask != nil
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
	if call.Response == integration.ResponseFile || call.Blobs != nil {
		return e.download(ctx, call, request)
	}
	resp, err := e.actions.client.Do(ctx, request)
	if err != nil {
		return nil, transfer.RequestFailure(err)
	}
	return e.judge(call, resp)
}

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

// parsedURL returns the URL of an answer, against which relative URLs are read.
func parsedURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		return &url.URL{}
	}
	return u
}
