package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

func newConnection(workspaceID, name string) connection.Sealed {
	now := clock.Now()
	expires := now.Add(time.Hour)
	return connection.Sealed{
		Connection: connection.Connection{
			ID: uid.At(uid.Connection, now), WorkspaceID: workspaceID, Name: name, Definition: json.RawMessage(`{"hosts": ["api.example.com"]}`), Auth: "bearer",
			Fields: map[string]string{"user": "Ada \"ä\""}, Learned: map[string]string{"site": "one"}, Hosts: []connection.Host{"api.example.com", "http://10.0.0.5:3000"}, Access: connection.SomeMembers, Members: []string{"usr_one"},
			Account: "ada@example.com", Status: connection.Connected, Epoch: 1, ExpiresAt: &expires,
			CreatedAt: now, CreatedBy: "key_maker", UpdatedAt: now, UpdatedBy: "key_maker",
		},
		Credential: []byte("sealed \x00\xff " + name),
	}
}

func (w *harness) insertConnection(ctx context.Context, c connection.Sealed, atMost int) (connection.Outcome, error) {
	return w.Connections.InsertConnection(ctx, c, atMost, newEntry(c.WorkspaceID, "connection.created", c.ID))
}

func (w *harness) connection(t *testing.T, workspaceID, name string) connection.Sealed {
	t.Helper()
	made := newConnection(workspaceID, name)
	returns(w.insertConnection(t.Context(), made, noLimit))(t, "insert a connection", connection.Created)
	return made
}

func (w *harness) deleteConnection(ctx context.Context, c connection.Sealed) (bool, error) {
	deleted, _, err := w.Connections.DeleteConnection(ctx, c.WorkspaceID, c.ID, newEntry(c.WorkspaceID, "connection.deleted", c.ID))
	return deleted != nil, err
}

func testConnections(t *testing.T, w *harness) {
	t.Run("insert and read", func(t *testing.T) { testInsertConnection(t, w) })
	t.Run("update", func(t *testing.T) { testUpdateConnection(t, w) })
	t.Run("break", func(t *testing.T) { testBreakConnection(t, w) })
	t.Run("rename", func(t *testing.T) { testRenameConnection(t, w) })
	t.Run("renamed and created at once", func(t *testing.T) { testRenameRace(t, w) })
	t.Run("use by workflows", func(t *testing.T) { testConnectionUsage(t, w) })
	t.Run("usage of several", func(t *testing.T) { testUsageOfSeveral(t, w) })
	t.Run("deleted while it comes into use", func(t *testing.T) { testDeleteConnectionInUse(t, w) })
	t.Run("claims of renewals", func(t *testing.T) { testClaimRenewal(t, w) })
	t.Run("steps that wait", func(t *testing.T) { testWakeSteps(t, w) })
	t.Run("consents that end", func(t *testing.T) { testEndingConnections(t, w) })
	t.Run("last use", func(t *testing.T) { testMarkConnectionsUsed(t, w) })
	t.Run("tenants", func(t *testing.T) { testConnectionTenants(t, w) })
}

