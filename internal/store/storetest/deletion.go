package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// workflowData is a workflow with everything that can belong to one.
type workflowData struct {
	workflow.Workflow
	owned, waiting, finished run.Run
	hook                     webhook.Webhook
}

func newWorkflowData(t *testing.T, w *harness, workspaceID string) workflowData {
	t.Helper()
	d := workflowData{Workflow: w.workflow(t, workspaceID)}
	d.hook = w.webhook(t, workspaceID, func(h *webhook.Webhook) { h.WorkflowID = d.ID })
	d.owned, d.waiting, d.finished = w.start(t, d.Workflow, "node_1"), w.start(t, d.Workflow, ""), w.start(t, d.Workflow, "node_1")
	step := newStep("pause", 1, run.StepRunning)
	attempt := failedAttempt(step)
	step.Attempt++
	decision := run.Decision{
		Rev: 1, Steps: []run.Step{step}, Attempts: []run.Attempt{attempt},
		Logs: []run.LogLine{{Path: step.Path, Attempt: 1, At: step.StartedAt, Level: "info", Message: "m"}},
	}
	returns(w.Commit(t.Context(), firstLease(d.owned), d.owned, decision))(t, "a step", true)
	w.finish(t, d.finished, run.Succeeded)
	w.notified.take()
	return d
}

func (d workflowData) runs() []run.Run { return []run.Run{d.owned, d.waiting, d.finished} }

func testDeletion(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	everywhere := w.webhook(t, ws.ID, nil)

	t.Run("of a stale revision", func(t *testing.T) {
		made := w.workflow(t, ws.ID)
		change := renamed(made, "Renamed")
		returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "update", true)
		returns(w.Workflows.DeleteWorkflow(ctx, made, clock.Now(), newEntry(ws.ID, "workflow.deleted", "stale")))(t, "delete", false)
		equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t), change.Workflow)
		equal(t, "audit entries", w.audited(t, ws.ID, "stale"), 0)
		equal(t, "notifications", w.notified.take(), notifications{})
	})

	d := newWorkflowData(t, w, ws.ID)
	other := newWorkflowData(t, w, ws.ID)
	w.deleteWorkflow(t, d.Workflow)

	t.Run("is notified once", func(t *testing.T) {
		equal(t, "notifications", w.notified.take(), notifications{Deleted: []string{d.ID}})
		returns(w.Workflows.DeleteWorkflow(ctx, d.Workflow, clock.Now(), newEntry(ws.ID, "workflow.deleted", d.ID)))(t, "again", false)
		equal(t, "notifications", w.notified.take(), notifications{})
	})

	t.Run("hides everything at once", func(t *testing.T) { testHidden(t, w, d) })
	t.Run("voids every lease", func(t *testing.T) { testLeasesVoid(t, w, d) })

	t.Run("keeps pending deliveries", func(t *testing.T) {
		const pending = `SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND run_id = $2 AND status = 'pending'`
		equal(t, "to its own webhook", w.count(t, pending, d.hook.ID, d.owned.ID), 1)
		equal(t, "to the webhook for all workflows", w.count(t, pending, everywhere.ID, d.owned.ID), 1)
		equal(t, "the webhook's row", w.count(t, `SELECT count(*) FROM webhooks WHERE id = $1`, d.hook.ID), 1)
	})

	t.Run("does not affect other workflows", func(t *testing.T) { testUnaffected(t, w, other) })

	t.Run("one of many concurrent deletions wins", func(t *testing.T) {
		made := w.workflow(t, ws.ID)
		won := concurrently(t, 16, func(int) (bool, error) {
			return w.Workflows.DeleteWorkflow(t.Context(), made, clock.Now(), newEntry(ws.ID, "workflow.deleted", made.ID))
		})
		equal(t, "winners", won, 1)
		equal(t, "notifications", w.notified.take(), notifications{Deleted: []string{made.ID}})
	})
}

