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

// workspaceView is everything that a workspace can read of itself.
type workspaceView struct {
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

func (w *harness) view(t *testing.T, d workflowData) workspaceView {
	t.Helper()
	ctx, ws := t.Context(), d.WorkspaceID
	b := workspaceView{
		Workspace: found(w.Workspaces.Workspace(ctx, ws))(t), Keys: must(w.Workspaces.Keys(ctx, ws, fullPage))(t).Items,
		Workflow: found(w.Workflows.Workflow(ctx, ws, d.ID))(t), Versions: must(w.Workflows.Versions(ctx, ws, d.ID, fullPage))(t).Items,
		Runs: must(w.Runs.Runs(ctx, ws, d.ID, "", fullPage))(t).Items, Webhooks: must(w.Webhooks.Webhooks(ctx, ws, fullPage))(t).Items,
		Audit: must(w.Audit.AuditEntries(ctx, ws, audit.Filter{}, fullPage))(t).Items,
		Days:  must(w.Usage.UsageDays(ctx, ws, ""))(t), Current: must(w.Usage.UsageCurrent(ctx, ws))(t),
		Pending: w.count(t, `SELECT count(*) FROM deliveries WHERE workspace_id = $1`, ws),
	}
	for _, r := range d.runs() {
		b.Details = append(b.Details, found(w.Runs.Run(ctx, ws, r.ID))(t))
	}
	return b
}

func testTenants(t *testing.T, w *harness) {
	owner, stranger := w.workspace(t), w.workspace(t)
	d := newWorkflowData(t, w, owner.ID)
	w.webhook(t, stranger.ID, nil)
	date := usage.Key{WorkspaceID: owner.ID, Date: "2026-01-01"}
	if err := w.Usage.AddUsage(t.Context(), map[usage.Key]usage.Day{date: {Requests: 1}}); err != nil {
		t.Fatal(err)
	}
	before := w.view(t, d)
	w.notified.take()

	t.Run("cannot read each other", func(t *testing.T) { readAsStranger(t, w, stranger.ID, d, before) })
	t.Run("cannot change each other", func(t *testing.T) { writeAsStranger(t, w, stranger.ID, d, before) })

	equal(t, "the owner's view", w.view(t, d), before)
	equal(t, "notifications", w.notified.take(), notifications{})
	equal(t, "deliveries to the stranger", w.count(t, `SELECT count(*) FROM deliveries WHERE workspace_id = $1`, stranger.ID), 0)
	equal(t, "audit entries of the stranger", w.audited(t, stranger.ID, "attempt"), 0)
}

func readAsStranger(t *testing.T, w *harness, stranger string, d workflowData, owned workspaceView) {
	ctx := t.Context()
	missing(w.Workflows.Workflow(ctx, stranger, d.ID))(t, "workflow")
	missing(w.Runs.WorkflowRef(ctx, stranger, d.ID))(t, "head of a workflow")
	missing(w.Workflows.Version(ctx, stranger, d.ID, 1))(t, "version")
	missing(w.Runs.Run(ctx, stranger, d.owned.ID))(t, "run")
	missing(w.Workspaces.Key(ctx, stranger, owned.Keys[0].ID))(t, "key")
	missing(w.Webhooks.Webhook(ctx, stranger, d.hook.ID))(t, "webhook")
	equal(t, "search by name", must(w.Workflows.SearchWorkflows(ctx, stranger, query(t, d.Name), 10))(t), []workflow.Item{})
	equal(t, "search by id", must(w.Workflows.SearchWorkflows(ctx, stranger, query(t, d.ID), 10))(t), []workflow.Item{})
	// The position in a list may be a row of another workspace.
	for _, page := range []paging.Request{fullPage, {Limit: 1}, {Limit: 1000, After: "~"}} {
		empty(w.Workflows.Versions(ctx, stranger, d.ID, page))(t, "versions")
		empty(w.Workflows.Workflows(ctx, stranger, workflow.Filter{}, page))(t, "workflows")
		empty(w.Workflows.Workflows(ctx, stranger, workflow.Filter{State: workflow.Draft}, page))(t, "drafts")
		empty(w.Workflows.Workflows(ctx, stranger, workflow.Filter{Words: query(t, d.Name)}, page))(t, "workflows by name")
		for _, status := range append(run.Statuses(), "") {
			empty(w.Runs.Runs(ctx, stranger, d.ID, status, page))(t, "runs "+string(status))
		}
		empty(w.Audit.AuditEntries(ctx, stranger, audit.Filter{TargetID: d.ID}, page))(t, "audit entries")
		empty(w.Audit.AuditEntries(ctx, stranger, audit.Filter{Action: "workflow.created"}, page))(t, "audit entries")
	}
	for _, key := range must(w.Workspaces.Keys(ctx, stranger, fullPage))(t).Items {
		equal(t, "workspace of a key", key.WorkspaceID, stranger)
	}
	for _, hook := range must(w.Webhooks.Webhooks(ctx, stranger, fullPage))(t).Items {
		equal(t, "workspace of a webhook", hook.WorkspaceID, stranger)
	}
	equal(t, "usage by day", must(w.Usage.UsageDays(ctx, stranger, ""))(t), nil)
	equal(t, "usage", must(w.Usage.UsageCurrent(ctx, stranger))(t), usage.Current{Webhooks: 1, APIKeys: 1})
}

func writeAsStranger(t *testing.T, w *harness, stranger string, d workflowData, owned workspaceView) {
	ctx, now := t.Context(), clock.Now()
	entry := func() audit.Entry { return newEntry(stranger, "attempt", "attempt") }
	wf := d.Workflow
	wf.WorkspaceID = stranger
	returns(w.Workflows.UpdateWorkflow(ctx, renamed(wf, "x")))(t, "update a workflow", false)
	returns(w.Workflows.UpdateWorkflow(ctx, redefined(wf, "x")))(t, "make a version", false)
	returns(w.Workflows.DeleteWorkflow(ctx, wf, now, entry()))(t, "delete a workflow", false)
	returns(w.Runs.StartRun(ctx, newStart(t, wf, "node_1")))(t, "start a run", false)
	r := d.owned
	r.WorkspaceID = stranger
	returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel a run", false)
	returns(w.Workspaces.RevokeKey(ctx, stranger, owned.Keys[0].ID, now, entry()))(t, "revoke a key", false)

	hook := d.hook
	hook.WorkspaceID, hook.UpdatedAt, hook.WorkflowID = stranger, d.hook.UpdatedAt.Add(time.Second), ""
	returns(w.Webhooks.UpdateWebhook(ctx, hook, d.hook.UpdatedAt, entry()))(t, "update a webhook", webhook.Changed)
	returns(w.Webhooks.DeleteWebhook(ctx, stranger, hook.ID, now, entry()))(t, "delete a webhook", false)
	listener := newWebhook(stranger)
	listener.WorkflowID = d.ID
	returns(w.Webhooks.InsertWebhook(ctx, listener, noLimit, entry()))(t, "listen to a workflow", webhook.NoWorkflow)
	own := must(w.Webhooks.Webhooks(ctx, stranger, fullPage))(t).Items[0]
	turned := own
	turned.WorkflowID, turned.UpdatedAt = d.ID, own.UpdatedAt.Add(time.Second)
	returns(w.Webhooks.UpdateWebhook(ctx, turned, own.UpdatedAt, entry()))(t, "turn a webhook to a workflow", webhook.NoWorkflow)
}