func testInsertConnection(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	empty(w.Connections.Connections(ctx, ws, fullPage))(t, "a workspace without one")
	made := w.connection(t, ws, "shop")
	plain := newConnection(ws, "plain") // with nothing that can be left out
	plain.Integration, plain.Definition, plain.ExpiresAt, plain.Account, plain.Hosts = "slack", nil, nil, "", []connection.Host{}
	returns(w.insertConnection(ctx, plain, noLimit))(t, "another one", connection.Created)
	equal(t, "read", found(w.Connections.Connection(ctx, ws, made.ID))(t), made.Connection)
	equal(t, "read by name", found(w.Connections.SealedConnection(ctx, ws, "shop"))(t), made)
	equal(t, "with nothing that can be left out", found(w.Connections.SealedConnection(ctx, ws, "plain"))(t), plain)
	equal(t, "listed", must(w.Connections.Connections(ctx, ws, fullPage))(t).Items, []connection.Connection{plain.Connection, made.Connection})
	equal(t, "names", must(w.Connections.ConnectionNames(ctx, ws))(t), []connection.Name{nameOf(plain, "plain"), nameOf(made, "shop")})
	missing(w.Connections.Connection(ctx, ws, "conn_none"))(t, "an unknown id")
	missing(w.Connections.SealedConnection(ctx, ws, "Shop"))(t, "a name in other letters")

	returns(w.insertConnection(ctx, newConnection(ws, "shop"), noLimit))(t, "the same name", connection.NameTaken)
	returns(w.insertConnection(ctx, newConnection(ws, "shop"), 2))(t, "the same name at the limit", connection.NameTaken)
	returns(w.insertConnection(ctx, newConnection(ws, "third"), 2))(t, "over the limit", connection.TooMany)
	equal(t, "after rejected inserts", found(w.Connections.SealedConnection(ctx, ws, "shop"))(t), made)
	equal(t, "counted", must(w.Usage.UsageCurrent(ctx, ws))(t).Connections, 2)
	equal(t, "winners of a race for a name", concurrently(t, 16, func(int) (bool, error) {
		outcome, err := w.insertConnection(ctx, newConnection(ws, "race"), noLimit)
		return outcome == connection.Created, err
	}), 1)
	equal(t, "counted", must(w.Usage.UsageCurrent(ctx, ws))(t).Connections, 3)

	deleted, _, err := w.Connections.DeleteConnection(ctx, ws, made.ID, newEntry(ws, "connection.deleted", made.ID))
	equal(t, "the deleted one", found(deleted, err)(t), made)
	returns(w.deleteConnection(ctx, made))(t, "again", false)
	missing(w.Connections.Connection(ctx, ws, made.ID))(t, "the deleted one")
	equal(t, "counted", must(w.Usage.UsageCurrent(ctx, ws))(t).Connections, 2)
	equal(t, "audit entries", w.actions(t, ws, made.ID), []string{"connection.deleted", "connection.created"})
	returns(w.insertConnection(ctx, newConnection(ws, "shop"), noLimit))(t, "the name of a deleted one", connection.Created)
}

// testUpdateConnection checks that a change applies to the credential that it was made
// for, and to no other.
func testUpdateConnection(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	made := w.connection(t, ws, "shop")
	next := made
	next.Definition, next.Fields, next.Learned, next.Hosts = nil, map[string]string{}, nil, []connection.Host{"b.example.com"}
	next.Account, next.Status, next.Problem, next.ExpiresAt = "other", connection.Failing, "no", nil
	next.Epoch, next.UpdatedAt, next.UpdatedBy, next.Credential = 2, made.UpdatedAt.Add(time.Second), "usr_other", []byte("another")
	entry := newEntry(ws, "connection.updated", made.ID)

	returns(w.Connections.UpdateConnection(ctx, next, 2, &entry))(t, "of another epoch", false)
	equal(t, "unchanged", found(w.Connections.SealedConnection(ctx, ws, "shop"))(t), made)
	returns(w.Connections.UpdateConnection(ctx, next, 1, &entry))(t, "of its epoch", true)
	equal(t, "changed", found(w.Connections.SealedConnection(ctx, ws, "shop"))(t), next)
	returns(w.Connections.UpdateConnection(ctx, next, 1, &entry))(t, "again", false)
	equal(t, "audit entries", w.actions(t, ws, made.ID), []string{"connection.updated", "connection.created"})
	equal(t, "winners of a race for the next epoch", concurrently(t, 16, func(i int) (bool, error) {
		mine := next
		mine.Epoch, mine.Credential = 3, fmt.Append(nil, "of ", i)
		return w.Connections.UpdateConnection(ctx, mine, 2, nil)
	}), 1)

	returns(w.Connections.SetConnectionStatus(ctx, ws, made.ID, 2, connection.Connected, ""))(t, "status of an earlier epoch", false)
	returns(w.Connections.SetConnectionStatus(ctx, ws, made.ID, 3, connection.Connected, "none"))(t, "status", true)
	got := found(w.Connections.Connection(ctx, ws, made.ID))(t)
	equal(t, "status", got.Status, connection.Connected)
	equal(t, "problem", got.Problem, "none")
	equal(t, "epoch", got.Epoch, 3)
	equal(t, "update time", got.UpdatedAt, next.UpdatedAt)
}

func (w *harness) breakConnection(ctx context.Context, t *testing.T, c connection.Sealed, epoch int64) (bool, error) {
	e := newEvent(t, event.ConnectionBroken, event.Subject{WorkspaceID: c.WorkspaceID})
	return w.Connections.SetConnectionStatus(ctx, c.WorkspaceID, c.ID, epoch, connection.NeedsReconnect, "revoked", e)
}

