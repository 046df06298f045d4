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

// doomed is a workflow with all that can hang on it.
type doomed struct {
	workflow.Workflow
	held, waiting, finished run.Run
	hook                    webhook.Webhook
}

func newDoomed(t *testing.T, w *world, workspaceID string) doomed {
	t.Helper()
	d := doomed{Workflow: w.workflow(t, workspaceID)}
	d.hook = w.webhook(t, workspaceID, func(h *webhook.Webhook) { h.WorkflowID = d.ID })
	d.held, d.waiting, d.finished = w.start(t, d.Workflow, "node_1"), w.start(t, d.Workflow, ""), w.start(t, d.Workflow, "node_1")
	step := newStep("pause", 1, run.StepRunning)
	attempt := failedAttempt(step)
	step.Attempt++
	decision := run.Decision{
		Rev: 1, Steps: []run.Step{step}, Attempts: []run.Attempt{attempt},
		Logs: []run.LogLine{{Path: step.Path, Attempt: 1, At: step.StartedAt, Level: "info", Message: "m"}},
	}
	answers(w.Commit(t.Context(), firstLease(d.held), d.held, decision))(t, "a step", true)
	w.finish(t, d.finished, run.Succeeded)
	w.told.take()
	return d
}

func (d doomed) runs() []run.Run { return []run.Run{d.held, d.waiting, d.finished} }

func testDeletion(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	everywhere := w.webhook(t, ws.ID, nil)

	t.Run("of an older state", func(t *testing.T) {
		made := w.workflow(t, ws.ID)
		change := renamed(made, "Renamed")
		answers(w.UpdateWorkflow(ctx, change))(t, "update", true)
		answers(w.DeleteWorkflow(ctx, made, clock.Now(), newEntry(ws.ID, "workflow.deleted", "stale")))(t, "delete", false)
		same(t, "workflow", found(w.Workflow(ctx, ws.ID, made.ID))(t), change.Workflow)
		same(t, "audit entries", w.audited(t, ws.ID, "stale"), 0)
		same(t, "told", w.told.take(), heard{})
	})

	d := newDoomed(t, w, ws.ID)
	other := newDoomed(t, w, ws.ID)
	w.deleteWorkflow(t, d.Workflow)

	t.Run("is told once", func(t *testing.T) {
		same(t, "told", w.told.take(), heard{Deleted: []string{d.ID}})
		answers(w.DeleteWorkflow(ctx, d.Workflow, clock.Now(), newEntry(ws.ID, "workflow.deleted", d.ID)))(t, "once more", false)
		same(t, "told", w.told.take(), heard{})
	})

	t.Run("hides everything at once", func(t *testing.T) { testHidden(t, w, d) })
	t.Run("voids every right to write", func(t *testing.T) { testVoid(t, w, d) })

	t.Run("keeps what is still to be sent", func(t *testing.T) {
		const pending = `SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND run_id = $2 AND status = 'pending'`
		same(t, "to its own webhook", w.count(t, pending, d.hook.ID, d.held.ID), 1)
		same(t, "to the webhook for all workflows", w.count(t, pending, everywhere.ID, d.held.ID), 1)
		same(t, "the webhook's row", w.count(t, `SELECT count(*) FROM webhooks WHERE id = $1`, d.hook.ID), 1)
	})

	t.Run("harms no other workflow", func(t *testing.T) { testAlive(t, w, other) })

	t.Run("of one of many", func(t *testing.T) {
		made := w.workflow(t, ws.ID)
		won := together(t, 16, func(int) (bool, error) {
			return w.DeleteWorkflow(t.Context(), made, clock.Now(), newEntry(ws.ID, "workflow.deleted", made.ID))
		})
		same(t, "winners", won, 1)
		same(t, "told", w.told.take(), heard{Deleted: []string{made.ID}})
	})
}

func testHidden(t *testing.T, w *world, d doomed) {
	ctx, ws := t.Context(), d.WorkspaceID
	gone(w.Workflow(ctx, ws, d.ID))(t, "workflow")
	gone(w.WorkflowHead(ctx, ws, d.ID))(t, "head")
	gone(w.Version(ctx, ws, d.ID, 1))(t, "version")
	empty(w.Versions(ctx, ws, d.ID, whole))(t, "versions")
	for _, item := range must(w.Workflows(ctx, ws, "", whole))(t).Items {
		if item.ID == d.ID {
			t.Error("the workflow is still listed")
		}
	}
	for _, status := range append(run.Statuses(), "") {
		empty(w.Runs(ctx, ws, d.ID, status, whole))(t, "runs "+string(status))
	}
	for _, r := range d.runs() {
		gone(w.Run(ctx, ws, r.ID))(t, "run")
		gone(w.Snapshot(ctx, r.ID))(t, "snapshot")
	}
	gone(w.Webhook(ctx, ws, d.hook.ID))(t, "its webhook")
	for _, hook := range must(w.Webhooks(ctx, ws, whole))(t).Items {
		if hook.ID == d.hook.ID {
			t.Error("the webhook is still listed")
		}
	}
}

