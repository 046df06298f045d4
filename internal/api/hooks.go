package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/webhook"
)

// hookWait limits how long a call of a hook waits for the result of its run.
const hookWait = maxWaitSeconds * time.Second

type acceptedBody struct {
	RunID     string `json:"run_id"`
	Duplicate bool   `json:"duplicate"`
}

// serveHook handles a call of a hook. A call that cannot start a run gets the
// same response as one of an unknown hook, and costs as little.
func (s *Server) serveHook(w http.ResponseWriter, r *http.Request, c *caller, token string) {
	hook, err := s.Hooks.Find(r.Context(), token)
	if err != nil {
		s.fail(w, c, s.reject(w, r, err))
		return
	}
	accepted, err := s.acceptCall(w, r, c, hook)
	switch {
	case err != nil && !hook.Active:
		// A caller must not be able to tell a paused hook from an unknown one.
		s.fail(w, c, s.reject(w, r, trigger.NothingHere()))
	case err != nil:
		s.fail(w, c, s.reject(w, r, err))
	case hook.Waits():
		s.respondToCall(w, r, c, hook, accepted)
	default:
		writeJSON(w, http.StatusAccepted, acceptedBody{accepted.RunID, accepted.Duplicate})
	}
}

func (s *Server) acceptCall(w http.ResponseWriter, r *http.Request, c *caller, hook webhook.Hook) (webhook.Accepted, error) {
	if !slices.Contains(hook.Methods(), r.Method) {
		if hook.Active {
			w.Header().Set("Allow", strings.Join(hook.Methods(), ", "))
		}
		return webhook.Accepted{}, fault.New(fault.MethodNotAllowed, "method %s is not allowed here; the webhook accepts %s", clean(r.Method), strings.Join(hook.Methods(), ", "))
	}
	verifier, err := s.Hooks.Verifier(r.Context(), hook)
	if err != nil {
		return webhook.Accepted{}, err
	}
	check, err := verifier.Begin(r.Header)
	if err != nil {
		return webhook.Accepted{}, err
	}
	if err := s.checkLimit(w, r, hook, verifier); err != nil {
		return webhook.Accepted{}, err
	}
	reserved, err := s.reserveBody(workspaceBodies(hook.WorkspaceID), hookBodies(hook.WorkflowID, hook.ID))
	if err != nil {
		return webhook.Accepted{}, err
	}
	defer reserved.release()
	call := webhook.Call{RequestID: c.requestID, Method: r.Method, Header: r.Header, Query: r.URL.RawQuery}
	if err := s.readCall(r, hook, &call, check, reserved); err != nil {
		return webhook.Accepted{}, err
	}
	err = check.Finish()
	if err == nil && verifier.NeedsBody() {
		err = s.limitCall(w, r, hook)
	}
	if err != nil {
		s.Hooks.Discard(r.Context(), call.Upload)
		return webhook.Accepted{}, err
	}
	return s.Hooks.Accept(r.Context(), hook, call)
}

// readCall reads the body of a call: into memory, or, if it has files, into the file
// storage, as it arrives.
func (s *Server) readCall(r *http.Request, hook webhook.Hook, call *webhook.Call, check io.Writer, reserved *reservation) (err error) {
	if r.Body == nil || r.Body == http.NoBody || !webhook.BringsFiles(r.Header) {
		if call.Body, err = readPublicBody(r, hook.Workspace.Plan.Limits(), reserved); err == nil {
			_, err = check.Write(call.Body)
		}
		return err
	}
	if err := reserved.grow(webhook.StreamBytes); err != nil {
		return err
	}
	call.Upload, err = s.Hooks.Receive(r.Context(), hook, r.Header, io.TeeReader(r.Body, check), reserved.grow)
	return err
}

// checkLimit rejects a call before its body is read if the limit of the hook has been
// reached. A call that its body has yet to verify is not counted, because anyone could
// use the limit up.
func (s *Server) checkLimit(w http.ResponseWriter, r *http.Request, hook webhook.Hook, verifier webhook.Verifier) error {
	if !verifier.NeedsBody() {
		return s.limitCall(w, r, hook)
	}
	if state := s.Limits.Peek(limitKey(hook), hook.PerMinute(), clock.Now()); state.Remaining == 0 {
		return s.limitReached(w, hook, state)
	}
	return nil
}

// limitKey is the key of the rate limit of a hook.
func limitKey(hook webhook.Hook) string { return hook.WorkflowID + "/" + hook.ID }