// testBreakConnection checks that a connection breaks once, with one event, and that
// only another credential repairs it.
func testBreakConnection(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	made := w.connection(t, ws.ID, "shop")
	alert := w.workflow(t, ws.ID)
	returns(w.Workflows.UpdateWorkflow(ctx, withNewTriggers(alert, workflow.Active, eventTrigger("broken", `"connection.broken"`))))(t, "subscribe", true)
	hook := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.Events = []event.Type{event.ConnectionBroken} })
	w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.Events, h.WorkflowID = []event.Type{event.ConnectionBroken}, alert.ID })
	events := func() int {
		return len(must(w.Events.Events(ctx, ws.ID, event.Query{Filter: event.Filter{Types: []event.Type{event.ConnectionBroken}}}, fullPage))(t).Items)
	}
	returns(w.breakConnection(ctx, t, made, 2))(t, "of another epoch", false)
	equal(t, "events at first", events(), 0)
	equal(t, "winners of 16", concurrently(t, 16, func(int) (bool, error) { return w.breakConnection(ctx, t, made, 1) }), 1)
	got := found(w.Connections.Connection(ctx, ws.ID, made.ID))(t)
	equal(t, "status", got.Status, connection.NeedsReconnect)
	equal(t, "problem", got.Problem, "revoked")
	equal(t, "events", events(), 1)
	equal(t, "pending events", len(must(w.Triggers.DuePendingEvents(ctx, clock.Now().Add(time.Minute), 100))(t)), 1)
	equal(t, "deliveries", len(must(w.Webhooks.Deliveries(ctx, ws.ID, hook.ID, webhook.Filter{}, fullPage))(t).Items), 1)

	returns(w.Connections.SetConnectionStatus(ctx, ws.ID, made.ID, 1, connection.Connected, ""))(t, "a success of before", false)
	returns(w.Connections.UpdateConnection(ctx, made, 1, nil))(t, "a test of before", false)
	equal(t, "status", found(w.Connections.Connection(ctx, ws.ID, made.ID))(t).Status, connection.NeedsReconnect)
	next := made
	next.Epoch = 2
	returns(w.Connections.UpdateConnection(ctx, next, 1, nil))(t, "reconnect", true)
	returns(w.breakConnection(ctx, t, made, 2))(t, "break it again", true)
	equal(t, "events", events(), 2)
	w.notified.take()
}

func newClaim(c connection.Sealed, node string, at time.Time) connection.Claim {
	return connection.Claim{WorkspaceID: c.WorkspaceID, ID: c.ID, Epoch: c.Epoch, Node: node, At: at, Until: at.Add(time.Minute)}
}

