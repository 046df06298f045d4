package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// respond is an effect that only returns a response.
func respond(sealed string) func(context.Context, txn.Tx) ([]byte, error) {
	return func(context.Context, txn.Tx) ([]byte, error) { return []byte(sealed), nil }
}

// startingRun is an effect that starts a run. A database may call an effect again
// after a conflict; only what is committed counts.
func startingRun(w *harness, start run.Start) func(context.Context, txn.Tx) ([]byte, error) {
	return func(ctx context.Context, tx txn.Tx) ([]byte, error) {
		started, err := w.Runs.In(tx).StartRun(ctx, start)
		if err == nil && !started {
			err = errors.New("the run was not started")
		}
		return []byte(start.Run.ID), err
	}
}

func newRecord(workspaceID, key string) idempotency.Record {
	return idempotency.Record{
		WorkspaceID: workspaceID, Route: "POST /v1/workflows/wf_1/runs", KeyHash: key, Fingerprint: []byte("body " + key),
		ExpiresAt: clock.Now().Add(idempotency.Life),
	}
}

func testIdempotency(t *testing.T, w *harness) {
	ws := w.workspace(t)
	wf := w.workflow(t, ws.ID)
	t.Run("a key has its effect once", func(t *testing.T) { testReplay(t, w, wf) })
	t.Run("a record expires", func(t *testing.T) { testExpiry(t, w, wf) })
	t.Run("an effect that fails leaves nothing", func(t *testing.T) { testFailedEffect(t, w, wf) })
	t.Run("an effect is one transaction", func(t *testing.T) { testNested(t, w, wf) })
	t.Run("the context of an effect outlives the transaction", func(t *testing.T) { testEffectContext(t, w, wf) })
	t.Run("one of many concurrent requests has the effect", func(t *testing.T) { testConcurrentOnce(t, w, wf) })
}

func testEffectContext(t *testing.T, w *harness, wf workflow.Workflow) {
	var ended func() error
	missing(w.Idempotency.WithIdempotencyKey(t.Context(), newRecord(wf.WorkspaceID, "context"), clock.Now(), func(ctx context.Context, _ txn.Tx) ([]byte, error) {
		ended = ctx.Err
		return []byte("saved"), nil
	}))(t, "the record of a new key")
	if err := ended(); err != nil { // a watch of the run that the effect started would have ended
		t.Errorf("the context has ended: %v", err)
	}
}

func (w *harness) countRuns(t *testing.T, of workflow.Workflow) int {
	t.Helper()
	return len(must(w.Runs.Runs(t.Context(), of.WorkspaceID, of.ID, "", fullPage))(t).Items)
}

func testReplay(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	start, record := newStart(t, wf, "node_1"), newRecord(wf.WorkspaceID, "replay")
	missing(w.Idempotency.WithIdempotencyKey(ctx, record, now, startingRun(w, start)))(t, "the record of a new key")
	equal(t, "start notifications", len(w.notified.take().Started), 1)

	second := newStart(t, wf, "node_1")
	other := record
	other.Fingerprint, other.ExpiresAt = []byte("another body"), record.ExpiresAt.Add(time.Hour)
	want := record
	want.Sealed = []byte(start.Run.ID)
	equal(t, "the record of a known key", found(w.Idempotency.WithIdempotencyKey(ctx, other, now, startingRun(w, second)))(t), want)
	missing(w.Runs.Run(ctx, wf.WorkspaceID, second.Run.ID))(t, "a second run")
	equal(t, "notifications", w.notified.take(), notifications{})

	// Another route or workspace is another key.
	route, workspace := record, record
	route.Route, workspace.WorkspaceID = "POST /v1/webhooks", w.workspace(t).ID
	missing(w.Idempotency.WithIdempotencyKey(ctx, route, now, respond("route")))(t, "the record of another route")
	missing(w.Idempotency.WithIdempotencyKey(ctx, workspace, now, respond("workspace")))(t, "the record of another workspace")
	equal(t, "answer of another route", string(found(w.Idempotency.WithIdempotencyKey(ctx, route, now, respond("x")))(t).Sealed), "route")
	equal(t, "answer of another workspace", string(found(w.Idempotency.WithIdempotencyKey(ctx, workspace, now, respond("x")))(t).Sealed), "workspace")
	equal(t, "the first answer", string(found(w.Idempotency.WithIdempotencyKey(ctx, record, now, respond("x")))(t).Sealed), start.Run.ID)
}

func testExpiry(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	record := newRecord(wf.WorkspaceID, "expiry")
	record.ExpiresAt = now.Add(time.Hour)
	missing(w.Idempotency.WithIdempotencyKey(ctx, record, now, respond("first")))(t, "a new key")
	just := now.Add(time.Hour - time.Microsecond)
	equal(t, "just before it expires", string(found(w.Idempotency.WithIdempotencyKey(ctx, record, just, respond("x")))(t).Sealed), "first")

	next := record
	next.Fingerprint, next.ExpiresAt = []byte("another body"), now.Add(2*time.Hour)
	missing(w.Idempotency.WithIdempotencyKey(ctx, next, now.Add(time.Hour), respond("second")))(t, "an expired key")
	next.Sealed = []byte("second")
	equal(t, "the new record", found(w.Idempotency.WithIdempotencyKey(ctx, record, now.Add(time.Hour), respond("x")))(t), next)
}

