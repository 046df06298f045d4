package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

const botHook = "bot.updates"

func testAppCalls(t *testing.T, w *harness) {
	t.Run("find the connections of an account", func(t *testing.T) { testCallees(t, w) })
	t.Run("wait until they are handed out", func(t *testing.T) { testWaitingAppCalls(t, w) })
	t.Run("are shared out between accounts", func(t *testing.T) { testDueAppCalls(t, w) })
}

// installed makes a connection that was made with an app, and an active workflow that is
// called for it.
func (w *harness) installed(t *testing.T, ws auth.Workspace, app, account string) (connection.Sealed, workflow.Workflow) {
	t.Helper()
	made := newConnection(ws.ID, "my-"+app+account)
	made.App, made.Learned = app, map[string]string{integration.Account: account}
	returns(w.insertConnection(t.Context(), made, noLimit))(t, "insert a connection", connection.Created)
	return made, w.withTriggers(t, ws.ID, called("a", made.Name, ""))
}

// calleesOf returns the workspaces that a call is for.
func (w *harness) calleesOf(t *testing.T, app, account string) []string {
	t.Helper()
	out := []string{}
	for _, one := range must(w.Subscriptions.Callees(t.Context(), botHook, app, account))(t) {
		out = append(out, one.WorkspaceID)
	}
	slices.Sort(out)
	return out
}

// A call is for the connections that were made with the app and have the account, as they are
// now: neither another app nor another account of a workspace has a part in it.
func testCallees(t *testing.T, w *harness) {
	ctx, first, second := t.Context(), w.workspace(t), w.workspace(t)
	app, other := uid.New(uid.OAuthApp), uid.New(uid.OAuthApp)
	one, _ := w.installed(t, first, app, "T1")
	w.installed(t, second, app, "T2")
	w.installed(t, second, other, "T1")
	both := []string{first.ID, second.ID}
	slices.Sort(both)
	equal(t, "of the first account", w.calleesOf(t, app, "T1"), []string{first.ID})
	equal(t, "of the second one", w.calleesOf(t, app, "T2"), []string{second.ID})
	equal(t, "of the other app", w.calleesOf(t, other, "T1"), []string{second.ID})
	equal(t, "of no account", w.calleesOf(t, app, ""), []string{})
	equal(t, "of another hook", len(must(w.Subscriptions.Callees(ctx, "bot.others", app, "T1"))(t)), 0)
	equal(t, "in one workspace", len(must(w.Subscriptions.CalleesIn(ctx, second.ID, botHook, app))(t)), 1)
	called := must(w.Subscriptions.CalledAccounts(ctx, botHook, app, []string{"T1", "T2", "T3"}))(t)
	slices.Sort(called)
	equal(t, "accounts", called, []string{"T1", "T2"})

	moved := one
	moved.Learned, moved.Epoch = map[string]string{integration.Account: "T2"}, 2
	entry := newEntry(first.ID, "connection.reconnected", one.ID)
	returns(w.Connections.UpdateConnection(ctx, moved, 1, &entry))(t, "connect another account", true)
	equal(t, "of the first account then", w.calleesOf(t, app, "T1"), []string{})
	equal(t, "of the second one then", w.calleesOf(t, app, "T2"), both)
	moved.App, moved.Epoch = other, 3
	entry = newEntry(first.ID, "connection.reconnected", one.ID)
	returns(w.Connections.UpdateConnection(ctx, moved, 2, &entry))(t, "connect with another app", true)
	equal(t, "of the app that it has left", w.calleesOf(t, app, "T2"), []string{second.ID})
	equal(t, "of its app now", w.calleesOf(t, other, "T2"), []string{first.ID})

	if err := w.Connections.SetConnectionApp(ctx, first.ID, one.ID, 2, app); err != nil {
		t.Fatal(err)
	}
	equal(t, "after a change that came too late", w.calleesOf(t, other, "T2"), []string{first.ID})
	if err := w.Connections.SetConnectionApp(ctx, second.ID, one.ID, 3, app); err != nil {
		t.Fatal(err)
	}
	equal(t, "after a change by a stranger", w.calleesOf(t, other, "T2"), []string{first.ID})

	_, flow := w.installed(t, first, app, "T3")
	equal(t, "of a third account", w.calleesOf(t, app, "T3"), []string{first.ID})
	returns(w.Workflows.UpdateWorkflow(ctx, withNewTriggers(flow, workflow.Paused)))(t, "pause", true)
	equal(t, "while the workflow is paused", w.calleesOf(t, app, "T3"), []string{})
	equal(t, "accounts while the workflow is paused", len(must(w.Subscriptions.CalledAccounts(ctx, botHook, app, []string{"T3"}))(t)), 0)
}

