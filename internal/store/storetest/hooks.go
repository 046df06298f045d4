package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// hookWorkflow creates an active workflow with a webhook trigger.
func (w *harness) hookWorkflow(t *testing.T, workspaceID string) (workflow.Workflow, trigger.Trigger) {
	t.Helper()
	token := uid.New(uid.Request)
	made := w.withTriggers(t, workspaceID, workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "h", Token: []byte("sealed " + token), TokenHash: []byte(token)})
	w.notified.take()
	return made, w.trigger(t, made, "hook")
}

func newRequest(at time.Time, payload string) trigger.Request {
	return trigger.Request{
		ID: uid.At(uid.Request, at), At: at, Method: "POST", Size: 7, Outcome: "started", RunID: "run_1", Verified: true,
		Headers: json.RawMessage(`{"a":"b"}`), Query: json.RawMessage(`{}`), Payload: json.RawMessage(payload),
	}
}

func testHooks(t *testing.T, w *harness) {
	ws := w.workspace(t)
	t.Run("rotate their token", func(t *testing.T) { testRotation(t, w, ws.ID) })
	t.Run("store their latest calls", func(t *testing.T) { testRequests(t, w, ws.ID) })
	t.Run("listen for one call", func(t *testing.T) { testListening(t, w, ws.ID) })
	t.Run("accept an idempotency key once", func(t *testing.T) { testKeysAtOnce(t, w, ws.ID) })
}

func testRotation(t *testing.T, w *harness, workspaceID string) {
	ctx := t.Context()
	made, hook := w.hookWorkflow(t, workspaceID)
	was := []byte(string(hook.SealedToken)[len("sealed "):])
	equal(t, "by the first token", found(w.Triggers.TriggerByToken(ctx, was))(t).WorkflowID, made.ID)
	hook.SealedToken = []byte("encrypted again")
	foreign := hook
	foreign.WorkspaceID = w.workspace(t).ID
	audited := w.audited(t, workspaceID, made.ID)
	entry := newEntry(workspaceID, "trigger.rotated", made.ID)
	returns(w.Triggers.RotateToken(ctx, foreign, []byte("foreign"), entry))(t, "from another workspace", false)
	returns(w.Triggers.RotateToken(ctx, hook, []byte("again "+made.ID), entry))(t, "rotate", true)
	missing(w.Triggers.TriggerByToken(ctx, was))(t, "the previous token")
	equal(t, "by the new token", found(w.Triggers.TriggerByToken(ctx, []byte("again "+made.ID)))(t).SealedToken, []byte("encrypted again"))
	equal(t, "audit entries", w.audited(t, workspaceID, made.ID), audited+1)
	other := w.withTriggers(t, workspaceID, scheduled("s", "1", clock.Now().Add(time.Hour)))
	returns(w.Triggers.RotateToken(ctx, w.trigger(t, other, "s"), []byte("x"), entry))(t, "without any", false)
	w.notified.take()
}

func testRequests(t *testing.T, w *harness, workspaceID string) {
	ctx := t.Context()
	made, hook := w.hookWorkflow(t, workspaceID)
	beside, other := w.hookWorkflow(t, workspaceID)
	now := clock.Now()
	var calls []trigger.Request
	for i := range 7 {
		calls = append(calls, newRequest(now.Add(time.Duration(i)*time.Second), fmt.Sprintf(`{"n":%d}`, i)))
	}
	calls[2].Payload, calls[2].RunID = nil, ""
	keep := func(of trigger.Trigger, calls ...trigger.Request) {
		t.Helper()
		if err := w.Triggers.SaveRequests(ctx, of, calls, 3); err != nil {
			t.Fatal(err)
		}
	}
	read := func(of trigger.Trigger, workspaceID string) []trigger.Request {
		t.Helper()
		return must(w.Triggers.Requests(ctx, workspaceID, of.WorkflowID, of.ID, now.Add(-time.Hour), paging.Request{Limit: 100}))(t).Items
	}
	keep(hook, calls[:3]...)
	equal(t, "three", read(hook, workspaceID), []trigger.Request{calls[2], calls[1], calls[0]})
	keep(hook, calls[2], calls[3], calls[4]) // one of them twice
	keep(other, calls[6])
	equal(t, "the newest three", read(hook, workspaceID), []trigger.Request{calls[4], calls[3], calls[2]})
	equal(t, "of the other", read(other, workspaceID), []trigger.Request{calls[6]})
	equal(t, "for another workspace", len(read(hook, w.workspace(t).ID)), 0)
	equal(t, "of the last minute", len(must(w.Triggers.Requests(ctx, workspaceID, made.ID, "hook", now.Add(4*time.Second), paging.Request{Limit: 100}))(t).Items), 1)
	first := must(w.Triggers.Requests(ctx, workspaceID, made.ID, "hook", now, paging.Request{Limit: 2}))(t)
	equal(t, "a page", first.Next, calls[3].ID)
	equal(t, "the next page", must(w.Triggers.Requests(ctx, workspaceID, made.ID, "hook", now, paging.Request{Limit: 2, After: first.Next}))(t).Items, []trigger.Request{calls[2]})

	rejected := newRequest(now.Add(5*time.Second), `{}`)
	rejected.Payload, rejected.RunID, rejected.Verified, rejected.Outcome, rejected.Reason = nil, "", false, "signature_refused", "it is not signed"
	keep(hook, rejected)
	equal(t, "one that was not verified, beside the others", read(hook, workspaceID), []trigger.Request{rejected, calls[4], calls[3], calls[2]})
	unknown := hook
	unknown.ID = "none"
	keep(unknown, calls[5])
	equal(t, "of a deleted trigger", len(read(unknown, workspaceID)), 0)
	returns(w.Triggers.PurgeRequests(ctx, now.Add(3*time.Second), 1))(t, "there may be more", true)
	returns(w.Triggers.PurgeRequests(ctx, now.Add(3*time.Second), 1))(t, "no more", false)
	equal(t, "after a purge", read(hook, workspaceID), []trigger.Request{rejected, calls[4], calls[3]})
	w.deleteWorkflow(t, beside)
	equal(t, "of a deleted workflow", len(read(other, workspaceID)), 0)
	w.notified.take()
}

