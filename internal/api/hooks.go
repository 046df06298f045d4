package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

// hookWait is how long the caller of a hook waits for the result of its run.
const hookWait = longestWait * time.Second

type takenBody struct {
	RunID     string `json:"run_id"`
	Duplicate bool   `json:"duplicate"`
}

// enterHook takes the call of a hook. What leads nowhere is answered like what
// does not exist, and costs as little.
func (s *Server) enterHook(w http.ResponseWriter, r *http.Request, c *caller, token string) {
	hook, err := s.Hooks.Find(r.Context(), token)
	if err != nil {
		s.fail(w, c, s.turnAway(w, r, err))
		return
	}
	taken, err := s.takeCall(w, r, c, hook)
	switch {
	case err != nil && !hook.Active:
		// Nobody may tell a hook that is paused from one that does not exist.
		s.fail(w, c, s.turnAway(w, r, trigger.NothingHere()))
	case err != nil:
		s.fail(w, c, s.turnAway(w, r, err))
	case hook.Waits():
		s.answerCall(w, r, c, hook, taken)
	default:
		writeJSON(w, http.StatusAccepted, takenBody{taken.RunID, taken.Duplicate})
	}
}

func (s *Server) takeCall(w http.ResponseWriter, r *http.Request, c *caller, hook trigger.Hook) (trigger.Taken, error) {
	if !slices.Contains(hook.Methods(), r.Method) {
		if hook.Active {
			w.Header().Set("Allow", strings.Join(hook.Methods(), ", "))
		}
		return trigger.Taken{}, fault.New(fault.MethodNotAllowed, "%s is not allowed here; the hook takes %s", clean(r.Method), strings.Join(hook.Methods(), ", "))
	}
	limits := hook.Workspace.Plan.Limits()
	release, err := s.bodies.take(r, limits.RequestBodyBytes)
	if err != nil {
		return trigger.Taken{}, err
	}
	defer release()
	call := trigger.Call{RequestID: c.requestID, Method: r.Method, Header: r.Header, Query: r.URL.RawQuery}
	if call.Body, err = readBody(w, r, limits); err != nil {
		return trigger.Taken{}, err
	}
	if err := s.Hooks.Verify(r.Context(), hook, call); err != nil {
		return trigger.Taken{}, err
	}
	if err := s.countCall(w, r, hook); err != nil {
		return trigger.Taken{}, err
	}
	return s.Hooks.Take(r.Context(), hook, call)
}

// countCall counts a call that is genuine against the limit of its hook.
func (s *Server) countCall(w http.ResponseWriter, r *http.Request, hook trigger.Hook) error {
	state, ok, err := s.Limits.Take(r.Context(), hook.WorkflowID+"/"+hook.ID, hook.PerMinute(), clock.Now())
	if err != nil {
		return err
	}
	if hook.Active {
		setLimitHeaders(w.Header(), state)
	}
	if !ok {
		return limited("the hook has taken its %d calls of this minute", state)
	}
	return nil
}

// answerCall answers with what the workflow returns, or with its run when that
// takes too long.
func (s *Server) answerCall(w http.ResponseWriter, r *http.Request, c *caller, hook trigger.Hook, taken trigger.Taken) {
	// Waiting is not slowness: the limit for writing begins after it. Without
	// support for deadlines there is no limit to lift.
	_ = http.NewResponseController(w).SetWriteDeadline(clock.Mark().Add(hookWait + time.Minute))
	response, status, err := s.Hooks.Result(r.Context(), hook, taken, c.requestID, hookWait)
	switch {
	case err != nil:
		s.fail(w, c, err)
	case status == run.Running:
		writeJSON(w, http.StatusAccepted, takenBody{taken.RunID, taken.Duplicate})
	case response == nil:
		s.fail(w, c, fault.New(fault.RunFailed, "the run %s did not come to a good end", taken.RunID))
	default:
		s.writeResponse(w, response)
	}
}

// writeResponse writes what a workflow returns. Whatever that is, no browser may
// take it for a page of ours: it gets an origin of its own, and runs nothing.
func (s *Server) writeResponse(w http.ResponseWriter, response *trigger.Response) {
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
	return listing(ctx, s, in.page, []string{"requests", in.ID, in.TriggerID},
		func(p paging.Request) (paging.Page[trigger.Request], error) {
			return s.Triggers.Requests(ctx, actorOf(ctx), in.ID, in.TriggerID, p)
		},
		func(r trigger.Request) requestBody {
			return requestBody{
				ID: r.ID, At: clock.Format(r.At), Method: r.Method, Size: r.Size, Outcome: r.Outcome, RunID: orNull(r.RunID),
				Headers: r.Headers, Query: r.Query, Payload: orNothing(r.Payload),
			}
		})
}

// orNothing shows what is not there as null.
func orNothing(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
