package webhook

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
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/signature"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Call is an HTTP request to a hook.
type Call struct {
	RequestID string
	Method    string
	Header    http.Header
	Query     string
	Body      []byte
	// Upload is the payload of a body that has files, in place of Body.
	Upload *Upload
}

func (c Call) size() int {
	if c.Upload != nil {
		return int(c.Upload.Size)
	}
	return len(c.Body)
}

// The outcomes of calls that are not rejected.
const (
	outcomeStarted   = "started"
	outcomeDuplicate = "duplicate"
)

// Accepted is the result of a call that started a run, now or earlier.
type Accepted struct {
	RunID string
	// Duplicate means that an earlier call with the same key started the run.
	Duplicate bool
	started   run.Started
}

// Accept starts the run for a call. Calls with the same key start only one run. The
// files of a call that starts no run are deleted.
func (h *Hooks) Accept(ctx context.Context, hook Hook, call Call) (Accepted, error) {
	accepted, err := h.accept(ctx, hook, call)
	// After other errors the run may have been started all the same.
	if _, known := fault.As(err); known && !fault.Is(err, fault.Unavailable) || accepted.Duplicate {
		h.Discard(ctx, call.Upload)
	}
	return accepted, err
}

func (h *Hooks) accept(ctx context.Context, hook Hook, call Call) (Accepted, error) {
	firing, err := hook.firing(call)
	if err != nil {
		return Accepted{}, err
	}
	if !hook.Active {
		h.inbox.Record(hook.Trigger, call.record(firing, trigger.CodeNotActive, ""))
		return Accepted{}, trigger.NothingHere()
	}
	started, err := h.runs.Fire(ctx, firing)
	switch duplicate, is := errors.AsType[*run.DuplicateError](err); {
	case is:
		h.inbox.Record(hook.Trigger, call.record(firing, outcomeDuplicate, duplicate.RunID))
		return Accepted{RunID: duplicate.RunID, Duplicate: true}, nil
	case errors.Is(err, run.ErrNotDue), fault.Is(err, fault.WorkflowNotFound):
		return Accepted{}, trigger.NothingHere()
	case err != nil:
		return Accepted{}, h.recordFailure(hook, call, firing, err)
	}
	h.inbox.Record(hook.Trigger, call.record(firing, outcomeStarted, started.ID))
	return Accepted{RunID: started.ID, started: started}, nil
}

// recordFailure records why a call did not start a run.
func (h *Hooks) recordFailure(hook Hook, call Call, firing run.Firing, err error) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	h.inbox.Record(hook.Trigger, call.record(firing, string(f.Code), ""))
	h.inbox.Note(hook.Trigger, nil, &trigger.Note{At: clock.Now(), Code: string(f.Code), Message: f.Message})
	return err
}

func (h Hook) firing(call Call) (run.Firing, error) {
	now := clock.Now()
	f := run.Firing{WorkspaceID: h.WorkspaceID, WorkflowID: h.WorkflowID, Watch: h.Waits(), Fire: run.Fire{At: now}}
	f.Trigger = run.Trigger{Type: workflow.WebhookTrigger, ID: h.ID}
	var err error
	if u := call.Upload; u != nil {
		f.Trigger.Payload, f.Trigger.Files, f.Files = u.Payload, u.Pointers, u.Files
	} else if f.Trigger.Payload, err = trigger.ParseBody(call.Header, call.Body); err != nil {
		return f, err
	}
	if f.Trigger.Headers, err = strictjson.Encode(trigger.HeaderValues(call.Header, h.verificationHeaders()...)); err != nil {
		return f, err
	}
	if f.Trigger.Query, err = strictjson.Encode(trigger.ParseQuery(call.Query)); err != nil {
		return f, err
	}
	// A call from a step of a run carries the depth of that run.
	if n, err := strconv.Atoi(call.Header.Get(action.DepthHeader)); err == nil && n >= 0 {
		f.Depth = min(n, action.MaxDepth) + 1
	}
	f.Fire.Dedupe, err = h.dedupe(f.Trigger, now)
	return f, err
}

// verificationHeaders returns the headers that carry the proof of a call.
func (h Hook) verificationHeaders() []string {
	v := h.config.Verification
	if v == nil || v.Scheme == workflow.SchemeNone {
		return nil
	}
	return signature.Rule{Scheme: signature.Scheme(v.Scheme), Header: v.Header}.Headers()
}

// dedupe returns the deduplication key of a call, or nil if it has none.
func (h Hook) dedupe(t run.Trigger, now time.Time) (*run.Dedupe, error) {
	if h.config.DedupeKey == nil {
		return nil, nil
	}
	seen, err := t.Seen()
	if err != nil {
		return nil, err
	}
	value, err := h.config.DedupeKey.Eval(&expr.Env{Trigger: seen, Now: now}, expr.Budget{})
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the deduplication key of the call cannot be evaluated")
	}
	if value == nil || value == "" {
		return nil, nil
	}
	text, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &run.Dedupe{Hash: sum[:], Until: now.Add(trigger.DedupeWindow)}, nil
}

// record returns the call as it is stored. The files of a call that started no run are
// deleted, and what refers to them becomes data.
func (c Call) record(f run.Firing, outcome, runID string) trigger.Request {
	r := trigger.Request{
		ID: uid.At(uid.Request, f.Fire.At), At: f.Fire.At, Method: c.Method, Size: c.size(), Outcome: outcome, RunID: runID,
		Headers: f.Trigger.Headers, Query: f.Trigger.Query, Payload: f.Trigger.Payload,
	}
	if outcome == outcomeStarted {
		r.Files = f.Trigger.Files
	}
	return r
}
