package storetest

import (
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// usage returns what uses a connection.
func (w *harness) usage(t *testing.T, workspaceID, name string) connection.Usage {
	t.Helper()
	return must(w.Connections.ConnectionUsage(t.Context(), workspaceID, []string{name}))(t)[name]
}

// using returns a change of a workflow whose step names a connection.
func using(of workflow.Workflow, name string) workflow.Change {
	change := redefined(of, "call")
	change.Workflow.Definition.Steps[0].Connection = name
	change.NewVersion.Definition = change.Workflow.Definition
	return change
}

func testConnectionUsage(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	made := w.connection(t, ws.ID, "shop")
	users := func() []connection.User { return w.usage(t, ws.ID, "shop").Workflows }
	equal(t, "users at first", len(users()), 0)

	change := using(w.workflow(t, ws.ID), "shop")
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "use it", true)
	wf := change.Workflow
	equal(t, "users", users(), []connection.User{{ID: wf.ID, Name: wf.Name}})
	change = activated(t, wf)
	change.Connections = []string{"shop"}
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "activate", true)
	wf = change.Workflow
	equal(t, "users", users(), []connection.User{{ID: wf.ID, Name: wf.Name, Active: true}})

	deleted, active, err := w.Connections.DeleteConnection(ctx, ws.ID, made.ID, newEntry(ws.ID, "connection.deleted", made.ID))
	returns(deleted != nil, err)(t, "delete what an active workflow uses", false)
	equal(t, "reported users", active, users())
	equal(t, "audit entries", w.actions(t, ws.ID, made.ID), []string{"connection.created"})
	equal(t, "counted", must(w.Usage.UsageCurrent(ctx, ws.ID))(t).Connections, 1)

	other := newConnection(ws.ID, "other")
	returns(w.insertConnection(ctx, other, noLimit))(t, "another", connection.Created)
	change = using(wf, "other")
	change.Workflow.State = workflow.Active
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "use another one", true)
	equal(t, "users of the first", len(users()), 0)
	equal(t, "users of the other", len(w.usage(t, ws.ID, "other").Workflows), 1)
	returns(w.deleteConnection(ctx, made))(t, "delete what no workflow uses", true)
	returns(w.deleteConnection(ctx, other))(t, "delete the other", false)
	w.deleteWorkflow(t, change.Workflow)
	equal(t, "users after the workflow", len(w.usage(t, ws.ID, "other").Workflows), 0)
	returns(w.deleteConnection(ctx, other))(t, "delete the other", true)
	w.notified.take()
}

// testDeleteConnectionInUse deletes connections while workflows that use them are
// activated, or while active workflows begin to use them. One of both is refused.
func testDeleteConnectionInUse(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	gone := activated(t, w.workflow(t, ws.ID))
	gone.Connections = []string{"none"}
	returns(w.Workflows.UpdateWorkflow(ctx, gone))(t, "activate without its connection", false)
	equal(t, "the state", found(w.Workflows.Workflow(ctx, ws.ID, gone.Workflow.ID))(t).State, workflow.Draft)
	for i := range 40 {
		names := []string{fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)}
		made := []connection.Sealed{w.connection(t, ws.ID, names[0]), w.connection(t, ws.ID, names[1])}
		wf := w.workflow(t, ws.ID)
		var change workflow.Change
		if i%2 == 0 { // saved, then activated
			saved := using(wf, names[0])
			returns(w.Workflows.UpdateWorkflow(ctx, saved))(t, "save", true)
			change = activated(t, saved.Workflow)
		} else { // active, then saved
			active := activated(t, wf)
			returns(w.Workflows.UpdateWorkflow(ctx, active))(t, "activate", true)
			change = using(active.Workflow, names[0])
		}
		change.Connections = names
		deleted := make([]bool, len(made))
		updated := 0
		concurrently(t, 3, func(n int) (ok bool, err error) {
			if n < len(made) {
				deleted[n], err = w.deleteConnection(ctx, made[n])
				return deleted[n], err
			}
			ok, err = w.Workflows.UpdateWorkflow(ctx, change)
			if ok {
				updated++
			}
			return ok, err
		})
		if updated == 1 && deleted[0] || updated == 0 && !deleted[0] && !deleted[1] {
			t.Fatalf("round %d: updated %d, deleted %v", i, updated, deleted)
		}
	}
	w.notified.take()
}

// testUsageOfSeveral checks the order and the number of the workflows that are listed
// for each of several connections, and that their waiting runs are counted once.
func testUsageOfSeveral(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	equal(t, "of no connection", must(w.Connections.ConnectionUsage(ctx, ws.ID, nil))(t), map[string]connection.Usage{})
	user := func(name, connectionName string, active bool) connection.User {
		change := using(w.workflow(t, ws.ID), connectionName)
		change.Workflow.Name = name
		if active {
			change.Workflow.State = workflow.Active
		}
		returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "use it", true)
		return connection.User{ID: change.Workflow.ID, Name: name, Active: active}
	}
	for _, name := range []string{"shop", "mail", "busy", "idle"} {
		w.connection(t, ws.ID, name)
	}
	a, b, c, d := user("a", "shop", false), user("b", "shop", true), user("c", "mail", true), user("d", "shop", true)
	var last connection.User
	for i := range connection.MaxUsers + 5 {
		last = user(fmt.Sprintf("%03d", i), "busy", i == connection.MaxUsers+4)
	}
	waits := w.workflow(t, ws.ID)
	w.awaitConnection(t, waits, "shop", true)
	twice := w.start(t, waits, "node_1")
	steps := []run.Step{waitingStep("one", 1, action.AwaitsConnection("mail")), waitingStep("two", 2, action.AwaitsConnection("mail"))}
	returns(w.Commit(ctx, firstLease(twice), twice, run.Decision{Rev: 1, Steps: steps, Release: true, WakeAt: *steps[0].WakeAt}))(t, "wait", true)

	usage := must(w.Connections.ConnectionUsage(ctx, ws.ID, []string{"shop", "mail", "busy", "idle", "none"}))(t)
	busy := usage["busy"].Workflows
	delete(usage, "busy")
	equal(t, "usage", usage, map[string]connection.Usage{
		"shop": {Workflows: []connection.User{b, d, a}, Waiting: 1},
		"mail": {Workflows: []connection.User{c}, Waiting: 1},
	})
	equal(t, "listed workflows of many", len(busy), connection.MaxUsers)
	equal(t, "the first of many", busy[0], last)
	w.notified.take()
}
