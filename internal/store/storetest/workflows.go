package storetest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// renamed returns a change of the row alone.
func renamed(of workflow.Workflow, name string) workflow.Change {
	now := of
	now.Name, now.Revision, now.UpdatedAt = name, of.Revision+1, of.UpdatedAt.Add(time.Second)
	return workflow.Change{Workflow: now, WasRevision: of.Revision}
}

// redefined returns a change that creates a version.
func redefined(of workflow.Workflow, step string) workflow.Change {
	change := renamed(of, of.Name)
	now := &change.Workflow
	now.Version++
	now.Definition.Steps = []workflow.Step{{ID: step, Uses: "wait", With: json.RawMessage(`{"duration":"2s"}`)}}
	change.NewVersion = &workflow.Version{
		WorkflowID: of.ID, Number: now.Version, Definition: now.Definition, CreatedAt: now.UpdatedAt, CreatedBy: "key_editor",
	}
	return change
}

func activated(t *testing.T, of workflow.Workflow) workflow.Change {
	t.Helper()
	change := renamed(of, of.Name)
	change.Workflow.State = workflow.Active
	change.Events = []event.Event{newEvent(t, event.WorkflowActivated, event.Subject{WorkspaceID: of.WorkspaceID, WorkflowID: of.ID})}
	change.Entries = []audit.Entry{newEntry(of.WorkspaceID, "workflow.activated", of.ID)}
	return change
}

func testWorkflows(t *testing.T, w *harness) {
	ctx := t.Context()
	ws := w.workspace(t)

	t.Run("read", func(t *testing.T) {
		made := w.workflow(t, ws.ID)
		equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t), made)
		equal(t, "head", found(w.Runs.WorkflowRef(ctx, ws.ID, made.ID))(t),
			run.WorkflowRef{Name: made.Name, State: made.State, Version: made.Version, Revision: made.Revision, Plan: ws.Plan})
		equal(t, "audit entries", w.audited(t, ws.ID, made.ID), 1)
		missing(w.Workflows.Workflow(ctx, ws.ID, "wf_none"))(t, "an unknown workflow")
		missing(w.Runs.WorkflowRef(ctx, ws.ID, "wf_none"))(t, "the ref of an unknown workflow")
	})

	t.Run("list", func(t *testing.T) { testWorkflowList(t, w) })
	t.Run("update", func(t *testing.T) { testWorkflowUpdate(t, w) })

	t.Run("is atomic", func(t *testing.T) {
		made, first := newWorkflow(ws.ID)
		entry := newEntry(ws.ID, "workflow.created", made.ID)
		entry.ID = must(w.Audit.AuditEntries(ctx, ws.ID, audit.Filter{}, fullPage))(t).Items[0].ID
		fails(w.Workflows.InsertWorkflow(ctx, made, first, noLimit, entry))(t, "an audit entry with the id of another")
		missing(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t, "the workflow")
		missing(w.Workflows.Definition(ctx, made.ID, 1))(t, "its first version")
	})

	t.Run("is inserted atomically with its triggers", func(t *testing.T) {
		made, first := newWorkflow(ws.ID)
		hook := workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "h", Token: []byte("sealed"), TokenHash: []byte("hash of " + t.Name())}
		event := workflow.Armed{ID: "event", Type: workflow.EventTrigger, Spec: "e"}
		insert := func(atMost int) (bool, error) {
			return w.Workflows.InsertWorkflow(ctx, made, first, atMost, newEntry(ws.ID, "workflow.created", made.ID), hook, event)
		}
		returns(insert(0))(t, "a workspace that is full", false)
		missing(w.Triggers.TriggerByToken(ctx, hook.TokenHash))(t, "a trigger of no workflow")
		returns(insert(noLimit))(t, "insert", true)
		equal(t, "found by its token", found(w.Triggers.TriggerByToken(ctx, hook.TokenHash))(t).WorkflowID, made.ID)
		equal(t, "trigger", w.trigger(t, made, "event"), trigger.Trigger{
			WorkspaceID: ws.ID, WorkflowID: made.ID, ID: "event", Type: workflow.EventTrigger, Version: 1,
		})
	})

	t.Run("one of many concurrent updates wins", func(t *testing.T) {
		was := w.workflow(t, ws.ID)
		won := concurrently(t, 32, func(int) (bool, error) { return w.Workflows.UpdateWorkflow(t.Context(), redefined(was, "race")) })
		equal(t, "winners", won, 1)
		equal(t, "versions", len(must(w.Workflows.Versions(ctx, ws.ID, was.ID, fullPage))(t).Items), 2)
		equal(t, "revision", found(w.Workflows.Workflow(ctx, ws.ID, was.ID))(t).Revision, was.Revision+1)
	})
}

