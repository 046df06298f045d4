package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// belongings is all that a workspace sees of itself.
type belongings struct {
	Workspace auth.Workspace
	Keys      []auth.Key
	Workflow  workflow.Workflow
	Versions  []workflow.Version
	Runs      []run.Item
	Details   []run.Detail
	Webhooks  []webhook.Webhook
	Audit     []audit.Entry
	Days      []usage.Day
	Current   usage.Current
	Pending   int
}

func (w *world) belongings(t *testing.T, d doomed) belongings {
	t.Helper()
	ctx, ws := t.Context(), d.WorkspaceID
	b := belongings{
		Workspace: found(w.Workspace(ctx, ws))(t), Keys: must(w.Keys(ctx, ws, whole))(t).Items,
		Workflow: found(w.Workflow(ctx, ws, d.ID))(t), Versions: must(w.Versions(ctx, ws, d.ID, whole))(t).Items,
		Runs: must(w.Runs(ctx, ws, d.ID, "", whole))(t).Items, Webhooks: must(w.Webhooks(ctx, ws, whole))(t).Items,
		Audit: must(w.AuditEntries(ctx, ws, audit.Filter{}, whole))(t).Items,
		Days:  must(w.UsageDays(ctx, ws, ""))(t), Current: must(w.UsageCurrent(ctx, ws))(t),
		Pending: w.count(t, `SELECT count(*) FROM deliveries WHERE workspace_id = $1`, ws),
	}
	for _, r := range d.runs() {
		b.Details = append(b.Details, found(w.Run(ctx, ws, r.ID))(t))
	}
	return b
}

func testTenants(t *testing.T, w *world) {
	owner, stranger := w.workspace(t), w.workspace(t)
	d := newDoomed(t, w, owner.ID)
	w.webhook(t, stranger.ID, nil)
	date := usage.Key{WorkspaceID: owner.ID, Date: "2026-01-01"}
	if err := w.AddUsage(t.Context(), map[usage.Key]usage.Day{date: {Requests: 1}}); err != nil {
		t.Fatal(err)
	}
	before := w.belongings(t, d)
	w.told.take()

	t.Run("cannot read each other", func(t *testing.T) { readAsStranger(t, w, stranger.ID, d, before) })
	t.Run("cannot change each other", func(t *testing.T) { writeAsStranger(t, w, stranger.ID, d, before) })

	same(t, "the owner's belongings", w.belongings(t, d), before)
	same(t, "told", w.told.take(), heard{})
	same(t, "deliveries to the stranger", w.count(t, `SELECT count(*) FROM deliveries WHERE workspace_id = $1`, stranger.ID), 0)
	same(t, "audit entries of the stranger", w.audited(t, stranger.ID, "attempt"), 0)
}

func readAsStranger(t *testing.T, w *world, stranger string, d doomed, owned belongings) {
	ctx := t.Context()
	gone(w.Workflow(ctx, stranger, d.ID))(t, "workflow")
	gone(w.WorkflowHead(ctx, stranger, d.ID))(t, "head of a workflow")
	gone(w.Version(ctx, stranger, d.ID, 1))(t, "version")
	gone(w.Run(ctx, stranger, d.held.ID))(t, "run")
	gone(w.Key(ctx, stranger, owned.Keys[0].ID))(t, "key")
	gone(w.Webhook(ctx, stranger, d.hook.ID))(t, "webhook")
	// The position of a list may be a row of somebody else's.
	for _, page := range []paging.Request{whole, {Limit: 1}, {Limit: 1000, After: "~"}} {
		empty(w.Versions(ctx, stranger, d.ID, page))(t, "versions")
		empty(w.Workflows(ctx, stranger, "", page))(t, "workflows")
		empty(w.Workflows(ctx, stranger, workflow.Draft, page))(t, "drafts")
		for _, status := range append(run.Statuses(), "") {
			empty(w.Runs(ctx, stranger, d.ID, status, page))(t, "runs "+string(status))
		}
		empty(w.AuditEntries(ctx, stranger, audit.Filter{TargetID: d.ID}, page))(t, "audit entries")
		empty(w.AuditEntries(ctx, stranger, audit.Filter{Action: "workflow.created"}, page))(t, "audit entries")
	}
	for _, key := range must(w.Keys(ctx, stranger, whole))(t).Items {
		same(t, "workspace of a key", key.WorkspaceID, stranger)
	}
	for _, hook := range must(w.Webhooks(ctx, stranger, whole))(t).Items {
		same(t, "workspace of a webhook", hook.WorkspaceID, stranger)
	}
	same(t, "usage by day", must(w.UsageDays(ctx, stranger, ""))(t), nil)
	same(t, "usage", must(w.UsageCurrent(ctx, stranger))(t), usage.Current{Webhooks: 1, APIKeys: 1})
}

func writeAsStranger(t *testing.T, w *world, stranger string, d doomed, owned belongings) {
	ctx, now := t.Context(), clock.Now()
	entry := func() audit.Entry { return newEntry(stranger, "attempt", "attempt") }
	wf := d.Workflow
	wf.WorkspaceID = stranger
	answers(w.UpdateWorkflow(ctx, renamed(wf, "x")))(t, "update a workflow", false)
	answers(w.UpdateWorkflow(ctx, redefined(wf, "x")))(t, "make a version", false)
	answers(w.DeleteWorkflow(ctx, wf, now, entry()))(t, "delete a workflow", false)
	answers(w.StartRun(ctx, newStart(t, wf, "node_1")))(t, "start a run", false)
	r := d.held
	r.WorkspaceID = stranger
	answers(w.CancelRun(ctx, newCancellation(t, r)))(t, "cancel a run", false)
	answers(w.RevokeKey(ctx, stranger, owned.Keys[0].ID, now, entry()))(t, "revoke a key", false)

	hook := d.hook
	hook.WorkspaceID, hook.UpdatedAt, hook.WorkflowID = stranger, d.hook.UpdatedAt.Add(time.Second), ""
	answers(w.UpdateWebhook(ctx, hook, d.hook.UpdatedAt, entry()))(t, "update a webhook", webhook.Changed)
	answers(w.DeleteWebhook(ctx, stranger, hook.ID, now, entry()))(t, "delete a webhook", false)
	listener := newWebhook(stranger)
	listener.WorkflowID = d.ID
	answers(w.InsertWebhook(ctx, listener, plenty, entry()))(t, "listen to a workflow", webhook.NoWorkflow)
	own := must(w.Webhooks(ctx, stranger, whole))(t).Items[0]
	turned := own
	turned.WorkflowID, turned.UpdatedAt = d.ID, own.UpdatedAt.Add(time.Second)
	answers(w.UpdateWebhook(ctx, turned, own.UpdatedAt, entry()))(t, "turn a webhook to a workflow", webhook.NoWorkflow)
}