func testHidden(t *testing.T, w *harness, d workflowData) {
	ctx, ws := t.Context(), d.WorkspaceID
	missing(w.Workflows.Workflow(ctx, ws, d.ID))(t, "workflow")
	missing(w.Runs.WorkflowRef(ctx, ws, d.ID))(t, "head")
	missing(w.Workflows.Version(ctx, ws, d.ID, 1))(t, "version")
	empty(w.Workflows.Versions(ctx, ws, d.ID, fullPage))(t, "versions")
	for _, item := range must(w.Workflows.Workflows(ctx, ws, workflow.Filter{}, fullPage))(t).Items {
		if item.ID == d.ID {
			t.Error("the workflow is still listed")
		}
	}
	for _, status := range append(run.Statuses(), "") {
		empty(w.Runs.Runs(ctx, ws, d.ID, status, fullPage))(t, "runs "+string(status))
	}
	for _, r := range d.runs() {
		missing(w.Runs.Run(ctx, ws, r.ID))(t, "run")
		missing(w.Leases.Snapshot(ctx, r.ID))(t, "snapshot")
	}
	missing(w.Webhooks.Webhook(ctx, ws, d.hook.ID))(t, "its webhook")
	for _, hook := range must(w.Webhooks.Webhooks(ctx, ws, fullPage))(t).Items {
		if hook.ID == d.hook.ID {
			t.Error("the webhook is still listed")
		}
	}
}

func testLeasesVoid(t *testing.T, w *harness, d workflowData) {
	ctx := t.Context()
	for _, decision := range []run.Decision{
		{Steps: []run.Step{newStep("late", 9, run.StepRunning)}, Executing: []string{"late"}},
		{Steps: []run.Step{newStep("late", 9, run.StepWaiting)}, Release: true, WakeAt: clock.Now()},
		newFinish(t, d.owned, run.Succeeded),
	} {
		returns(w.Commit(ctx, firstLease(d.owned), d.owned, decision))(t, "commit", false)
	}
	for _, r := range []run.Run{d.owned, d.waiting} {
		_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
		returns(ok, err)(t, "activate", false)
		returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", false)
		equal(t, "endings of a run of a deleted workflow", w.endings(t, r.ID), 0)
	}
	returns(w.Runs.StartRun(ctx, newStart(t, d.Workflow, "node_1")))(t, "start", false)
	returns(w.Workflows.UpdateWorkflow(ctx, renamed(d.Workflow, "x")))(t, "update", false)
	hook := newWebhook(d.WorkspaceID)
	hook.WorkflowID = d.ID
	returns(w.Webhooks.InsertWebhook(ctx, hook, noLimit, newEntry(d.WorkspaceID, "x", "x")))(t, "a webhook for it", webhook.NoWorkflow)
	d.hook.UpdatedAt = d.hook.UpdatedAt.Add(time.Second)
	d.hook.WorkflowID = ""
	returns(w.Webhooks.UpdateWebhook(ctx, d.hook, d.hook.CreatedAt, newEntry(d.WorkspaceID, "x", "x")))(t, "its webhook", webhook.Changed)
	returns(w.Webhooks.DeleteWebhook(ctx, d.WorkspaceID, d.hook.ID, clock.Now(), newEntry(d.WorkspaceID, "x", "x")))(t, "delete its webhook", false)
	equal(t, "steps", w.count(t, `SELECT count(*) FROM steps WHERE run_id = $1 AND path = 'late'`, d.owned.ID), 0)
	equal(t, "notifications", w.notified.take(), notifications{})
}