func newAppCall(ws auth.Workspace, app, account string) subscription.AppCall {
	return subscription.AppCall{
		ID: uid.New(uid.AppCall), WorkspaceID: ws.ID, Hook: botHook, App: app, Account: account, Sealed: []byte("sealed"),
		ReceivedAt: clock.Now(), NextAt: clock.Steady(),
	}
}

// dueCalls returns the due calls for an app.
func (w *harness) dueCalls(t *testing.T, app string) (due []subscription.AppCall) {
	t.Helper()
	for _, one := range must(w.Subscriptions.DueAppCalls(t.Context(), clock.Steady(), 10_000))(t) {
		if one.App == app {
			due = append(due, one)
		}
	}
	return due
}

func (w *harness) insertCalls(t *testing.T, calls ...subscription.AppCall) {
	t.Helper()
	if err := w.Subscriptions.InsertAppCalls(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
}

func testWaitingAppCalls(t *testing.T, w *harness) {
	ctx, ws, app := t.Context(), w.workspace(t), uid.New(uid.OAuthApp)
	call := newAppCall(ws, app, "T1")
	w.insertCalls(t, call)
	equal(t, "due", w.dueCalls(t, app), []subscription.AppCall{call})
	if next := must(w.Subscriptions.NextAppCall(ctx))(t); next == nil || next.After(call.NextAt) {
		t.Errorf("the next call is due at %v", next)
	}
	until := clock.Steady().Add(time.Minute)
	returns(w.Subscriptions.PostponeAppCall(ctx, call, until, 1))(t, "postpone", true)
	returns(w.Subscriptions.PostponeAppCall(ctx, call, until, 1))(t, "postpone what another node has", false)
	equal(t, "due then", len(w.dueCalls(t, app)), 0)
	if err := w.Subscriptions.DeleteAppCall(ctx, call); err != nil {
		t.Fatal(err)
	}
	equal(t, "rows", w.count(t, `SELECT count(*) FROM app_calls WHERE app = $1`, app), 0)
}

// What is kept for one account is bounded, and a few of its calls are handed out at a time.
func testDueAppCalls(t *testing.T, w *harness) {
	ctx, ws, app := t.Context(), w.workspace(t), uid.New(uid.OAuthApp)
	for n := range 10 {
		var many []subscription.AppCall
		for range 100 {
			many = append(many, newAppCall(ws, app, "busy"))
		}
		if n == 0 {
			many[0].Sealed = make([]byte, 1<<20)
		}
		w.insertCalls(t, many...)
	}
	if err := w.Subscriptions.InsertAppCalls(ctx, []subscription.AppCall{newAppCall(ws, app, "quiet"), newAppCall(ws, app, "busy")}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("too many calls: %v", err)
	}
	large := newAppCall(ws, app, "large")
	large.Sealed = make([]byte, 33<<20)
	if err := w.Subscriptions.InsertAppCalls(ctx, []subscription.AppCall{large}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("too many bytes: %v", err)
	}
	equal(t, "rows of a call that was rejected", w.count(t, `SELECT count(*) FROM app_calls WHERE app = $1 AND account_id = 'quiet'`, app), 0)
	w.insertCalls(t, newAppCall(ws, app, "quiet"))
	byAccount := map[string]int{}
	for _, one := range w.dueCalls(t, app) {
		byAccount[one.Account]++
	}
	equal(t, "due", byAccount, map[string]int{"busy": 4, "quiet": 1})
	w.exec(t, `DELETE FROM app_calls WHERE app = $1`, app)
}
