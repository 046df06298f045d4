package api

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/webhook"
)

// hookWait limits how long a call of a hook waits for the result of its run.
const hookWait = maxWaitSeconds * time.Second

type webhookCalls struct {
	hooks  *webhook.Hooks
	limits ratelimit.Limits
	log    *slog.Logger
}

type acceptedBody struct {
	RunID     string `json:"run_id"`
	Duplicate bool   `json:"duplicate"`
}

// testBody is the response to a call that people were listening for.
type testBody struct {
	Test    bool   `json:"test"`
	Message string `json:"message"`
}

// serve handles a call of a hook. A call that cannot start a run gets the
// same response as one of an unknown hook, and costs as little.
func (h *webhookCalls) serve(call *transport.Call, token string) {
	hook, err := h.hooks.Find(call.R.Context(), token)
	if err != nil {
		call.Fail(call.Reject(err))
		return
	}
	accepted, err := h.accept(call, hook)
	switch {
	case err != nil && !hook.Known():
		// A caller must not be able to tell a paused hook from an unknown one.
		call.Fail(call.Reject(trigger.NothingHere()))
	case err != nil:
		call.Fail(call.Reject(err))
	case accepted.Test:
		call.JSON(http.StatusAccepted, testBody{true, "The call was received as a test. It started no run."})
	case hook.Waits():
		h.respond(call, hook, accepted)
	default:
		call.JSON(http.StatusAccepted, acceptedBody{accepted.RunID, accepted.Duplicate})
	}
}

func (h *webhookCalls) accept(call *transport.Call, hook webhook.Hook) (webhook.Accepted, error) {
	r := call.R
	in := webhook.Call{RequestID: call.RequestID(), Method: transport.Clean(r.Method), Header: r.Header, Query: r.URL.RawQuery}
	reserved, err := h.receive(call, hook, &in)
	if reserved != nil {
		defer reserved.Release()
	}
	if err != nil {
		h.hooks.RecordRejection(hook, in, err)
		h.hooks.Discard(r.Context(), in.Upload)
		return webhook.Accepted{}, err
	}
	return h.hooks.Accept(r.Context(), hook, in)
}

// receive verifies a call and reads its body, into memory that the caller releases.
func (h *webhookCalls) receive(call *transport.Call, hook webhook.Hook, in *webhook.Call) (*transport.Reservation, error) {
	r := call.R
	if !slices.Contains(hook.Methods(), r.Method) {
		if hook.Known() {
			call.W.Header().Set("Allow", strings.Join(hook.Methods(), ", "))
		}
		return nil, fault.New(fault.MethodNotAllowed, "method %s is not allowed here; the webhook accepts %s", in.Method, strings.Join(hook.Methods(), ", "))
	}
	verifier, err := h.hooks.Verifier(r.Context(), hook)
	if err != nil {
		return nil, err
	}
	check, err := verifier.Begin(r.Header)
	if err != nil {
		return nil, err
	}
	if err := h.checkLimit(call, hook, verifier); err != nil {
		return nil, err
	}
	reserved, err := call.ReserveBody(transport.WorkspaceBodies(hook.WorkspaceID), transport.HookBodies(limitKey(hook)))
	if err != nil {
		return nil, err
	}
	in.Verified = !verifier.NeedsBody()
	if err := h.read(call, hook, in, check, reserved); err != nil {
		return reserved, err
	}
	if err := check.Finish(); err != nil {
		return reserved, err
	}
	in.Verified = true
	if verifier.NeedsBody() {
		err = h.limit(call, hook)
	}
	return reserved, err
}

// read reads the body of a call: into memory, or, if it has files, into the file
// storage, as it arrives.
func (h *webhookCalls) read(call *transport.Call, hook webhook.Hook, in *webhook.Call, check io.Writer, reserved *transport.Reservation) (err error) {
	r := call.R
	if r.Body == nil || r.Body == http.NoBody || !webhook.BringsFiles(r.Header) {
		if in.Body, err = call.ReadBodyWithin(hook.Workspace.Plan.Limits(), reserved); err == nil {
			_, err = check.Write(in.Body)
		}
		return err
	}
	if err := reserved.Grow(webhook.StreamBytes); err != nil {
		return err
	}
	in.Upload, err = h.hooks.Receive(r.Context(), hook, r.Header, io.TeeReader(r.Body, check), reserved.Grow)
	return err
}

