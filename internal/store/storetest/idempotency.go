package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// answer is an effect that only answers.
func answer(sealed string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(sealed), nil }
}

// starting is an effect that starts a run. A database may call an effect again
// after a conflict; what counts is what is committed.
func starting(w *world, start run.Start) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		started, err := w.StartRun(ctx, start)
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

func testIdempotency(t *testing.T, w *world) {
	ws := w.workspace(t)
	wf := w.workflow(t, ws.ID)
	t.Run("a key has its effect once", func(t *testing.T) { testReplay(t, w, wf) })
	t.Run("a record expires", func(t *testing.T) { testExpiry(t, w, wf) })
	t.Run("an effect that fails leaves nothing", func(t *testing.T) { testFailedEffect(t, w, wf) })
	t.Run("an effect is one unit", func(t *testing.T) { testNested(t, w, wf) })
	t.Run("one of many has the effect", func(t *testing.T) { testConcurrentOnce(t, w, wf) })
}

func (w *world) countRuns(t *testing.T, of workflow.Workflow) int {
	t.Helper()
	return len(must(w.Runs(t.Context(), of.WorkspaceID, of.ID, "", whole))(t).Items)
}

func testReplay(t *testing.T, w *world, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	start, record := newStart(t, wf, "node_1"), newRecord(wf.WorkspaceID, "replay")
	gone(w.Once(ctx, record, now, starting(w, start)))(t, "the record of a new key")
	same(t, "told starts", len(w.told.take().Started), 1)

	second := newStart(t, wf, "node_1")
	other := record
	other.Fingerprint, other.ExpiresAt = []byte("another body"), record.ExpiresAt.Add(time.Hour)
	want := record
	want.Sealed = []byte(start.Run.ID)
	same(t, "the record of a known key", found(w.Once(ctx, other, now, starting(w, second)))(t), want)
	gone(w.Run(ctx, wf.WorkspaceID, second.Run.ID))(t, "a second run")
	same(t, "told", w.told.take(), heard{})

	// Another route or workspace is another key.
	route, workspace := record, record
	route.Route, workspace.WorkspaceID = "POST /v1/webhooks", w.workspace(t).ID
	gone(w.Once(ctx, route, now, answer("route")))(t, "the record of another route")
	gone(w.Once(ctx, workspace, now, answer("workspace")))(t, "the record of another workspace")
	same(t, "answer of another route", string(found(w.Once(ctx, route, now, answer("x")))(t).Sealed), "route")
	same(t, "answer of another workspace", string(found(w.Once(ctx, workspace, now, answer("x")))(t).Sealed), "workspace")
	same(t, "the first answer", string(found(w.Once(ctx, record, now, answer("x")))(t).Sealed), start.Run.ID)
}

func testExpiry(t *testing.T, w *world, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	record := newRecord(wf.WorkspaceID, "expiry")
	record.ExpiresAt = now.Add(time.Hour)
	gone(w.Once(ctx, record, now, answer("first")))(t, "a new key")
	just := now.Add(time.Hour - time.Microsecond)
	same(t, "just before it expires", string(found(w.Once(ctx, record, just, answer("x")))(t).Sealed), "first")

	next := record
	next.Fingerprint, next.ExpiresAt = []byte("another body"), now.Add(2*time.Hour)
	gone(w.Once(ctx, next, now.Add(time.Hour), answer("second")))(t, "an expired key")
	next.Sealed = []byte("second")
	same(t, "the new record", found(w.Once(ctx, record, now.Add(time.Hour), answer("x")))(t), next)
}

func testFailedEffect(t *testing.T, w *world, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	start, record := newStart(t, wf, "node_1"), newRecord(wf.WorkspaceID, "failure")
	w.told.take()
	failure := errors.New("the effect failed")
	_, err := w.Once(ctx, record, now, func(ctx context.Context) ([]byte, error) {
		if _, err := starting(w, start)(ctx); err != nil {
			t.Errorf("start inside the effect: %v", err)
		}
		return nil, failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("the error of the effect became %v", err)
	}
	w.checkNotStarted(t, start)
	same(t, "records", w.count(t, `SELECT count(*) FROM idempotency WHERE key_hash = 'failure'`), 0)

	// An expired record is not lost to an effect that fails.
	gone(w.Once(ctx, record, now, answer("kept")))(t, "a new key")
	_, err = w.Once(ctx, record, record.ExpiresAt, func(context.Context) ([]byte, error) { return nil, failure })
	if !errors.Is(err, failure) {
		t.Errorf("the error of the effect became %v", err)
	}
	same(t, "answer", string(found(w.Once(ctx, record, now, answer("x")))(t).Sealed), "kept")
}

func testNested(t *testing.T, w *world, wf workflow.Workflow) {
	outside, ws := t.Context(), wf.WorkspaceID
	start, record, hook := newStart(t, wf, "node_1"), newRecord(ws, "nested"), newWebhook(ws)
	w.told.take()
	gone(w.Once(outside, record, clock.Now(), func(ctx context.Context) ([]byte, error) {
		if outcome, err := w.InsertWebhook(ctx, hook, plenty, newEntry(ws, "webhook.created", hook.ID)); err != nil || outcome != webhook.Done {
			t.Errorf("insert a webhook: %v, %v", outcome, err)
		}
		sealed, err := starting(w, start)(ctx)
		if err != nil {
			t.Errorf("start: %v", err)
		}
		inside, err := w.Run(ctx, ws, start.Run.ID)
		if err != nil || inside == nil || inside.ID != start.Run.ID {
			t.Errorf("inside the effect its run is %+v, %v", inside, err)
		}
		if _, err := w.Webhook(ctx, ws, hook.ID); err != nil {
			t.Errorf("inside the effect: %v", err)
		}
		if hidden, err := w.Run(outside, ws, start.Run.ID); err != nil || hidden != nil {
			t.Errorf("others see %+v, %v before the commit", hidden, err)
		}
		if told := w.told.take(); len(told.Wakes)+len(told.Started) > 0 {
			t.Errorf("told before the commit: %+v", told)
		}
		return sealed, err
	}))(t, "a new key")
	same(t, "run", found(w.Run(outside, ws, start.Run.ID))(t).Run, start.Run)
	same(t, "deliveries to the webhook of the same unit", w.deliveries(t, start.Event.ID), []string{hook.ID})
	told := w.told.take()
	same(t, "told wakes", mapped(told.Wakes, func(w run.Wake) string { return w.RunID }), []string{start.Run.ID})
	same(t, "told starts", told.Started, []string{ws})
}

func testConcurrentOnce(t *testing.T, w *world, wf workflow.Workflow) {
	ctx, now := t.Context(), clock.Now()
	for range 5 {
		before := w.countRuns(t, wf)
		w.told.take()
		record := newRecord(wf.WorkspaceID, newKey("").ID)
		starts := make([]run.Start, 16)
		for i := range starts {
			starts[i] = newStart(t, wf, "node_1")
		}
		sealed := make([]string, len(starts))
		first := together(t, len(starts), func(i int) (bool, error) {
			earlier, err := w.Once(ctx, record, now, starting(w, starts[i]))
			if earlier == nil {
				sealed[i] = starts[i].Run.ID
				return true, err
			}
			sealed[i] = string(earlier.Sealed)
			return false, err
		})
		same(t, "effects", first, 1)
		same(t, "runs", w.countRuns(t, wf)-before, 1)
		same(t, "told starts", len(w.told.take().Started), 1)
		for _, id := range sealed {
			same(t, "answer", id, sealed[0])
		}
		found(w.Run(ctx, wf.WorkspaceID, sealed[0]))(t)
	}
}
