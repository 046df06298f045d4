package trigger

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/inbound"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/signature"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Call is a call of a hook.
type Call struct {
	RequestID string
	Method    string
	Header    http.Header
	Query     string
	Body      []byte
}

// Taken is a call that was taken.
type Taken struct {
	RunID string
	// Duplicate says that the run was started by an earlier call with the same key.
	Duplicate bool
	started   run.Started
}

// Take starts the run that a call asks for. Calls with the same key start one.
func (h *Hooks) Take(ctx context.Context, hook Hook, call Call) (Taken, error) {
	firing, err := hook.firing(call)
	if err != nil {
		return Taken{}, err
	}
	if !hook.Active {
		h.inbox.Keep(hook.Trigger, call.kept(firing, CodeNotActive, ""))
		return Taken{}, NothingHere()
	}
	started, err := h.runs.Fire(ctx, firing)
	switch duplicate, is := errors.AsType[*run.DuplicateError](err); {
	case is:
		h.inbox.Keep(hook.Trigger, call.kept(firing, "duplicate", duplicate.RunID))
		return Taken{RunID: duplicate.RunID, Duplicate: true}, nil
	case errors.Is(err, run.ErrNotArmed), fault.Is(err, fault.WorkflowNotFound):
		return Taken{}, NothingHere()
	case err != nil:
		return Taken{}, h.noteFailure(hook, call, firing, err)
	}
	h.inbox.Keep(hook.Trigger, call.kept(firing, "started", started.ID))
	return Taken{RunID: started.ID, started: started}, nil
}

// noteFailure notes why a call started nothing.
func (h *Hooks) noteFailure(hook Hook, call Call, firing run.Firing, err error) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	h.inbox.Keep(hook.Trigger, call.kept(firing, string(f.Code), ""))
	h.inbox.Note(hook.Trigger, nil, &Note{At: clock.Now(), Code: string(f.Code), Message: f.Message})
	return err
}

// firing is the run that a call asks for.
func (h Hook) firing(call Call) (run.Firing, error) {
	now := clock.Now()
	f := run.Firing{WorkspaceID: h.WorkspaceID, WorkflowID: h.WorkflowID, Watch: h.Waits(), Fire: run.Fire{At: now}}
	f.Trigger = run.Trigger{Type: workflow.WebhookTrigger, ID: h.ID}
	var err error
	if f.Trigger.Payload, err = inbound.Payload(call.Header, call.Body); err != nil {
		return f, err
	}
	if f.Trigger.Headers, err = strictjson.Encode(inbound.Headers(call.Header, h.proofs()...)); err != nil {
		return f, err
	}
	if f.Trigger.Query, err = strictjson.Encode(inbound.Query(call.Query)); err != nil {
		return f, err
	}
	// A call of one of our own steps says how many runs stand above it.
	if n, err := strconv.Atoi(call.Header.Get(action.DepthHeader)); err == nil && n >= 0 {
		f.Depth = min(n, action.MaxDepth) + 1
	}
	f.Fire.Dedupe, err = h.key(f.Trigger, now)
	return f, err
}

// proofs are the headers by which a call is verified.
func (h Hook) proofs() []string {
	v := h.planned.Verification
	if v == nil || v.Scheme == workflow.SchemeNone {
		return nil
	}
	return signature.Rule{Scheme: signature.Scheme(v.Scheme), Header: v.Header}.Headers()
}

// key tells calls apart; nil when the trigger has no key for this one.
func (h Hook) key(t run.Trigger, now time.Time) (*run.Dedupe, error) {
	if h.planned.DedupeKey == nil {
		return nil, nil
	}
	seen, err := t.Seen()
	if err != nil {
		return nil, err
	}
	value, err := h.planned.DedupeKey.Eval(&expr.Env{Trigger: seen, Now: now}, expr.Budget{})
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the key of the call cannot be worked out")
	}
	if value == nil || value == "" {
		return nil, nil
	}
	text, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &run.Dedupe{Hash: sum[:], Until: now.Add(keyTime)}, nil
}

// kept is what is kept of a call.
func (c Call) kept(f run.Firing, outcome, runID string) Request {
	return Request{
		ID: uid.At(uid.Request, f.Fire.At), At: f.Fire.At, Method: c.Method, Size: len(c.Body), Outcome: outcome, RunID: runID,
		Headers: f.Trigger.Headers, Query: f.Trigger.Query, Payload: f.Trigger.Payload,
	}
}
