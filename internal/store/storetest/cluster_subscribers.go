package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testSubscriberCache checks that all nodes see a change of the subscribers at
// once, whichever node made it, even if they had cached others a moment before.
func testSubscriberCache(t *testing.T, tm *cluster) {
	ctx, ws, first, second := t.Context(), tm.workspace(t), tm.nodes[0], tm.nodes[1]
	tm.limit.Store(1000)
	wf := tm.workflow(t, ws.ID)
	check := func(what string, deliveries, pendingEvents int) {
		t.Helper()
		for _, m := range []*clusterNode{second, first, second} {
			r := m.start(t, wf, m.node)
			equal(t, what+": deliveries", tm.count(t, `SELECT count(*) FROM deliveries WHERE run_id = $1`, r.ID), deliveries)
			equal(t, what+": pending events", tm.count(t, `SELECT count(*) FROM pending_triggers p JOIN events e ON e.id = p.event_id WHERE e.run_id = $1`, r.ID), pendingEvents)
			returns(m.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "finish", true)
		}
	}
	check("no subscribers", 0, 0)
	hook := first.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunStarted} })
	check("a webhook", 1, 0)
	chain := first.withTriggers(t, ws.ID, eventTrigger("a", `"run.started"`))
	check("and a trigger", 1, 1)

	off := hook
	off.Enabled, off.UpdatedAt = false, clock.Now()
	returns(second.Webhooks.UpdateWebhook(ctx, off, hook.UpdatedAt, newEntry(ws.ID, "webhook.updated", hook.ID)))(t, "disable", webhook.Done)
	check("only the trigger", 0, 1)
	returns(second.Workflows.UpdateWorkflow(ctx, withNewTriggers(chain, workflow.Paused, eventTrigger("a", `"run.started"`))))(t, "pause", true)
	check("no subscribers again", 0, 0)

	t.Run("of a transaction that was rolled back", func(t *testing.T) {
		failed := errors.New("rolled back")
		_, err := second.Idempotency.WithIdempotencyKey(ctx, idempotency.Record{WorkspaceID: ws.ID, Route: "r", KeyHash: "k", Fingerprint: []byte("f"), ExpiresAt: later()}, clock.Now(), func(ctx context.Context, tx txn.Tx) ([]byte, error) {
			made := newWebhook(ws.ID)
			if _, err := second.Webhooks.In(tx).InsertWebhook(ctx, made, noLimit, newEntry(ws.ID, "webhook.created", made.ID)); err != nil {
				return nil, err
			}
			if _, err := second.Runs.In(tx).StartRun(ctx, newStart(t, wf, "node_2")); err != nil {
				return nil, err
			}
			return nil, failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		check("no subscribers", 0, 0)
	})
	t.Run("a webhook that is deleted", func(t *testing.T) {
		made := first.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunStarted} })
		check("before", 1, 0)
		returns(first.Webhooks.DeleteWebhook(ctx, ws.ID, made.ID, clock.Now(), newEntry(ws.ID, "webhook.deleted", made.ID)))(t, "delete", true)
		check("after", 0, 0)
	})
}

// testStaleExpectations checks that a transaction whose expectation fails leaves
// nothing behind.
func testStaleExpectations(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	stale := newStart(t, wf, "node_1")
	stale.Revision++
	returns(first.Runs.StartRun(ctx, stale))(t, "a start of another revision", false)
	missing(tm.Runs.Run(ctx, ws.ID, stale.Run.ID))(t, "its run")
	tm.checkLoad(t, ws.ID, 0, 0)

	r := tm.start(t, wf, "node_1")
	returns(first.Commit(ctx, run.Lease{RunID: r.ID, Epoch: 7}, r, newFinish(t, r, run.Succeeded)))(t, "an end under a stale lease", false)
	equal(t, "status", found(tm.Runs.Run(ctx, ws.ID, r.ID))(t).Status, run.Running)
	tm.checkLoad(t, ws.ID, 1, 0)
	returns(first.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "the end", true)
	equal(t, "ends", tm.count(t, `SELECT count(*) FROM events WHERE run_id = $1 AND type = 'run.succeeded'`, r.ID), 1)
	tm.checkLoad(t, ws.ID, 0, 0)
}