func testFailedEffect(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	start, record := newStart(t, wf, "node_1"), newRecord(wf.WorkspaceID, "failure")
	w.notified.take()
	failure := errors.New("the effect failed")
	_, err := w.Idempotency.WithIdempotencyKey(ctx, record, now, func(ctx context.Context, tx txn.Tx) ([]byte, error) {
		if _, err := startingRun(w, start)(ctx, tx); err != nil {
			t.Errorf("start inside the effect: %v", err)
		}
		return nil, failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("the error of the effect became %v", err)
	}
	w.checkNotStarted(t, start)
	equal(t, "records", w.count(t, `SELECT count(*) FROM idempotency WHERE key_hash = 'failure'`), 0)

	// An effect that fails does not remove an expired record.
	missing(w.Idempotency.WithIdempotencyKey(ctx, record, now, respond("kept")))(t, "a new key")
	_, err = w.Idempotency.WithIdempotencyKey(ctx, record, record.ExpiresAt, func(context.Context, txn.Tx) ([]byte, error) { return nil, failure })
	if !errors.Is(err, failure) {
		t.Errorf("the error of the effect became %v", err)
	}
	equal(t, "answer", string(found(w.Idempotency.WithIdempotencyKey(ctx, record, now, respond("x")))(t).Sealed), "kept")
}

func testNested(t *testing.T, w *harness, wf workflow.Workflow) {
	outside, ws := t.Context(), wf.WorkspaceID
	start, record, hook := newStart(t, wf, "node_1"), newRecord(ws, "nested"), newWebhook(ws)
	w.notified.take()
	missing(w.Idempotency.WithIdempotencyKey(outside, record, clock.Now(), func(ctx context.Context, tx txn.Tx) ([]byte, error) {
		if outcome, err := w.Webhooks.In(tx).InsertWebhook(ctx, hook, noLimit, newEntry(ws, "webhook.created", hook.ID)); err != nil || outcome != webhook.Done {
			t.Errorf("insert a webhook: %v, %v", outcome, err)
		}
		sealed, err := startingRun(w, start)(ctx, tx)
		if err != nil {
			t.Errorf("start: %v", err)
		}
		inside, err := w.Runs.In(tx).Run(ctx, ws, start.Run.ID)
		if err != nil || inside == nil || inside.ID != start.Run.ID {
			t.Errorf("inside the effect its run is %+v, %v", inside, err)
		}
		if _, err := w.Webhooks.In(tx).Webhook(ctx, ws, hook.ID); err != nil {
			t.Errorf("inside the effect: %v", err)
		}
		if hidden, err := w.Runs.Run(outside, ws, start.Run.ID); err != nil || hidden != nil {
			t.Errorf("others see %+v, %v before the commit", hidden, err)
		}
		if !panics(func() { _, _ = w.Runs.Run(ctx, ws, start.Run.ID) }) {
			t.Error("the store can be used beside the transaction")
		}
		if notified := w.notified.take(); len(notified.Wakes)+len(notified.Started) > 0 {
			t.Errorf("notified before the commit: %+v", notified)
		}
		return sealed, err
	}))(t, "a new key")
	equal(t, "run", found(w.Runs.Run(outside, ws, start.Run.ID))(t).Run, start.Run)
	equal(t, "deliveries to the webhook of the same transaction", w.deliveries(t, start.Event.ID), []string{hook.ID})
	notified := w.notified.take()
	equal(t, "wake notifications", mapped(notified.Wakes, func(w run.Wake) string { return w.RunID }), []string{start.Run.ID})
	equal(t, "start notifications", notified.Started, []string{ws})
}

func panics(fn func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	fn()
	return false
}

func testConcurrentOnce(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	for range 5 {
		before := w.countRuns(t, wf)
		w.notified.take()
		record := newRecord(wf.WorkspaceID, newKey("").ID)
		starts := make([]run.Start, 16)
		for i := range starts {
			starts[i] = newStart(t, wf, "node_1")
		}
		sealed := make([]string, len(starts))
		first := concurrently(t, len(starts), func(i int) (bool, error) {
			earlier, err := w.Idempotency.WithIdempotencyKey(ctx, record, now, startingRun(w, starts[i]))
			if earlier == nil {
				sealed[i] = starts[i].Run.ID
				return true, err
			}
			sealed[i] = string(earlier.Sealed)
			return false, err
		})
		equal(t, "effects", first, 1)
		equal(t, "runs", w.countRuns(t, wf)-before, 1)
		equal(t, "start notifications", len(w.notified.take().Started), 1)
		for _, id := range sealed {
			equal(t, "answer", id, sealed[0])
		}
		found(w.Runs.Run(ctx, wf.WorkspaceID, sealed[0]))(t)
	}
}
