package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/state"
)

func testStateKeys(t *testing.T, w *harness) {
	t.Run("set, read, increment and delete", func(t *testing.T) { testSetKey(t, w) })
	t.Run("expiry", func(t *testing.T) { testKeyExpiry(t, w) })
	t.Run("races", func(t *testing.T) { testKeyRaces(t, w) })
	t.Run("tenants and workflows", func(t *testing.T) { testKeyScopes(t, w) })
	t.Run("limits", func(t *testing.T) { testKeyLimits(t, w) })
}

func keyScope(workspaceID, workflowID string) state.Scope {
	return state.Scope{WorkspaceID: workspaceID, WorkflowID: workflowID, Plan: auth.Free, At: clock.Now()}
}

func setOp(name, value string) state.Set { return state.Set{Name: name, Value: json.RawMessage(value)} }

func keyNames(p paging.Page[state.Key]) []string {
	return mapped(p.Items, func(k state.Key) string { return k.Name })
}

func testSetKey(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	scope := keyScope(ws, "")
	empty(w.State.StateKeys(ctx, scope, fullPage))(t, "a workspace without one")
	missing(w.State.GetKey(ctx, scope, "a"))(t, "none")
	want := state.Key{Name: "a", Value: json.RawMessage(`{"n":9007199254740993}`), CreatedAt: scope.At, UpdatedAt: scope.At}
	equal(t, "created", must(w.State.SetKey(ctx, scope, setOp("a", `{"n":9007199254740993}`)))(t), state.Stored{Key: want, Created: true, Set: true})
	equal(t, "read", found(w.State.GetKey(ctx, scope, "a"))(t), want)
	later := scope
	later.At = scope.At.Add(time.Second)
	want.Value, want.UpdatedAt = json.RawMessage(`null`), later.At
	equal(t, "replaced", must(w.State.SetKey(ctx, later, setOp("a", `null`)))(t), state.Stored{Key: want, Set: true})
	absent := setOp("a", `1`)
	absent.IfAbsent = true
	equal(t, "left as it is", must(w.State.SetKey(ctx, later, absent))(t), state.Stored{Key: want})
	failsWith(w.State.IncrementKey(ctx, scope, state.Increment{Name: "a"}))(t, "increment null", fault.InvalidRequest)
	equal(t, "a new counter", string(must(w.State.IncrementKey(ctx, scope, state.Increment{Name: "n"}))(t).Key.Value), "1")
	equal(t, "by", string(must(w.State.IncrementKey(ctx, scope, state.Increment{Name: "n", By: json.RawMessage("-1.25")}))(t).Key.Value), "-0.25")
	equal(t, "listed", keyNames(must(w.State.StateKeys(ctx, scope, fullPage))(t)), []string{"a", "n"})
	w.checkState(t, ws)
	returns(w.State.DeleteKey(ctx, scope, "a"))(t, "delete", true)
	returns(w.State.DeleteKey(ctx, scope, "a"))(t, "again", false)
	w.checkState(t, ws)
}

func testKeyExpiry(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	scope := keyScope(ws, "")
	expires := scope.At.Add(time.Hour)
	for i := range 5 {
		op := setOp(fmt.Sprintf("k%d", i), "7")
		op.Expires = &expires
		must(w.State.SetKey(ctx, scope, op))(t)
	}
	must(w.State.SetKey(ctx, scope, setOp("stays", "1")))(t)
	before, after := scope, scope
	before.At, after.At = expires.Add(-time.Microsecond), expires
	equal(t, "before", len(must(w.State.StateKeys(ctx, before, fullPage))(t).Items), 6)
	equal(t, "after", keyNames(must(w.State.StateKeys(ctx, after, fullPage))(t)), []string{"stays"})
	missing(w.State.GetKey(ctx, after, "k0"))(t, "an expired key")
	returns(w.State.DeleteKey(ctx, after, "k0"))(t, "delete an expired key", false)
	again := setOp("k1", "8")
	again.IfAbsent = true
	stored := must(w.State.SetKey(ctx, after, again))(t)
	equal(t, "set again", []bool{stored.Created, stored.Set}, []bool{true, true})
	counted := must(w.State.IncrementKey(ctx, after, state.Increment{Name: "k2"}))(t)
	equal(t, "counted anew", []any{string(counted.Key.Value), counted.Key.ExpiresAt}, []any{"1", (*time.Time)(nil)})
	kept := must(w.State.IncrementKey(ctx, before, state.Increment{Name: "k3"}))(t)
	equal(t, "an increment keeps the expiry", kept.Key.ExpiresAt, &expires)
	w.checkState(t, ws)
	for must(w.State.PurgeKeys(ctx, after.At, 1))(t) {
	}
	w.checkState(t, ws)
	equal(t, "rows left", w.count(t, `SELECT count(*) FROM state_keys WHERE workspace_id = $1`, ws), 3)
}