// testListening checks that a trigger accepts one of many calls as a test.
func testListening(t *testing.T, w *harness, workspaceID string) {
	ctx := t.Context()
	made, hook := w.hookWorkflow(t, workspaceID)
	until := clock.Steady().Add(time.Hour)
	hook.ListeningUntil = &until
	returns(w.Triggers.Listen(ctx, hook, 1))(t, "while the workflow is active", false)
	change := workflow.Change{Workflow: made, WasRevision: made.Revision, Armed: &[]workflow.Armed{{ID: "hook", Type: workflow.WebhookTrigger, Spec: "h"}}}
	change.Workflow.State, change.Workflow.Revision = workflow.Draft, made.Revision+1
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "make it a draft", true)
	foreign := hook
	foreign.WorkspaceID = w.workspace(t).ID
	returns(w.Triggers.Listen(ctx, foreign, 1))(t, "from another workspace", false)
	if _, err := w.Triggers.Listen(ctx, hook, 0); !errors.Is(err, trigger.ErrTooManyListening) {
		t.Errorf("above the limit: %v", err)
	}
	returns(w.Triggers.SaveTest(ctx, hook, newRequest(clock.Now(), `{}`), 3))(t, "a call before", false)
	returns(w.Triggers.Listen(ctx, hook, 1))(t, "listen", true)
	returns(w.Triggers.Listen(ctx, hook, 1))(t, "listen for longer", true)
	equal(t, "until", *w.trigger(t, made, "hook").ListeningUntil, until)
	returns(w.Triggers.SaveTest(ctx, foreign, newRequest(clock.Now(), `{}`), 3))(t, "a call of another workspace", false)
	saved := concurrently(t, 16, func(i int) (bool, error) {
		return w.Triggers.SaveTest(ctx, hook, newRequest(clock.Now().Add(time.Duration(i)*time.Second), `{}`), 3)
	})
	equal(t, "tests", saved, 1)
	equal(t, "stored calls", len(must(w.Triggers.Requests(ctx, workspaceID, made.ID, "hook", clock.Now().Add(-time.Hour), paging.Request{Limit: 100}))(t).Items), 1)
	equal(t, "afterwards", w.trigger(t, made, "hook").ListeningUntil, nil)
	past := clock.Steady().Add(-time.Second)
	hook.ListeningUntil = &past
	returns(w.Triggers.Listen(ctx, hook, 1))(t, "until a moment ago", true)
	returns(w.Triggers.SaveTest(ctx, hook, newRequest(clock.Now(), `{}`), 3))(t, "a late call", false)
	if err := w.Triggers.StopListening(ctx, hook); err != nil {
		t.Error(err)
	}
	equal(t, "once stopped", w.trigger(t, made, "hook").ListeningUntil, nil)
	w.notified.take()
}

// testKeysAtOnce checks that one of many calls with the same key starts a run and
// the others learn which.
func testKeysAtOnce(t *testing.T, w *harness, workspaceID string) {
	ctx := t.Context()
	made, _ := w.hookWorkflow(t, workspaceID)
	now := clock.Now()
	starts := make([]run.Start, 64)
	for i := range starts {
		starts[i] = newStart(t, made, "node_1")
		starts[i].Run.Trigger = run.Trigger{Type: workflow.WebhookTrigger, ID: "hook", Payload: json.RawMessage(`{}`)}
		starts[i].Fire = &run.Fire{At: now, Dedupe: &run.Dedupe{Hash: []byte("key"), Until: now.Add(time.Hour)}}
	}
	runIDs := make([]string, len(starts))
	won := concurrently(t, len(starts), func(i int) (bool, error) {
		ok, err := w.Runs.StartRun(ctx, starts[i])
		if duplicate, is := errors.AsType[*run.DuplicateError](err); is {
			runIDs[i] = duplicate.RunID
			return false, nil
		}
		runIDs[i] = starts[i].Run.ID
		return ok, err
	})
	equal(t, "winners", won, 1)
	for _, id := range runIDs {
		equal(t, "the run", id, runIDs[0])
	}
	w.notified.take()
}
