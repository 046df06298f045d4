package storetest

import (
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
)

// nameOf returns a name of a connection.
func nameOf(c connection.Sealed, name string) connection.Name {
	return connection.Name{Name: name, Now: c.Name, Integration: c.Integration, Audience: connection.Audience{Access: c.Access, Members: c.Members, Owner: c.CreatedBy}}
}

func newlyNamed(c connection.Sealed, name string) connection.Sealed {
	c.Name, c.UpdatedAt, c.UpdatedBy = name, clock.Now(), "usr_two"
	return c
}

// rename renames a connection that has not changed since it was read.
func (w *harness) rename(t *testing.T, was connection.Sealed, name string) connection.Sealed {
	t.Helper()
	now := newlyNamed(was, name)
	returns(w.Connections.ChangeConnection(t.Context(), now, was.Connection, newEntry(was.WorkspaceID, "connection.updated", was.ID)))(t, "rename", connection.Changed)
	return now
}

// testRenameConnection checks that the names that a connection had before lead to it, and
// to nothing else.
func testRenameConnection(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	shop, other := w.connection(t, ws.ID, "shop"), w.connection(t, ws.ID, "other")
	wf := w.workflow(t, ws.ID)
	change := using(wf, "shop")
	change.Connections = []string{"shop"}
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "use it", true)
	w.awaitConnection(t, change.Workflow, "shop", true)

	store := w.rename(t, shop, "store")
	equal(t, "by the earlier name", found(w.Connections.SealedConnection(ctx, ws.ID, "shop"))(t), store)
	equal(t, "by the name", found(w.Connections.SealedConnection(ctx, ws.ID, "store"))(t), store)
	equal(t, "names", must(w.Connections.ConnectionNames(ctx, ws.ID))(t), []connection.Name{nameOf(other, "other"), nameOf(store, "shop"), nameOf(store, "store")})
	returns(w.insertConnection(ctx, newConnection(ws.ID, "shop"), noLimit))(t, "take the earlier name", connection.NameTaken)
	entry := newEntry(ws.ID, "connection.updated", other.ID)
	for _, taken := range []string{"shop", "store"} {
		returns(w.Connections.ChangeConnection(ctx, newlyNamed(other, taken), other.Connection, entry))(t, "rename to "+taken, connection.NameTaken)
	}
	returns(w.Connections.ChangeConnection(ctx, newlyNamed(shop, "stale"), shop.Connection, entry))(t, "rename what was renamed", connection.Stale)
	equal(t, "audit entries", w.actions(t, ws.ID, other.ID), []string{"connection.created"})

	usage := w.usage(t, ws.ID, "store")
	equal(t, "earlier names", usage.Aliases, []string{"shop"})
	equal(t, "users by the earlier name", usage.Workflows, []connection.User{{ID: wf.ID, Name: change.Workflow.Name}})
	equal(t, "runs that wait under the earlier name", usage.Waiting, 1)
	active := activated(t, change.Workflow)
	active.Connections = []string{"shop"}
	returns(w.Workflows.UpdateWorkflow(ctx, active))(t, "activate with the earlier name", true)
	returns(w.deleteConnection(ctx, store))(t, "delete what is used by its earlier name", false)
	w.notified.take()
	returns(w.Connections.WakeSteps(ctx, ws.ID, "store", clock.Now()))(t, "wake", false)
	equal(t, "woken runs", len(w.notified.take().Wakes), 1)

	again := w.rename(t, store, "shop")
	equal(t, "names after it got its name back", w.usage(t, ws.ID, "shop").Aliases, []string{"store"})
	equal(t, "by the name in between", found(w.Connections.SealedConnection(ctx, ws.ID, "store"))(t), again)

	// The change of a credential keeps the name, and both can change at once.
	renewed := again
	renewed.Name, renewed.Epoch, renewed.Access, renewed.Credential = "ignored", 2, connection.Everyone, []byte("renewed")
	returns(w.Connections.UpdateConnection(ctx, renewed, 1, nil))(t, "renew", true)
	kept := found(w.Connections.SealedConnection(ctx, ws.ID, "shop"))(t)
	equal(t, "the name and the access after a renewal", fmt.Sprint(kept.Name, kept.Access, string(kept.Credential)), fmt.Sprint("shop", again.Access, "renewed"))
	both := newlyNamed(kept, "both")
	both.Epoch, both.Credential, both.Access, both.Members = 3, []byte("new"), connection.Everyone, nil
	returns(w.Connections.ChangeConnection(ctx, both, kept.Connection, entry))(t, "change both", connection.Changed)
	equal(t, "after both", found(w.Connections.SealedConnection(ctx, ws.ID, "store"))(t), both)

	w.deleteWorkflow(t, active.Workflow)
	returns(w.deleteConnection(ctx, both))(t, "delete it", true)
	for _, name := range []string{"shop", "store", "both"} {
		missing(w.Connections.SealedConnection(ctx, ws.ID, name))(t, "a name of what was deleted")
		w.connection(t, ws.ID, name)
	}
	many := w.connection(t, ws.ID, "many")
	for i := range connection.MaxAliases {
		many = w.rename(t, many, fmt.Sprintf("many%d", i))
	}
	returns(w.Connections.ChangeConnection(ctx, newlyNamed(many, "one_too_many"), many.Connection, entry))(t, "once too often", connection.TooMany)
	w.rename(t, many, "many")
	w.notified.take()
}

// testRenameRace renames a connection while another one with the same name is created, and
// while a workflow begins to use it. One of both gets the name.
func testRenameRace(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	for i := range 20 {
		name := fmt.Sprintf("name%d", i)
		made, next := w.connection(t, ws.ID, fmt.Sprintf("was%d", i)), newConnection(ws.ID, name)
		change := activated(t, w.workflow(t, ws.ID))
		change.Connections = []string{made.Name}
		var isRenamed, isCreated, isActive bool
		concurrently(t, 3, func(n int) (bool, error) {
			switch n {
			case 0:
				outcome, err := w.Connections.ChangeConnection(ctx, newlyNamed(made, name), made.Connection, newEntry(ws.ID, "connection.updated", made.ID))
				isRenamed = outcome == connection.Changed
				return isRenamed, err
			case 1:
				outcome, err := w.insertConnection(ctx, next, noLimit)
				isCreated = outcome == connection.Created
				return isCreated, err
			default:
				var err error
				isActive, err = w.Workflows.UpdateWorkflow(ctx, change)
				return isActive, err
			}
		})
		if isRenamed == isCreated || !isActive {
			t.Fatalf("round %d: renamed %v, created %v, activated %v", i, isRenamed, isCreated, isActive)
		}
	}
	w.notified.take()
}
