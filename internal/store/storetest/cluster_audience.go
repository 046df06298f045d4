package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Whoever hears of events is known to all nodes at once, whichever of them has
// changed it, and also when it knew another audience a moment ago.
func testAudience(t *testing.T, tm *team) {
	ctx, ws, first, second := t.Context(), tm.workspace(t), tm.nodes[0], tm.nodes[1]
	tm.limit.Store(1000)
	wf := tm.workflow(t, ws.ID)
	heard := func(what string, deliveries, occasions int) {
		t.Helper()
		for _, m := range []*member{second, first, second} {
			r := m.start(t, wf, m.node)
			same(t, what+": deliveries", tm.count(t, `SELECT count(*) FROM deliveries WHERE run_id = $1`, r.ID), deliveries)
			same(t, what+": occasions", tm.count(t, `SELECT count(*) FROM occasions o JOIN events e ON e.id = o.event_id WHERE e.run_id = $1`, r.ID), occasions)
			answers(m.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "finish", true)
		}
	}
	heard("nobody", 0, 0)
	hook := first.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunStarted} })
	heard("a webhook", 1, 0)
	chain := first.armed(t, ws.ID, onEvents("a", `"run.started"`))
	heard("and a trigger", 1, 1)

	off := hook
	off.Enabled, off.UpdatedAt = false, clock.Now()
	answers(second.UpdateWebhook(ctx, off, hook.UpdatedAt, newEntry(ws.ID, "webhook.updated", hook.ID)))(t, "disable", webhook.Done)
	heard("only the trigger", 0, 1)
	answers(second.UpdateWorkflow(ctx, rearmed(chain, workflow.Paused, onEvents("a", `"run.started"`))))(t, "pause", true)
	heard("nobody again", 0, 0)

	t.Run("of a unit that came to nothing", func(t *testing.T) {
		failed := errors.New("it came to nothing")
		_, err := second.Once(ctx, idempotency.Record{WorkspaceID: ws.ID, Route: "r", KeyHash: "k", Fingerprint: []byte("f"), ExpiresAt: later()}, clock.Now(), func(ctx context.Context) ([]byte, error) {
			made := newWebhook(ws.ID)
			if _, err := second.InsertWebhook(ctx, made, plenty, newEntry(ws.ID, "webhook.created", made.ID)); err != nil {
				return nil, err
			}
			if _, err := second.StartRun(ctx, newStart(t, wf, "node_2")); err != nil {
				return nil, err
			}
			return nil, failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		heard("nobody", 0, 0)
	})
	t.Run("a webhook that is deleted", func(t *testing.T) {
		made := first.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunStarted} })
		heard("before", 1, 0)
		answers(first.DeleteWebhook(ctx, ws.ID, made.ID, clock.Now(), newEntry(ws.ID, "webhook.deleted", made.ID)))(t, "delete", true)
		heard("after", 0, 0)
	})
}

// What a unit expected and did not find leaves nothing behind.
func testUnexpected(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	stale := newStart(t, wf, "node_1")
	stale.Revision++
	answers(first.StartRun(ctx, stale))(t, "a start of another revision", false)
	gone(tm.Run(ctx, ws.ID, stale.Run.ID))(t, "its run")
	tm.loaded(t, ws.ID, 0, 0)

	r := tm.start(t, wf, "node_1")
	answers(first.Commit(ctx, run.Lease{RunID: r.ID, Epoch: 7}, r, newFinish(t, r, run.Succeeded)))(t, "an end by somebody else", false)
	same(t, "status", found(tm.Run(ctx, ws.ID, r.ID))(t).Status, run.Running)
	tm.loaded(t, ws.ID, 1, 0)
	answers(first.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "the end", true)
	same(t, "ends", tm.count(t, `SELECT count(*) FROM events WHERE run_id = $1 AND type = 'run.succeeded'`, r.ID), 1)
	tm.loaded(t, ws.ID, 0, 0)
}