// checkLimit rejects a call before its body is read if the limit of the hook has been
// reached. A call that its body has yet to verify is not counted, because anyone could
// use the limit up.
func (h *webhookCalls) checkLimit(call *transport.Call, hook webhook.Hook, verifier webhook.Verifier) error {
	if !verifier.NeedsBody() {
		return h.limit(call, hook)
	}
	if state := h.limits.Peek(limitKey(hook), hook.PerMinute(), clock.Now()); state.Remaining == 0 {
		return h.limitReached(call, hook, state)
	}
	return nil
}

// limitKey is the key of the rate limit of a hook.
func limitKey(hook webhook.Hook) string { return hook.WorkflowID + "/" + hook.ID }

// limit counts a verified call against the rate limit of its hook.
func (h *webhookCalls) limit(call *transport.Call, hook webhook.Hook) error {
	state, ok, err := h.limits.Take(call.R.Context(), limitKey(hook), hook.PerMinute(), clock.Now())
	if err != nil {
		return err
	}
	if !ok {
		return h.limitReached(call, hook, state)
	}
	if hook.Known() {
		transport.SetLimitHeaders(call.W.Header(), state)
	}
	return nil
}

func (h *webhookCalls) limitReached(call *transport.Call, hook webhook.Hook, state ratelimit.State) error {
	if hook.Known() {
		transport.SetLimitHeaders(call.W.Header(), state)
	}
	return transport.RateLimited("the webhook has reached its limit of %d calls per minute", state)
}

// respond responds with the result of the workflow, or with the id of its run if that
// takes too long.
func (h *webhookCalls) respond(call *transport.Call, hook webhook.Hook, accepted webhook.Accepted) {
	// The write timeout starts after the wait. A connection without deadline
	// support has no timeout to extend.
	_ = http.NewResponseController(call.W).SetWriteDeadline(clock.Monotonic().Add(hookWait + time.Minute))
	response, status, err := h.hooks.Result(call.R.Context(), hook, accepted, call.RequestID(), hookWait)
	switch {
	case err != nil:
		call.Fail(err)
	case status == run.Running:
		call.JSON(http.StatusAccepted, acceptedBody{accepted.RunID, accepted.Duplicate})
	case response == nil:
		call.Fail(fault.New(fault.RunFailed, "run %s did not succeed", accepted.RunID))
	case response.File != nil:
		h.writeFile(call, hook, response)
	default:
		writeResponse(call, response)
	}
}

// writeFile writes the response of a workflow whose body is a file.
func (h *webhookCalls) writeFile(call *transport.Call, hook webhook.Hook, response *webhook.Response) {
	from, err := h.hooks.Open(call.R.Context(), hook, response.File)
	if err != nil {
		call.Fail(err)
		return
	}
	defer from.Close()
	hasBody := response.Status != http.StatusNoContent && response.Status != http.StatusNotModified
	if hasBody {
		call.W.Header().Set("Content-Length", strconv.FormatInt(response.File.Size, 10))
	}
	writeResponse(call, response)
	if !hasBody {
		return
	}
	if _, err := io.Copy(transport.NewPatientWriter(call.W), from); err != nil {
		h.log.Info("a file was not sent completely", "request_id", call.RequestID(), "error", err)
		panic(http.ErrAbortHandler) // so that the client notices
	}
}

// writeResponse writes the response of a workflow. The policy keeps browsers from
// treating it as a page of ours: it gets its own origin and runs no scripts.
func writeResponse(call *transport.Call, response *webhook.Response) {
	header := call.W.Header()
	for name, value := range response.Header {
		header.Set(name, value)
	}
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	if response.Status == http.StatusNoContent || response.Status == http.StatusNotModified || len(response.Body) == 0 {
		call.W.WriteHeader(response.Status)
		return
	}
	call.Bytes(response.Status, response.Body)
}