// testClaimRenewal checks that one caller at a time renews a credential.
func testClaimRenewal(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t).ID, clock.Now()
	made := w.connection(t, ws, "shop")
	claim := func(at time.Time) (bool, error) { return w.Connections.ClaimRenewal(ctx, newClaim(made, "node_1", at)) }
	equal(t, "winners of 32", concurrently(t, 32, func(int) (bool, error) { return claim(now) }), 1)
	returns(claim(now.Add(59*time.Second)))(t, "before it ends", false)
	extended := newClaim(made, "node_1", now.Add(30*time.Second))
	extended.Extends = newClaim(made, "node_1", now.Add(time.Second)).Until
	returns(w.Connections.ClaimRenewal(ctx, extended))(t, "extend another claim", false)
	extended.Extends = newClaim(made, "node_1", now).Until
	returns(w.Connections.ClaimRenewal(ctx, extended))(t, "extend it", true)
	returns(claim(now.Add(time.Minute)))(t, "after the end that it had before", false)
	now = now.Add(30 * time.Second)
	later := now.Add(time.Minute)
	returns(claim(later))(t, "after it ended", true)

	// What others record about the connection does not end a claim.
	returns(w.Connections.SetConnectionStatus(ctx, ws, made.ID, 1, connection.Connected, ""))(t, "set the status", true)
	returns(w.Connections.UpdateConnection(ctx, made, 1, nil))(t, "record a test", true)
	returns(claim(later))(t, "after others recorded something", false)
	for _, other := range []connection.Claim{newClaim(made, "node_1", now), newClaim(made, "node_2", later)} {
		returns(true, w.Connections.ReleaseRenewal(ctx, other))(t, "release the claim of another", true)
	}
	returns(claim(later))(t, "after others gave up", false)
	returns(true, w.Connections.ReleaseRenewal(ctx, newClaim(made, "node_1", later)))(t, "give up", true)
	returns(claim(now))(t, "after it gave up", true)
	next := made
	next.Epoch = 2
	returns(w.Connections.UpdateConnection(ctx, next, 1, nil))(t, "renew", true)
	returns(claim(now.Add(time.Hour)))(t, "of an earlier epoch", false)
	made = next
	returns(claim(now))(t, "of the next epoch", true)

	// A change that keeps the token does not end a claim.
	held := newClaim(made, "node_1", now)
	next.Epoch, next.KeepClaim = 3, true
	returns(w.Connections.UpdateConnection(ctx, next, 2, nil))(t, "change", true)
	made = next
	returns(claim(now))(t, "after a change that keeps the token", false)
	returns(true, w.Connections.ReleaseRenewal(ctx, held))(t, "give up after a change", true)
	returns(claim(now))(t, "after it gave up", true)
	returns(w.breakConnection(ctx, t, made, 3))(t, "break it", true)
	w.notified.take()
	returns(true, w.Connections.ReleaseRenewal(ctx, newClaim(made, "node_1", now)))(t, "give up", true)
	returns(claim(now))(t, "of a broken connection", false)
	test := newClaim(made, "node_2", now)
	test.Broken = true
	returns(w.Connections.ClaimRenewal(ctx, test))(t, "of a broken connection that is tested", true)
	returns(w.Connections.ClaimRenewal(ctx, test))(t, "of two tests", false)
}

// testRenewalClaims checks that a claim ends with its node.
func testRenewalClaims(t *testing.T, tm *cluster) {
	ctx, ws, now := t.Context(), tm.workspace(t).ID, clock.Now()
	made := tm.connection(t, ws, "shop")
	claim := func(i int) (bool, error) {
		return tm.nodes[i].Connections.ClaimRenewal(ctx, newClaim(made, tm.nodes[i].node, now))
	}
	equal(t, "winners of 30 on all nodes", concurrently(t, 30, func(i int) (bool, error) { return claim(i % len(tm.nodes)) }), 1)
	var owner string
	for _, node := range collect(t, tm.harness, `SELECT renewing_node FROM connections WHERE id = $1`, []any{made.ID}, text) {
		owner = node
	}
	var other int
	for i, node := range tm.nodes {
		if node.node != owner {
			other = i
		}
	}
	returns(claim(other))(t, "while its node lives", false)
	tm.setDead(t, owner, true)
	returns(claim(other))(t, "after its node died", true)
	tm.exec(t, `DELETE FROM nodes WHERE id = $1`, tm.nodes[other].node)
	for i, node := range tm.nodes {
		if node.node != owner && i != other {
			returns(claim(i))(t, "after its node was removed", true)
		}
	}
}

// awaitConnection starts a run with a step that waits for a connection.
func (w *harness) awaitConnection(t *testing.T, of workflow.Workflow, name string, release bool) run.Run {
	t.Helper()
	r := w.start(t, of, "node_1")
	steps := []run.Step{waitingStep("call", 1, action.AwaitsConnection(name)), waitingStep("ask", 2, action.AwaitsAnswer)}
	returns(w.Commit(t.Context(), firstLease(r), r, run.Decision{Rev: 1, Steps: steps, Release: release, WakeAt: *steps[0].WakeAt}))(t, "wait", true)
	w.notified.take()
	return r
}

