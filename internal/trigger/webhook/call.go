package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
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
	// Verified is set once the call has proved where it comes from.
	Verified bool
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
	outcomeTest      = "test"
)

// Accepted is the result of a call that started a run, now or earlier, or that people were
// listening for.
type Accepted struct {
	// Test means that the call was recorded as a test and started no run.
	Test  bool
	RunID string
	// Duplicate means that an earlier call with the same key started the run.
	Duplicate bool
	started   run.Started
}

// Accept starts the run for a call that was verified. Calls with the same key start only one
// run. The files of a call that starts no run are deleted.
func (h *Hooks) Accept(ctx context.Context, hook Hook, call Call) (Accepted, error) {
	accepted, err := h.accept(ctx, hook, call)
	// After other errors the run may have been started all the same.
	if _, known := fault.As(err); known && !fault.Is(err, fault.Unavailable) || accepted.Duplicate || accepted.Test {
		h.Discard(ctx, call.Upload)
	}
	return accepted, err
}

func (h *Hooks) accept(ctx context.Context, hook Hook, call Call) (Accepted, error) {
	firing, err := hook.firing(call)
	if err != nil {
		h.RecordRejection(hook, call, err)
		return Accepted{}, err
	}
	if !hook.Active {
		return h.acceptTest(ctx, hook, call.record(firing, outcomeTest, ""))
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

// acceptTest records a call of a workflow that is not active: as the test that people are
// listening for, or as rejected.
func (h *Hooks) acceptTest(ctx context.Context, hook Hook, r trigger.Request) (Accepted, error) {
	if hook.Listening() {
		saved, err := h.inbox.SaveTest(ctx, hook.Trigger, r)
		if err != nil || saved {
			return Accepted{Test: saved}, err
		}
	}
	r.Outcome, r.Reason = trigger.CodeNotActive, "the workflow is not active"
	h.inbox.Record(hook.Trigger, r)
	return Accepted{}, trigger.NothingHere()
}

// RecordRejection records why a call was rejected, for the people who build the workflow.
// Of a call that was not verified nothing is recorded that its sender has chosen. A failure
// of the service and a rate limit say nothing about the call, so they are not recorded.
func (h *Hooks) RecordRejection(hook Hook, call Call, err error) {
	f, ok := fault.As(err)
	if !ok || f.Code.Status() >= http.StatusInternalServerError || f.Code.Status() == http.StatusTooManyRequests {
		return
	}
	firing := run.Firing{Fire: run.Fire{At: clock.Now()}}
	firing.Trigger.Headers, firing.Trigger.Query = json.RawMessage("{}"), json.RawMessage("{}")
	if call.Verified {
		if hook.readHead(call, &firing.Trigger) != nil {
			return
		}
	}
	r := call.record(firing, string(f.Code), "")
	r.Reason = f.Message
	if rejection, ok := errors.AsType[*signature.Rejection](err); ok {
		r.Outcome, r.Reason = trigger.CodeSignatureRejected, rejection.Reason
	}
	h.inbox.Record(hook.Trigger, r)
}

// recordFailure records why a call did not start a run.
func (h *Hooks) recordFailure(hook Hook, call Call, firing run.Firing, err error) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	r := call.record(firing, string(f.Code), "")
	r.Reason = f.Message
	h.inbox.Record(hook.Trigger, r)
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
	if err := h.readHead(call, &f.Trigger); err != nil {
		return f, err
	}
	// A call from a step of a run carries the depth of that run.
	if n, err := strconv.Atoi(call.Header.Get(action.DepthHeader)); err == nil && n >= 0 {
		f.Depth = min(n, action.MaxDepth) + 1
	}
	f.Fire.Dedupe, err = h.dedupe(f.Trigger, now)
	return f, err
}

// readHead sets the headers and the query of a call.
func (h Hook) readHead(call Call, t *run.Trigger) (err error) {
	if t.Headers, err = strictjson.Encode(trigger.HeaderValues(call.Header, h.verificationHeaders()...)); err != nil {
		return err
	}
	t.Query, err = strictjson.Encode(trigger.ParseQuery(call.Query))
	return err
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
		ID: uid.At(uid.Request, f.Fire.At), At: f.Fire.At, Method: c.Method, Size: c.size(), Outcome: outcome, RunID: runID, Verified: c.Verified,
		Headers: f.Trigger.Headers, Query: f.Trigger.Query, Payload: f.Trigger.Payload,
	}
	if outcome == outcomeStarted {
		r.Files = f.Trigger.Files
	}
	return r
}
