package storetest

import (
	"encoding/json"
	"testing"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

const noLimit = 1 << 20 // a limit that no test reaches

func newEntry(workspaceID, action, target string) audit.Entry {
	now := clock.Now()
	return audit.Entry{
		ID: uid.At(uid.Audit, now), WorkspaceID: workspaceID, At: now, ActorType: audit.ActorKey, ActorID: "key_actor",
		Action: action, TargetType: "thing", TargetID: target, RequestID: "req_1",
	}
}

func newKey(workspaceID string) auth.Key {
	now := clock.Now()
	id := uid.At(uid.Key, now)
	return auth.Key{
		ID: id, WorkspaceID: workspaceID, Name: "A key", Scopes: []auth.Scope{auth.Read, auth.Execute},
		Lookup: "lookup_" + id, Hash: []byte("hash of " + id), CreatedAt: now, CreatedBy: "cli",
	}
}

func newWorkspace() auth.Workspace {
	now := clock.Now()
	return auth.Workspace{
		ID: uid.At(uid.Workspace, now), Name: "A workspace", Plan: auth.Pro, RequestsPerMinute: 600, CreatedAt: now, UpdatedAt: now,
	}
}

// workspace creates a workspace with one key.
func (w *harness) workspace(t *testing.T) auth.Workspace {
	t.Helper()
	made := newWorkspace()
	entry := newEntry(made.ID, "workspace.created", made.ID)
	if err := w.Workspaces.InsertWorkspace(t.Context(), made, []byte("data key of "+made.ID), newKey(made.ID), "", entry); err != nil {
		t.Fatal(err)
	}
	return made
}

func (w *harness) key(t *testing.T, workspaceID string) auth.Key {
	t.Helper()
	made := newKey(workspaceID)
	returns(w.Workspaces.InsertKey(t.Context(), made, noLimit, newEntry(workspaceID, "api_key.created", made.ID)))(t, "insert a key", true)
	return made
}

func newWorkflow(workspaceID string) (workflow.Workflow, workflow.Version) {
	now := clock.Now()
	definition := workflow.Definition{
		Triggers: []workflow.Trigger{{ID: "by_hand", Type: "manual"}},
		Steps:    []workflow.Step{{ID: "pause", Uses: "wait", With: json.RawMessage(`{"duration":"1s"}`)}},
	}
	made := workflow.Workflow{
		ID: uid.At(uid.Workflow, now), WorkspaceID: workspaceID, Name: "A workflow", State: workflow.Draft, Version: 1, Revision: 1,
		Definition: definition, Layout: workflow.Layout{"pause": {1, -2.5}}, Pinned: workflow.Pins{"pause": {Output: json.RawMessage(`{"a":1}`)}}, Source: new("# a text\n"), SourceStale: true, CreatedAt: now, UpdatedAt: now,
	}
	first := workflow.Version{WorkflowID: made.ID, Number: 1, Definition: definition, Source: new("# the first\n"), CreatedAt: now, CreatedBy: "key_maker"}
	return made, first
}

func (w *harness) workflow(t *testing.T, workspaceID string) workflow.Workflow {
	t.Helper()
	made, first := newWorkflow(workspaceID)
	entry := newEntry(workspaceID, "workflow.created", made.ID)
	returns(w.Workflows.InsertWorkflow(t.Context(), made, first, noLimit, entry))(t, "insert a workflow", true)
	return made
}

func newEvent(t *testing.T, kind event.Type, about event.Subject) event.Event {
	t.Helper()
	return must(event.New(kind, about, clock.Now(), map[string]string{"run_id": about.RunID}))(t)
}

func (w *harness) deleteWorkflow(t *testing.T, made workflow.Workflow) {
	t.Helper()
	entry := newEntry(made.WorkspaceID, "workflow.deleted", made.ID)
	returns(w.Workflows.DeleteWorkflow(t.Context(), made, entry.At, entry))(t, "delete a workflow", true)
}

func subjectOf(r run.Run) event.Subject {
	return event.Subject{WorkspaceID: r.WorkspaceID, WorkflowID: r.WorkflowID, RunID: r.ID}
}

// newStart returns the start of a run. With an empty node any node may execute
// it.
func newStart(t *testing.T, of workflow.Workflow, node string) run.Start {
	t.Helper()
	now := clock.Now()
	r := run.Run{
		ID: uid.At(uid.Run, now), WorkspaceID: of.WorkspaceID, WorkflowID: of.ID, WorkflowVersion: of.Version, Status: run.Running,
		Trigger: run.Trigger{Type: run.Manual, Payload: json.RawMessage(`{"a":1}`)}, StartedAt: now,
	}
	return run.Start{
		Run: r, WorkflowName: of.Name, Revision: of.Revision, Node: node, Plan: auth.Pro, Event: newEvent(t, event.RunStarted, subjectOf(r)),
	}
}

func (w *harness) start(t *testing.T, of workflow.Workflow, node string) run.Run {
	t.Helper()
	start := newStart(t, of, node)
	returns(w.Runs.StartRun(t.Context(), start))(t, "start a run", true)
	return start.Run
}

// firstLease returns the lease of the node that a run was started on.
func firstLease(r run.Run) run.Lease { return run.Lease{RunID: r.ID, Epoch: 1} }

func newFinish(t *testing.T, r run.Run, status run.Status) run.Decision {
	t.Helper()
	kind := event.RunSucceeded
	if status == run.Failed {
		kind = event.RunFailed
	}
	e := newEvent(t, kind, subjectOf(r))
	return run.Decision{Finish: &run.Finish{Status: status, At: e.At, Event: e}}
}

func (w *harness) finish(t *testing.T, r run.Run, status run.Status) {
	t.Helper()
	returns(w.Commit(t.Context(), firstLease(r), r, newFinish(t, r, status)))(t, "finish a run", true)
}

func newCancellation(t *testing.T, r run.Run) run.Cancellation {
	t.Helper()
	return run.Cancellation{WorkspaceID: r.WorkspaceID, RunID: r.ID, At: clock.Now()}
}

func newStep(path string, seq int, status run.StepStatus) run.Step {
	now := clock.Now()
	return run.Step{
		Path: path, Seq: seq, Name: "Step " + path, Type: "wait", Status: status, Attempt: 1,
		Input: json.RawMessage(`{"in":1}`), StartedAt: now, AttemptAt: now,
	}
}

// failedAttempt returns an attempt of a step that will be retried.
func failedAttempt(step run.Step) run.Attempt {
	return run.Attempt{
		Path: step.Path, Number: step.Attempt, StartedAt: step.AttemptAt, FinishedAt: clock.Now(),
		Error: run.Failure{Code: "timed_out", Message: "It took too long.", StepID: step.Path},
	}
}

func newWebhook(workspaceID string) webhook.Webhook {
	now := clock.Now()
	id := uid.At(uid.Webhook, now)
	return webhook.Webhook{
		ID: id, WorkspaceID: workspaceID, URL: "https://example.com/" + id, Events: event.Types(), Enabled: true,
		SealedSecret: []byte("sealed " + id), SecretHint: "abcd", CreatedAt: now, UpdatedAt: now,
	}
}

// webhook creates a webhook for every event, changed by edit.
func (w *harness) webhook(t *testing.T, workspaceID string, edit func(*webhook.Webhook)) webhook.Webhook {
	t.Helper()
	made := newWebhook(workspaceID)
	if edit != nil {
		edit(&made)
	}
	entry := newEntry(workspaceID, "webhook.created", made.ID)
	returns(w.Webhooks.InsertWebhook(t.Context(), made, noLimit, entry))(t, "insert a webhook", webhook.Done)
	return made
}

// audited counts the audit entries about a target.
func (w *harness) audited(t *testing.T, workspaceID, target string) int {
	t.Helper()
	return len(must(w.Audit.AuditEntries(t.Context(), workspaceID, audit.Filter{TargetID: target}, fullPage))(t).Items)
}