func testWakeSteps(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	waits, owned, other := w.awaitConnection(t, wf, "shop", true), w.awaitConnection(t, wf, "shop", false), w.awaitConnection(t, wf, "other", true)
	equal(t, "waiting runs", w.usage(t, ws.ID, "shop").Waiting, 2)
	at := clock.Now()
	returns(w.Connections.WakeSteps(ctx, ws.ID, "shop", at))(t, "more to wake", false)
	wake := run.Wake{RunID: waits.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: at, Plan: ws.Plan}
	equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}, AnswersArrived: []string{owned.ID}})
	equal(t, "queue", w.queue(t, waits.ID), &queued{Epoch: 1, WakeAt: &at})
	steps := found(w.Leases.Snapshot(ctx, waits.ID))(t).Steps
	equal(t, "the step", steps[0].WakeAt, &at)
	if !steps[1].WakeAt.After(at) {
		t.Error("a step that waits for an answer was woken")
	}
	if step := found(w.Leases.Snapshot(ctx, other.ID))(t).Steps[0]; !step.WakeAt.After(at) {
		t.Error("a step that waits for another connection was woken")
	}
	returns(w.Connections.WakeSteps(ctx, ws.ID, "shop", at))(t, "again", false)
	equal(t, "notifications of the second time", w.notified.take(), notifications{})

	t.Run("in batches", func(t *testing.T) {
		const runs = 230
		for range runs {
			w.awaitConnection(t, wf, "busy", true)
		}
		woken := 0
		for more := true; more; {
			more = must(w.Connections.WakeSteps(ctx, ws.ID, "busy", clock.Now()))(t)
			woken += len(w.notified.take().Wakes)
		}
		equal(t, "woken runs", woken, runs)
	})
}

func testEndingConnections(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t).ID, clock.Now()
	ending := func() (names []string) {
		for _, c := range must(w.Connections.EndingConnections(ctx, now, 100))(t) {
			if c.WorkspaceID == ws {
				names = append(names, c.Name)
			}
		}
		return names
	}
	made := map[string]connection.Sealed{}
	for name, warnIn := range map[string]time.Duration{"later": time.Hour, "soon": -time.Hour, "sooner": -2 * time.Hour, "broken": -time.Minute} {
		c := newConnection(ws, name)
		c.ConsentEndsAt, c.WarnAt = new(now.Add(24*time.Hour)), new(now.Add(warnIn))
		returns(w.insertConnection(ctx, c, noLimit))(t, "insert", connection.Created)
		equal(t, "read", found(w.Connections.SealedConnection(ctx, ws, name))(t), c)
		made[name] = c
	}
	returns(w.breakConnection(ctx, t, made["broken"], 1))(t, "break one", true)
	equal(t, "which end", ending(), []string{"sooner", "soon"})
	if all := must(w.Connections.EndingConnections(ctx, now, 1))(t); len(all) != 1 {
		t.Errorf("%d connections, want 1", len(all))
	}
	soon := made["soon"]
	warning := newEvent(t, event.ConnectionEnding, event.Subject{WorkspaceID: ws})
	stale := soon.Connection
	stale.Epoch++
	returns(w.Connections.WarnConnection(ctx, stale, warning))(t, "warn of another epoch", false)
	returns(w.Connections.WarnConnection(ctx, soon.Connection, warning))(t, "warn", true)
	returns(w.Connections.WarnConnection(ctx, soon.Connection, warning))(t, "warn again", false)
	equal(t, "which end without the one", ending(), []string{"sooner"})
	returns(w.Connections.UpdateConnection(ctx, soon, 1, nil))(t, "record a test", true)
	equal(t, "which end after a test", ending(), []string{"sooner"})
	soon.Epoch = 2
	returns(w.Connections.UpdateConnection(ctx, soon, 1, nil))(t, "renew", true)
	equal(t, "which end after a renewal", ending(), []string{"sooner", "soon"})
	w.notified.take()
}

func testMarkConnectionsUsed(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	one, two := w.connection(t, ws, "one"), w.connection(t, ws, "two")
	now := clock.Now()
	for _, used := range []map[string]time.Time{
		{one.ID: now, two.ID: now.Add(time.Second), "conn_none": now}, {one.ID: now.Add(time.Minute), two.ID: now}, {},
	} {
		if err := w.Connections.MarkConnectionsUsed(ctx, used); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "last use", found(w.Connections.Connection(ctx, ws, one.ID))(t).LastUsedAt, new(now.Add(time.Minute)))
	equal(t, "last use, written in another order", found(w.Connections.Connection(ctx, ws, two.ID))(t).LastUsedAt, new(now.Add(time.Second)))
	next := one
	next.Epoch = 2
	returns(w.Connections.UpdateConnection(ctx, next, 1, nil))(t, "update", true)
	equal(t, "last use after an update", found(w.Connections.Connection(ctx, ws, one.ID))(t).LastUsedAt, new(now.Add(time.Minute)))
}