// testUnaffected checks that nothing of a workflow is missing and that its runs
// can finish.
func testUnaffected(t *testing.T, w *harness, d workflowData) {
	ctx, ws := t.Context(), d.WorkspaceID
	equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws, d.ID))(t), d.Workflow)
	equal(t, "runs", len(must(w.Runs.Runs(ctx, ws, d.ID, "", fullPage))(t).Items), 3)
	owned := found(w.Runs.Run(ctx, ws, d.owned.ID))(t)
	equal(t, "steps", len(owned.Steps), 1)
	equal(t, "attempts", len(owned.Attempts), 1)
	equal(t, "webhook", found(w.Webhooks.Webhook(ctx, ws, d.hook.ID))(t), d.hook)
	lease, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: d.waiting.ID, Epoch: 1}, "node_2")
	returns(ok, err)(t, "activate", true)
	returns(w.Commit(ctx, lease, d.waiting, newFinish(t, d.waiting, run.Failed)))(t, "commit", true)
	returns(w.Runs.CancelRun(ctx, newCancellation(t, d.owned)))(t, "cancel", true)
	w.notified.take()
}

func testPurge(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)

	t.Run("of an empty store", func(t *testing.T) {
		returns(w.Workflows.PurgeDeleted(ctx, 2))(t, "deleted workflows", false)
		returns(w.Idempotency.PurgeIdempotency(ctx, clock.Now(), 2))(t, "idempotency records", false)
	})

	t.Run("of deleted workflows", func(t *testing.T) {
		kept, first, second := newWorkflowData(t, w, ws.ID), newWorkflowData(t, w, ws.ID), newWorkflowData(t, w, ws.ID)
		hook := w.webhook(t, ws.ID, nil)
		for range 4 {
			w.start(t, first.Workflow, "")
		}
		w.deleteWorkflow(t, first.Workflow)
		w.deleteWorkflow(t, second.Workflow)
		toSend := w.count(t, `SELECT count(*) FROM deliveries`)
		if toSend == 0 {
			t.Fatal("there are no pending deliveries")
		}
		equal(t, "runs to purge", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id <> $1`, kept.ID), 10)
		purgeAll(t, w, 2, func() (bool, error) { return w.Workflows.PurgeDeleted(ctx, 2) })
		purgeAll(t, w, 2, func() (bool, error) { return w.Runs.PurgeRemains(ctx, 2) })
		returns(w.Workflows.PurgeDeleted(ctx, 2))(t, "once all is purged", false)
		for table, key := range map[string]string{"runs": "workflow_id", "run_queue": "workflow_id", "workflow_versions": "workflow_id", "workflows": "id"} {
			equal(t, "rows left in "+table, w.count(t, `SELECT count(*) FROM `+table+` WHERE `+key+` <> $1`, kept.ID), 0)
		}
		equal(t, "steps of other runs", w.count(t, `SELECT count(*) FROM steps WHERE run_id <> $1`, kept.owned.ID), 0)
		equal(t, "lines of other runs", w.count(t, `SELECT count(*) FROM step_logs WHERE run_id <> $1`, kept.owned.ID), 0)
		equal(t, "attempts of other runs", w.count(t, `SELECT count(*) FROM step_attempts WHERE run_id <> $1`, kept.owned.ID), 0)
		equal(t, "deliveries", w.count(t, `SELECT count(*) FROM deliveries`), toSend)
		equal(t, "webhook", found(w.Webhooks.Webhook(ctx, ws.ID, hook.ID))(t), hook)
		testUnaffected(t, w, kept)
	})

	t.Run("of old runs", func(t *testing.T) { testPurgeRuns(t, newHarness(t, w.open)) })
	t.Run("of idempotency records", func(t *testing.T) { testPurgeIdempotency(t, w, ws.ID) })
	t.Run("of old rows", func(t *testing.T) { testPurgeOld(t, newHarness(t, w.open)) })
}

func testPurgeIdempotency(t *testing.T, w *harness, workspaceID string) {
	ctx, now := t.Context(), clock.Now()
	save := func(key string, expires time.Time) {
		record := idempotency.Record{WorkspaceID: workspaceID, Route: "POST /x", KeyHash: key, Fingerprint: []byte("f"), ExpiresAt: expires}
		missing(w.Idempotency.WithIdempotencyKey(ctx, record, now, respond("saved")))(t, "the record of a new key")
	}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		save(key, now.Add(time.Minute))
	}
	save("at the edge", now.Add(time.Hour))
	save("later", now.Add(time.Hour+time.Microsecond))
	for more, rounds := true, 0; more; rounds++ {
		if more = must(w.Idempotency.PurgeIdempotency(ctx, now.Add(time.Hour), 4))(t); rounds > 2 {
			t.Fatal("the purge does not end")
		}
		if left := w.count(t, `SELECT count(*) FROM idempotency`); left != max(1, 7-4*(rounds+1)) {
			t.Errorf("after %d batches %d are left", rounds+1, left)
		}
	}
	equal(t, "left", w.count(t, `SELECT count(*) FROM idempotency WHERE key_hash = 'later'`), 1)
}

func testPurgeOld(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	left := func(table string) int { return w.count(t, `SELECT count(*) FROM `+table) }
	live, early, late := w.webhook(t, ws.ID, nil), w.webhook(t, ws.ID, nil), w.webhook(t, ws.ID, nil)
	began := clock.Now()
	drop := func(hook webhook.Webhook, at time.Time) {
		t.Helper()
		returns(w.Webhooks.DeleteWebhook(ctx, ws.ID, hook.ID, at, newEntry(ws.ID, "webhook.deleted", hook.ID)))(t, "delete", true)
	}
	drop(early, began.Add(-time.Microsecond))
	starts := make([]run.Start, 7)
	for i := range starts {
		starts[i] = newStart(t, wf, "node_1")
		starts[i].Event.At = began.Add(time.Duration(i) * time.Second)
		// Other tests of this process may have created ids with later times, and
		// ids never go back.
		starts[i].Event.ID = uid.Derived(uid.Event, starts[i].Event.At, starts[i].Run.ID)
		returns(w.Runs.StartRun(ctx, starts[i]))(t, "start", true)
	}
	cut := starts[5].Event.At // rows of exactly that age stay
	drop(late, cut)

	entries := left("audit")
	returns(w.Events.PurgeOld(ctx, began.Add(-time.Hour), 3))(t, "of what is not old", false)
	returns(w.Audit.PurgeAudit(ctx, began.Add(-time.Hour), 3))(t, "of entries that are not old", false)
	equal(t, "events", left("events"), 7)
	for more, rounds := true, 1; more; rounds++ {
		more = must(w.Events.PurgeOld(ctx, cut, 3))(t)
		if want := max(2, 7-3*rounds); left("events") != want || rounds > 3 {
			t.Fatalf("after %d batches of 3 there are %d events, want %d", rounds, left("events"), want)
		}
	}
	equal(t, "events", collect(t, w, `SELECT id FROM events ORDER BY seq`, nil, text), []string{starts[5].Event.ID, starts[6].Event.ID})
	for i, start := range starts {
		want := []string{live.ID}
		if i < 5 {
			want = nil
		}
		equal(t, "deliveries", w.deliveries(t, start.Event.ID), want)
	}
	equal(t, "webhooks", collect(t, w, `SELECT id FROM webhooks ORDER BY id`, nil, text), []string{live.ID, late.ID})
	equal(t, "audit entries", left("audit"), entries)

	for more := true; more; {
		more = must(w.Audit.PurgeAudit(ctx, clock.Now().Add(time.Hour), 3))(t)
	}
	equal(t, "audit entries", left("audit"), left("audit_chains")) // the last of each
	equal(t, "events", left("events"), 2)
	equal(t, "runs", left("runs"), len(starts))
	equal(t, "webhook", found(w.Webhooks.Webhook(ctx, ws.ID, live.ID))(t), live)
	equal(t, "usage", must(w.Usage.UsageCurrent(ctx, ws.ID))(t).Webhooks, 1)
}