func testWorkflowList(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	empty(w.Workflows.Workflows(ctx, ws.ID, workflow.Filter{}, fullPage))(t, "an empty workspace")
	var items []workflow.Item // newest first
	for i := range 5 {
		made := w.workflow(t, ws.ID)
		if i%2 == 0 {
			change := activated(t, made)
			returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "activate", true)
			made = change.Workflow
		}
		item := workflow.Item{ID: made.ID, Name: made.Name, State: made.State, CreatedAt: made.CreatedAt, UpdatedAt: made.UpdatedAt}
		items = append([]workflow.Item{item}, items...)
	}
	equal(t, "all", must(w.Workflows.Workflows(ctx, ws.ID, workflow.Filter{}, fullPage))(t).Items, items)
	equal(t, "active", must(w.Workflows.Workflows(ctx, ws.ID, workflow.Filter{State: workflow.Active}, fullPage))(t).Items, []workflow.Item{items[0], items[2], items[4]})
	equal(t, "drafts", must(w.Workflows.Workflows(ctx, ws.ID, workflow.Filter{State: workflow.Draft}, fullPage))(t).Items, []workflow.Item{items[1], items[3]})
	empty(w.Workflows.Workflows(ctx, ws.ID, workflow.Filter{State: workflow.Paused}, fullPage))(t, "paused")

	page := must(w.Workflows.Workflows(ctx, ws.ID, workflow.Filter{State: workflow.Active}, paging.Request{Limit: 2}))(t)
	equal(t, "first page of the active", page, paging.Page[workflow.Item]{Items: []workflow.Item{items[0], items[2]}, Next: items[2].ID})
	page = must(w.Workflows.Workflows(ctx, ws.ID, workflow.Filter{State: workflow.Active}, paging.Request{Limit: 2, After: page.Next}))(t)
	equal(t, "last page of the active", page, paging.Page[workflow.Item]{Items: items[4:]})
}

func testWorkflowUpdate(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	made := w.workflow(t, ws.ID)

	change := renamed(made, "Renamed")
	change.Workflow.Description, change.Workflow.Layout = new("Says what it does"), workflow.Layout{}
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "of the row", true)
	equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t), change.Workflow)
	equal(t, "versions", len(must(w.Workflows.Versions(ctx, ws.ID, made.ID, fullPage))(t).Items), 1)

	rewritten := renamed(change.Workflow, "Renamed")
	rewritten.Workflow.Source, rewritten.Workflow.SourceStale, rewritten.Rewritten = new("# another\n"), false, true
	returns(w.Workflows.UpdateWorkflow(ctx, rewritten))(t, "of the text", true)
	equal(t, "text of the version", found(w.Workflows.Version(ctx, ws.ID, made.ID, made.Version))(t).Source, new("# another\n"))
	change = rewritten

	stale := activated(t, made)
	returns(w.Workflows.UpdateWorkflow(ctx, stale))(t, "with a stale revision", false)
	equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t), change.Workflow)
	equal(t, "events of a stale update", w.count(t, `SELECT count(*) FROM events WHERE workflow_id = $1`, made.ID), 0)
	equal(t, "audit entries of a stale update", w.audited(t, ws.ID, made.ID), 1)

	active := activated(t, change.Workflow)
	returns(w.Workflows.UpdateWorkflow(ctx, active))(t, "of the state", true)
	equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t), active.Workflow)
	equal(t, "events", w.count(t, `SELECT count(*) FROM events WHERE workflow_id = $1 AND id = $2`, made.ID, active.Events[0].ID), 1)
	equal(t, "audit entries", w.audited(t, ws.ID, made.ID), 2)

	again := redefined(active.Workflow, "again")
	again.Events = active.Events
	fails(w.Workflows.UpdateWorkflow(ctx, again))(t, "with an event id that exists")
	equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t), active.Workflow)
	missing(w.Workflows.Version(ctx, ws.ID, made.ID, again.Workflow.Version))(t, "the version of a failed update")

	unknown, _ := newWorkflow(ws.ID)
	returns(w.Workflows.UpdateWorkflow(ctx, renamed(unknown, "x")))(t, "of an unknown workflow", false)
}