// testConnectionTenants checks that connections are not visible in another workspace.
func testConnectionTenants(t *testing.T, w *harness) {
	ctx := t.Context()
	owner, stranger := w.workspace(t), w.workspace(t)
	made := w.connection(t, owner.ID, "shop")
	change := using(w.workflow(t, owner.ID), "shop")
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "use it", true)
	waits := w.awaitConnection(t, change.Workflow, "shop", true)

	missing(w.Connections.Connection(ctx, stranger.ID, made.ID))(t, "connection")
	missing(w.Connections.SealedConnection(ctx, stranger.ID, "shop"))(t, "by name")
	equal(t, "names", must(w.Connections.ConnectionNames(ctx, stranger.ID))(t), []connection.Name{})
	for _, page := range []paging.Request{fullPage, {Limit: 1}, {Limit: 1, After: "a"}} {
		empty(w.Connections.Connections(ctx, stranger.ID, page))(t, "connections")
	}
	equal(t, "usage", must(w.Connections.ConnectionUsage(ctx, stranger.ID, []string{"shop"}))(t), map[string]connection.Usage{})
	theirs := made
	theirs.WorkspaceID = stranger.ID
	entry := newEntry(stranger.ID, "attempt", "attempt")
	returns(w.Connections.UpdateConnection(ctx, theirs, 1, &entry))(t, "update", false)
	returns(w.Connections.ChangeConnection(ctx, newlyNamed(theirs, "mine"), theirs.Connection, entry))(t, "rename", connection.Stale)
	returns(w.Connections.SetConnectionStatus(ctx, stranger.ID, made.ID, 1, connection.Failing, "x"))(t, "set the status", false)
	returns(w.breakConnection(ctx, t, theirs, 1))(t, "break it", false)
	returns(w.Connections.ClaimRenewal(ctx, newClaim(theirs, "node_1", clock.Now())))(t, "claim", false)
	deleted, users, err := w.Connections.DeleteConnection(ctx, stranger.ID, made.ID, entry)
	returns(deleted != nil, err)(t, "delete", false)
	equal(t, "reported users", len(users), 0)
	returns(w.Connections.WakeSteps(ctx, stranger.ID, "shop", clock.Now()))(t, "wake", false)
	equal(t, "notifications", w.notified.take(), notifications{})
	equal(t, "audit entries", w.audited(t, stranger.ID, "attempt"), 0)
	equal(t, "usage", must(w.Usage.UsageCurrent(ctx, stranger.ID))(t), usage.Current{APIKeys: 1})
	equal(t, "of the owner", found(w.Connections.SealedConnection(ctx, owner.ID, "shop"))(t), made)
	returns(w.insertConnection(ctx, newConnection(stranger.ID, "shop"), noLimit))(t, "the same name", connection.Created)
	equal(t, "waiting runs of the owner", w.usage(t, owner.ID, "shop").Waiting, 1)
	returns(w.Runs.CancelRun(ctx, newCancellation(t, waits)))(t, "cancel", true)
	w.notified.take()
}

func limitedConnections(t *testing.T, w *harness, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			outcome, err := w.insertConnection(ctx, newConnection(workspaceID, uid.New(uid.Event)), atMost)
			if outcome == connection.NameTaken {
				err = errors.New("the name is taken")
			}
			return outcome == connection.Created, err
		},
		remove: func() (bool, error) {
			last := must(w.Connections.Connections(ctx, workspaceID, fullPage))(t).Items[0]
			return w.deleteConnection(ctx, connection.Sealed{Connection: last})
		},
		listed: func() int { return len(must(w.Connections.Connections(ctx, workspaceID, fullPage))(t).Items) },
		count:  func(c usage.Current) int { return c.Connections },
	}
}

func listConnections(t *testing.T, w *harness) pagedList {
	ws := w.workspace(t).ID
	return pagedList{
		kind: uid.Event, byName: true,
		insert: func(ctx context.Context, name string) error {
			outcome, err := w.insertConnection(ctx, newConnection(ws, name), noLimit)
			return rejected(outcome == connection.Created, err)
		},
		remove: func(ctx context.Context, name string) error {
			c, err := w.Connections.SealedConnection(ctx, ws, name)
			if err != nil || c == nil {
				return rejected(false, err)
			}
			return rejected(w.deleteConnection(ctx, *c))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Connections.Connections(ctx, ws, page)
			return idsOf(got, err, func(c connection.Connection) string { return c.Name })
		},
	}
}