func testKeyRaces(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	equal(t, "winners of a race", concurrently(t, 16, func(int) (bool, error) {
		op := setOp("once", "true")
		op.IfAbsent = true
		stored, err := w.State.SetKey(ctx, keyScope(ws, ""), op)
		return stored.Set, err
	}), 1)
	concurrently(t, 100, func(int) (bool, error) {
		_, err := w.State.IncrementKey(ctx, keyScope(ws, ""), state.Increment{Name: "counter"})
		return err == nil, err
	})
	equal(t, "the counter", string(found(w.State.GetKey(ctx, keyScope(ws, ""), "counter"))(t).Value), "100")
	w.checkState(t, ws)
}

func testKeyScopes(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	wf, other := w.workflow(t, ws), w.workflow(t, ws)
	for value, scope := range map[string]state.Scope{"1": keyScope(ws, ""), "2": keyScope(ws, wf.ID), "3": keyScope(ws, other.ID), "4": keyScope(stranger, "")} {
		must(w.State.SetKey(ctx, scope, setOp("k", value)))(t)
	}
	for value, scope := range map[string]state.Scope{"1": keyScope(ws, ""), "2": keyScope(ws, wf.ID), "3": keyScope(ws, other.ID), "4": keyScope(stranger, "")} {
		equal(t, "the value of "+value, string(found(w.State.GetKey(ctx, scope, "k"))(t).Value), value)
		equal(t, "the list of "+value, len(must(w.State.StateKeys(ctx, scope, fullPage))(t).Items), 1)
	}
	foreign := keyScope(stranger, wf.ID)
	missing(w.State.GetKey(ctx, foreign, "k"))(t, "the key of a workflow of another workspace")
	failsWith(w.State.SetKey(ctx, foreign, setOp("k", "5")))(t, "set in a workflow of another workspace", fault.WorkflowNotFound)
	failsWith(w.State.IncrementKey(ctx, foreign, state.Increment{Name: "k"}))(t, "increment in a workflow of another workspace", fault.WorkflowNotFound)
	failsWith(w.State.DeleteKey(ctx, foreign, "k"))(t, "delete in a workflow of another workspace", fault.WorkflowNotFound)

	for i := range 7 {
		must(w.State.SetKey(ctx, keyScope(ws, wf.ID), setOp(fmt.Sprintf("k%d", i), "1")))(t)
	}
	w.deleteWorkflow(t, wf)
	failsWith(w.State.SetKey(ctx, keyScope(ws, wf.ID), setOp("k", "5")))(t, "set in a deleted workflow", fault.WorkflowNotFound)
	for must(w.Workflows.PurgeDeleted(ctx, 3))(t) {
	}
	equal(t, "keys of the deleted workflow", w.count(t, `SELECT count(*) FROM state_keys WHERE workflow_id = $1`, wf.ID), 0)
	equal(t, "keys of the other workflow", w.count(t, `SELECT count(*) FROM state_keys WHERE workflow_id = $1`, other.ID), 1)
	w.checkState(t, ws)
}

func testKeyLimits(t *testing.T, w *harness) {
	ctx, ws, limits := t.Context(), w.workspace(t).ID, auth.Free.Limits()
	must(w.State.SetKey(ctx, keyScope(ws, ""), setOp("a", "1")))(t)
	w.exec(t, `UPDATE state_usage SET state_keys = $1 WHERE workspace_id = $2`, limits.StateKeys, ws)
	failsWith(w.State.SetKey(ctx, keyScope(ws, ""), setOp("b", "1")))(t, "over the number of keys", fault.PlanLimitExceeded)
	must(w.State.SetKey(ctx, keyScope(ws, ""), setOp("a", "2")))(t)
	w.exec(t, `UPDATE state_usage SET state_keys = 1, stored_bytes = $1 WHERE workspace_id = $2`, limits.StoredBytes, ws)
	failsWith(w.State.SetKey(ctx, keyScope(ws, ""), setOp("a", "22")))(t, "over the bytes", fault.PlanLimitExceeded)
	equal(t, "unchanged", string(found(w.State.GetKey(ctx, keyScope(ws, ""), "a"))(t).Value), "2")
}