func testVersions(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	made := w.workflow(t, ws.ID)
	second := redefined(made, "second")
	returns(w.Workflows.UpdateWorkflow(ctx, second))(t, "second version", true)
	third := redefined(second.Workflow, "third")
	returns(w.Workflows.UpdateWorkflow(ctx, third))(t, "third version", true)

	t.Run("read", func(t *testing.T) {
		equal(t, "third", found(w.Workflows.Version(ctx, ws.ID, made.ID, 3))(t), *third.NewVersion)
		equal(t, "second", found(w.Workflows.Version(ctx, ws.ID, made.ID, 2))(t), *second.NewVersion)
		equal(t, "definition of the first", found(w.Workflows.Version(ctx, ws.ID, made.ID, 1))(t).Definition, made.Definition)
		equal(t, "current definition", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t).Definition, third.Workflow.Definition)
		for _, number := range []int{-1, 0, 4} {
			missing(w.Workflows.Version(ctx, ws.ID, made.ID, number))(t, "an unknown version")
		}
	})

	t.Run("read by the engine", func(t *testing.T) {
		equal(t, "second", found(w.Workflows.Definition(ctx, made.ID, 2))(t), second.NewVersion.Definition)
		missing(w.Workflows.Definition(ctx, made.ID, 4))(t, "an unknown version")
		missing(w.Workflows.Definition(ctx, "wf_none", 1))(t, "a workflow that there is not")
	})

	t.Run("list", func(t *testing.T) {
		numbers := func(page paging.Page[workflow.Version]) []int {
			return mapped(page.Items, func(v workflow.Version) int { return v.Number })
		}
		equal(t, "all", numbers(must(w.Workflows.Versions(ctx, ws.ID, made.ID, fullPage))(t)), []int{3, 2, 1})
		page := must(w.Workflows.Versions(ctx, ws.ID, made.ID, paging.Request{Limit: 2}))(t)
		equal(t, "first page", numbers(page), []int{3, 2})
		equal(t, "next", page.Next, "2")
		page = must(w.Workflows.Versions(ctx, ws.ID, made.ID, paging.Request{Limit: 2, After: page.Next}))(t)
		equal(t, "last page", numbers(page), []int{1})
		equal(t, "no next", page.Next, "")
		want := *second.NewVersion
		want.Definition = workflow.Definition{}
		equal(t, "second", must(w.Workflows.Versions(ctx, ws.ID, made.ID, fullPage))(t).Items[1], want)
		empty(w.Workflows.Versions(ctx, ws.ID, "wf_none", fullPage))(t, "an unknown workflow")
	})

	t.Run("a definition of a newer release is not read in part", func(t *testing.T) {
		level := `UPDATE workflow_versions SET level = $1 WHERE workflow_id = $2 AND version = 3`
		w.exec(t, level, release.Number, made.ID)
		equal(t, "level", found(w.Workflows.Definition(ctx, made.ID, 3))(t).Level, release.Number)
		w.exec(t, level, release.Number+1, made.ID)
		failsWith(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t, "the workflow", fault.Unavailable)
		failsWith(w.Workflows.Version(ctx, ws.ID, made.ID, 3))(t, "the version", fault.Unavailable)
		failsWith(w.Workflows.Definition(ctx, made.ID, 3))(t, "the definition", fault.Unavailable)
		w.exec(t, level, 0, made.ID)
	})

	t.Run("a damaged definition does not affect others", func(t *testing.T) {
		w.exec(t, `UPDATE workflow_versions SET definition = '{' WHERE workflow_id = $1 AND version = 2`, made.ID)
		if _, err := w.Workflows.Definition(ctx, made.ID, 2); !errors.Is(err, workflow.ErrCorrupt) {
			t.Errorf("a damaged definition: %v", err)
		}
		equal(t, "third", found(w.Workflows.Definition(ctx, made.ID, 3))(t), third.NewVersion.Definition)
		equal(t, "listed", len(must(w.Workflows.Versions(ctx, ws.ID, made.ID, fullPage))(t).Items), 3)
	})
}