func testVoid(t *testing.T, w *world, d doomed) {
	ctx := t.Context()
	for _, decision := range []run.Decision{
		{Steps: []run.Step{newStep("late", 9, run.StepRunning)}, Executing: []string{"late"}},
		{Steps: []run.Step{newStep("late", 9, run.StepWaiting)}, Release: true, WakeAt: clock.Now()},
		newFinish(t, d.held, run.Succeeded),
	} {
		answers(w.Commit(ctx, firstLease(d.held), d.held, decision))(t, "commit", false)
	}
	for _, r := range []run.Run{d.held, d.waiting} {
		_, ok, err := w.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
		answers(ok, err)(t, "activate", false)
		answers(w.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", false)
		same(t, "endings of a run of a deleted workflow", w.endings(t, r.ID), 0)
	}
	answers(w.StartRun(ctx, newStart(t, d.Workflow, "node_1")))(t, "start", false)
	answers(w.UpdateWorkflow(ctx, renamed(d.Workflow, "x")))(t, "update", false)
	hook := newWebhook(d.WorkspaceID)
	hook.WorkflowID = d.ID
	answers(w.InsertWebhook(ctx, hook, plenty, newEntry(d.WorkspaceID, "x", "x")))(t, "a webhook for it", webhook.NoWorkflow)
	d.hook.UpdatedAt = d.hook.UpdatedAt.Add(time.Second)
	d.hook.WorkflowID = ""
	answers(w.UpdateWebhook(ctx, d.hook, d.hook.CreatedAt, newEntry(d.WorkspaceID, "x", "x")))(t, "its webhook", webhook.Changed)
	answers(w.DeleteWebhook(ctx, d.WorkspaceID, d.hook.ID, clock.Now(), newEntry(d.WorkspaceID, "x", "x")))(t, "delete its webhook", false)
	same(t, "steps", w.count(t, `SELECT count(*) FROM steps WHERE run_id = $1 AND path = 'late'`, d.held.ID), 0)
	same(t, "told", w.told.take(), heard{})
}

// testAlive checks that nothing of a workflow is missing, and that its runs go
// on to their end.
func testAlive(t *testing.T, w *world, d doomed) {
	ctx, ws := t.Context(), d.WorkspaceID
	same(t, "workflow", found(w.Workflow(ctx, ws, d.ID))(t), d.Workflow)
	same(t, "runs", len(must(w.Runs(ctx, ws, d.ID, "", whole))(t).Items), 3)
	held := found(w.Run(ctx, ws, d.held.ID))(t)
	same(t, "steps", len(held.Steps), 1)
	same(t, "attempts", len(held.Attempts), 1)
	same(t, "webhook", found(w.Webhook(ctx, ws, d.hook.ID))(t), d.hook)
	lease, ok, err := w.Activate(ctx, run.Wake{RunID: d.waiting.ID, Epoch: 1}, "node_2")
	answers(ok, err)(t, "activate", true)
	answers(w.Commit(ctx, lease, d.waiting, newFinish(t, d.waiting, run.Failed)))(t, "commit", true)
	answers(w.CancelRun(ctx, newCancellation(t, d.held)))(t, "cancel", true)
	w.told.take()
}

func testPurge(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)

	t.Run("of nothing", func(t *testing.T) {
		answers(w.PurgeDeleted(ctx, 2))(t, "deleted workflows", false)
		answers(w.PurgeIdempotency(ctx, clock.Now(), 2))(t, "saved answers", false)
	})

	t.Run("of deleted workflows", func(t *testing.T) {
		kept, first, second := newDoomed(t, w, ws.ID), newDoomed(t, w, ws.ID), newDoomed(t, w, ws.ID)
		hook := w.webhook(t, ws.ID, nil)
		for range 4 {
			w.start(t, first.Workflow, "")
		}
		w.deleteWorkflow(t, first.Workflow)
		w.deleteWorkflow(t, second.Workflow)
		toSend := w.count(t, `SELECT count(*) FROM deliveries`)
		if toSend == 0 {
			t.Fatal("nothing is to be sent")
		}
		same(t, "runs to purge", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id <> $1`, kept.ID), 10)
		purgeAll(t, w, 2, func() (bool, error) { return w.PurgeDeleted(ctx, 2) })
		purgeAll(t, w, 2, func() (bool, error) { return w.PurgeRemains(ctx, 2) })
		answers(w.PurgeDeleted(ctx, 2))(t, "once all is gone", false)
		for table, key := range map[string]string{"runs": "workflow_id", "run_queue": "workflow_id", "workflow_versions": "workflow_id", "workflows": "id"} {
			same(t, "rows left in "+table, w.count(t, `SELECT count(*) FROM `+table+` WHERE `+key+` <> $1`, kept.ID), 0)
		}
		same(t, "steps of other runs", w.count(t, `SELECT count(*) FROM steps WHERE run_id <> $1`, kept.held.ID), 0)
		same(t, "lines of other runs", w.count(t, `SELECT count(*) FROM step_logs WHERE run_id <> $1`, kept.held.ID), 0)
		same(t, "attempts of other runs", w.count(t, `SELECT count(*) FROM step_attempts WHERE run_id <> $1`, kept.held.ID), 0)
		same(t, "deliveries", w.count(t, `SELECT count(*) FROM deliveries`), toSend)
		same(t, "webhook", found(w.Webhook(ctx, ws.ID, hook.ID))(t), hook)
		testAlive(t, w, kept)
	})

	t.Run("of old runs", func(t *testing.T) { testPurgeRuns(t, newWorld(t, w.open)) })
	t.Run("of saved answers", func(t *testing.T) { testPurgeIdempotency(t, w, ws.ID) })
	t.Run("of what is old", func(t *testing.T) { testPurgeOld(t, newWorld(t, w.open)) })
}

func testPurgeIdempotency(t *testing.T, w *world, workspaceID string) {
	ctx, now := t.Context(), clock.Now()
	save := func(key string, expires time.Time) {
		record := idempotency.Record{WorkspaceID: workspaceID, Route: "POST /x", KeyHash: key, Fingerprint: []byte("f"), ExpiresAt: expires}
		gone(w.Once(ctx, record, now, answer("saved")))(t, "the record of a new key")
	}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		save(key, now.Add(time.Minute))
	}
	save("at the edge", now.Add(time.Hour))
	save("later", now.Add(time.Hour+time.Microsecond))
	for more, rounds := true, 0; more; rounds++ {
		if more = must(w.PurgeIdempotency(ctx, now.Add(time.Hour), 4))(t); rounds > 2 {
			t.Fatal("the purge does not end")
		}
		if left := w.count(t, `SELECT count(*) FROM idempotency`); left != max(1, 7-4*(rounds+1)) {
			t.Errorf("after %d batches %d are left", rounds+1, left)
		}
	}
	same(t, "left", w.count(t, `SELECT count(*) FROM idempotency WHERE key_hash = 'later'`), 1)
}

func testPurgeOld(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	left := func(table string) int { return w.count(t, `SELECT count(*) FROM `+table) }
	live, early, late := w.webhook(t, ws.ID, nil), w.webhook(t, ws.ID, nil), w.webhook(t, ws.ID, nil)
	began := clock.Now()
	drop := func(hook webhook.Webhook, at time.Time) {
		t.Helper()
		answers(w.DeleteWebhook(ctx, ws.ID, hook.ID, at, newEntry(ws.ID, "webhook.deleted", hook.ID)))(t, "delete", true)
	}
	drop(early, began.Add(-time.Microsecond))
	starts := make([]run.Start, 7)
	for i := range starts {
		starts[i] = newStart(t, wf, "node_1")
		starts[i].Event.At = began.Add(time.Duration(i) * time.Second)
		// Other tests of this process may have made ids of times to come, and ids never go back.
		starts[i].Event.ID = uid.Derived(uid.Event, starts[i].Event.At, starts[i].Run.ID)
		answers(w.StartRun(ctx, starts[i]))(t, "start", true)
	}
	cut := starts[5].Event.At // what is exactly as old stays
	drop(late, cut)

	entries := left("audit")
	answers(w.PurgeOld(ctx, began.Add(-time.Hour), began.Add(-time.Hour), 3))(t, "of what is not old", false)
	same(t, "events", left("events"), 7)
	for more, rounds := true, 1; more; rounds++ {
		more = must(w.PurgeOld(ctx, cut, began.Add(-time.Hour), 3))(t)
		if want := max(2, 7-3*rounds); left("events") != want || rounds > 3 {
			t.Fatalf("after %d batches of 3 there are %d events, want %d", rounds, left("events"), want)
		}
	}
	same(t, "events", collect(t, w, `SELECT id FROM events ORDER BY seq`, nil, text), []string{starts[5].Event.ID, starts[6].Event.ID})
	for i, start := range starts {
		want := []string{live.ID}
		if i < 5 {
			want = nil
		}
		same(t, "deliveries", w.deliveries(t, start.Event.ID), want)
	}
	same(t, "webhooks", collect(t, w, `SELECT id FROM webhooks ORDER BY id`, nil, text), []string{live.ID, late.ID})
	same(t, "audit entries", left("audit"), entries)

	for more := true; more; {
		more = must(w.PurgeOld(ctx, began.Add(-time.Hour), clock.Now().Add(time.Hour), 3))(t)
	}
	same(t, "audit entries", left("audit"), 0)
	same(t, "events", left("events"), 2)
	same(t, "runs", left("runs"), len(starts))
	same(t, "webhook", found(w.Webhook(ctx, ws.ID, live.ID))(t), live)
	same(t, "usage", must(w.UsageCurrent(ctx, ws.ID))(t).Webhooks, 1)
}