// limitCall counts a verified call against the rate limit of its hook.
func (s *Server) limitCall(w http.ResponseWriter, r *http.Request, hook webhook.Hook) error {
	state, ok, err := s.Limits.Take(r.Context(), limitKey(hook), hook.PerMinute(), clock.Now())
	if err != nil {
		return err
	}
	if !ok {
		return s.limitReached(w, hook, state)
	}
	if hook.Active {
		setLimitHeaders(w.Header(), state)
	}
	return nil
}

func (s *Server) limitReached(w http.ResponseWriter, hook webhook.Hook, state ratelimit.State) error {
	if hook.Active {
		setLimitHeaders(w.Header(), state)
	}
	return rateLimited("the webhook has reached its limit of %d calls per minute", state)
}

// respondToCall responds with the result of the workflow, or with the id of its
// run if that takes too long.
func (s *Server) respondToCall(w http.ResponseWriter, r *http.Request, c *caller, hook webhook.Hook, accepted webhook.Accepted) {
	// The write timeout starts after the wait. A connection without deadline
	// support has no timeout to extend.
	_ = http.NewResponseController(w).SetWriteDeadline(clock.Monotonic().Add(hookWait + time.Minute))
	response, status, err := s.Hooks.Result(r.Context(), hook, accepted, c.requestID, hookWait)
	switch {
	case err != nil:
		s.fail(w, c, err)
	case status == run.Running:
		writeJSON(w, http.StatusAccepted, acceptedBody{accepted.RunID, accepted.Duplicate})
	case response == nil:
		s.fail(w, c, fault.New(fault.RunFailed, "run %s did not succeed", accepted.RunID))
	case response.File != nil:
		s.writeFileResponse(w, r, c, hook, response)
	default:
		s.writeResponse(w, response)
	}
}

// writeFileResponse writes the response of a workflow whose body is a file.
func (s *Server) writeFileResponse(w http.ResponseWriter, r *http.Request, c *caller, hook webhook.Hook, response *webhook.Response) {
	from, err := s.Hooks.Open(r.Context(), hook, response.File)
	if err != nil {
		s.fail(w, c, err)
		return
	}
	defer from.Close()
	hasBody := response.Status != http.StatusNoContent && response.Status != http.StatusNotModified
	if hasBody {
		w.Header().Set("Content-Length", strconv.FormatInt(response.File.Size, 10))
	}
	s.writeResponse(w, response)
	if !hasBody {
		return
	}
	if _, err := io.Copy(newPatientWriter(w), from); err != nil {
		s.Log.Info("a file was not sent completely", "request_id", c.requestID, "error", err)
		panic(http.ErrAbortHandler) // so that the client notices
	}
}

// writeResponse writes the response of a workflow. The policy keeps browsers from
// treating it as a page of ours: it gets its own origin and runs no scripts.
func (s *Server) writeResponse(w http.ResponseWriter, response *webhook.Response) {
	h := w.Header()
	for name, value := range response.Header {
		h.Set(name, value)
	}
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	if response.Status == http.StatusNoContent || response.Status == http.StatusNotModified || len(response.Body) == 0 {
		w.WriteHeader(response.Status)
		return
	}
	writeBytes(w, response.Status, response.Body)
}

type triggerRequest struct {
	ID        string `path:"id"`
	TriggerID string `path:"trigger_id"`
}

func (s *Server) rotateTrigger(ctx context.Context, in *triggerRequest) (*reply, error) {
	t, err := s.Triggers.Rotate(ctx, actorOf(ctx), in.ID, in.TriggerID)
	if err != nil {
		return nil, err
	}
	state, err := s.showTrigger(ctx, t)
	return ok(state), err
}

type requestBody struct {
	ID      string          `json:"id"`
	At      string          `json:"at"`
	Method  string          `json:"method"`
	Size    int             `json:"size"`
	Outcome string          `json:"outcome"`
	RunID   *string         `json:"run_id"`
	Headers json.RawMessage `json:"headers"`
	Query   json.RawMessage `json:"query"`
	Payload json.RawMessage `json:"payload"`
}

type listRequestsRequest struct {
	page
	triggerRequest
}

func (s *Server) listRequests(ctx context.Context, in *listRequestsRequest) (*reply, error) {
	return paginate(ctx, s, in.page, []string{"requests", in.ID, in.TriggerID},
		func(p paging.Request) (paging.Page[trigger.Request], error) {
			return s.Triggers.Requests(ctx, actorOf(ctx), in.ID, in.TriggerID, p)
		},
		func(r trigger.Request) requestBody {
			return requestBody{
				ID: r.ID, At: clock.Format(r.At), Method: r.Method, Size: r.Size, Outcome: r.Outcome, RunID: orNull(r.RunID),
				Headers: r.Headers, Query: r.Query, Payload: rawOrNull(r.Payload),
			}
		})
}

// rawOrNull returns null for a missing value.
func rawOrNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
