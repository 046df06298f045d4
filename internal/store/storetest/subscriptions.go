package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// called returns a trigger that a service calls with a connection. Triggers without settings
// share the subscription of the connection.
func called(id, connection, settings string) workflow.Armed {
	return workflow.Armed{
		ID: id, Type: workflow.ServiceTrigger, Spec: id + connection + settings,
		Hook: &workflow.ArmedHook{Name: "bot.updates", Connection: connection, Settings: settings},
	}
}

// self is the node that claims subscriptions.
const self = "node_1"

func testSubscriptions(t *testing.T, w *harness) {
	t.Run("follow the triggers", func(t *testing.T) { testSubscribe(t, w) })
	t.Run("are shared", func(t *testing.T) { testSharedSubscription(t, w) })
	t.Run("are claimed", func(t *testing.T) { testClaimSubscription(t, w) })
	t.Run("are shared out between workspaces", func(t *testing.T) { testDueSubscriptions(t, w) })
	t.Run("belong to their workspace", func(t *testing.T) { testSubscriptionTenants(t, w) })
	t.Run("make polls due", func(t *testing.T) { testPollNow(t, w) })
}

// subscriptions returns those of the triggers of a workflow.
func (w *harness) subscriptions(t *testing.T, of workflow.Workflow) []subscription.Subscription {
	t.Helper()
	var targets []string
	for _, one := range must(w.Triggers.Triggers(t.Context(), of.WorkspaceID, of.ID))(t) {
		if one.Subscription != "" {
			targets = append(targets, one.Subscription)
		}
	}
	return must(w.Subscriptions.SubscriptionsFor(t.Context(), of.WorkspaceID, targets))(t)
}

// due returns the due subscriptions of a workspace.
func (w *harness) dueSubscriptions(t *testing.T, ws auth.Workspace) []subscription.Subscription {
	t.Helper()
	var out []subscription.Subscription
	for _, one := range must(w.Subscriptions.DueSubscriptions(t.Context(), self, clock.Steady(), 1000))(t) {
		if one.WorkspaceID == ws.ID {
			out = append(out, one)
		}
	}
	return out
}

// settle stores a subscription as one for which there is nothing to do.
func (w *harness) settle(t *testing.T, s subscription.Subscription) {
	t.Helper()
	was := *s.NextAt
	now := clock.Steady()
	returns(w.Subscriptions.ClaimSubscription(t.Context(), s, self, now, now.Add(time.Minute)))(t, "claim", true)
	s.NextAt, s.Registered, s.BaseURL = nil, true, "https://one.example"
	s.Sealed, s.TokenHash = []byte("sealed"), []byte("hash of "+s.ID)
	if err := w.Subscriptions.SaveSubscription(t.Context(), s, was, true); err != nil {
		t.Fatal(err)
	}
}

func testSubscribe(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	c := w.connection(t, ws.ID, "my-bot")
	made := w.withTriggers(t, ws.ID, called("a", "my-bot", "one"), called("b", "nobody", "one"), scheduled("c", "1", clock.Now().Add(time.Hour)))
	all := w.subscriptions(t, made)
	equal(t, "number", len(all), 1)
	first := all[0]
	equal(t, "target", first.Target, c.ID+"/bot.updates/"+made.ID+"/a/one")
	equal(t, "hook", first.Hook, "bot.updates")
	equal(t, "connection", first.ConnectionID, c.ID)
	equal(t, "registered", first.Registered, false)
	equal(t, "due", len(w.dueSubscriptions(t, ws)), 1)
	need := must(w.Subscriptions.SubscriptionNeed(ctx, first))(t)
	equal(t, "name of the connection", need.Connection, "my-bot")
	equal(t, "account", need.Account, c.Account)
	equal(t, "triggers", len(need.Triggers), 1)
	w.settle(t, first)
	equal(t, "due once there is nothing to do", len(w.dueSubscriptions(t, ws)), 0)

	change := withNewTriggers(made, workflow.Active, called("a", "my-bot", "one"))
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "an edit of something else", true)
	equal(t, "due after that", len(w.dueSubscriptions(t, ws)), 0)

	change = withNewTriggers(change.Workflow, workflow.Active, called("a", "my-bot", "two"))
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "other settings", true)
	due := w.dueSubscriptions(t, ws)
	equal(t, "due after that", len(due), 2)
	equal(t, "need of the old one", len(must(w.Subscriptions.SubscriptionNeed(ctx, first))(t).Triggers), 0)
	second := w.subscriptions(t, change.Workflow)[0]
	if second.ID == first.ID {
		t.Error("other settings have the same subscription")
	}
	w.settle(t, second)

	paused := workflow.Armed{ID: "a", Type: workflow.ServiceTrigger, Spec: "paused"}
	change = withNewTriggers(change.Workflow, workflow.Paused, paused)
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "pause", true)
	equal(t, "due after a pause", len(w.dueSubscriptions(t, ws)), 2)
	w.deleteWorkflow(t, change.Workflow)
	for _, one := range w.dueSubscriptions(t, ws) {
		returns(w.Subscriptions.DeleteSubscription(ctx, one, *one.NextAt))(t, "delete", true)
	}
	equal(t, "rows", w.count(t, `SELECT count(*) FROM subscriptions WHERE workspace_id = $1`, ws.ID), 0)
}

func testSharedSubscription(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	c := w.connection(t, ws.ID, "my-bot")
	one := w.withTriggers(t, ws.ID, called("a", "my-bot", ""), called("b", "my-bot", ""))
	shared := w.subscriptions(t, one)
	equal(t, "number", len(shared), 1)
	equal(t, "target", shared[0].Target, c.ID+"/bot.updates")
	w.settle(t, shared[0])
	two := w.withTriggers(t, ws.ID, called("a", "my-bot", ""))
	equal(t, "the same", w.subscriptions(t, two)[0].ID, shared[0].ID)
	found, need, err := w.Subscriptions.SubscriptionByToken(ctx, []byte("hash of "+shared[0].ID))
	if err != nil || found == nil {
		t.Fatal(found, err)
	}
	equal(t, "triggers", len(need.Triggers), 3)
	w.settle(t, w.dueSubscriptions(t, ws)[0])

	change := withNewTriggers(one, workflow.Paused)
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "pause one", true)
	due := w.dueSubscriptions(t, ws)
	equal(t, "due", len(due), 1)
	returns(w.Subscriptions.DeleteSubscription(ctx, due[0], *due[0].NextAt))(t, "delete one that is needed", false)
	w.deleteWorkflow(t, two)
	due = w.dueSubscriptions(t, ws)
	equal(t, "need", len(must(w.Subscriptions.SubscriptionNeed(ctx, due[0]))(t).Triggers), 0)
	returns(w.Subscriptions.DeleteSubscription(ctx, due[0], *due[0].NextAt))(t, "delete", true)
	gone, _, err := w.Subscriptions.SubscriptionByToken(ctx, []byte("hash of "+shared[0].ID))
	if gone != nil || err != nil {
		t.Error("a deleted one is found", gone, err)
	}
}

// What becomes due while a node works on it stays due, with what that node has done.
func testClaimSubscription(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t), clock.Steady()
	w.connection(t, ws.ID, "my-bot")
	made := w.withTriggers(t, ws.ID, called("a", "my-bot", ""))
	s := w.dueSubscriptions(t, ws)[0]
	was, until := *s.NextAt, now.Add(time.Minute)
	returns(w.Subscriptions.ClaimSubscription(ctx, s, self, now, until))(t, "claim", true)
	returns(w.Subscriptions.ClaimSubscription(ctx, s, self, now, until))(t, "claim again", false)
	equal(t, "due while it is claimed", len(w.dueSubscriptions(t, ws)), 0)
	later := must(w.Subscriptions.DueSubscriptions(ctx, "node_2", clock.Steady(), 1000))(t)
	if !slices.ContainsFunc(later, func(one subscription.Subscription) bool { return one.ID == s.ID }) {
		t.Error("the claim of a node that is gone still holds")
	}
	returns(w.Subscriptions.ClaimSubscription(ctx, s, self, until, until.Add(time.Minute)))(t, "claim after that has ended", true)

	half := s
	half.NextAt = nil
	if err := w.Subscriptions.SaveSubscription(ctx, half, was, false); err != nil {
		t.Fatal(err)
	}
	left := must(w.Subscriptions.DueSubscriptions(ctx, "node_2", clock.Steady(), 1000))(t)
	if !slices.ContainsFunc(left, func(one subscription.Subscription) bool { return one.ID == s.ID && one.NextAt.Equal(was) }) {
		t.Error("what a node that is gone has begun is not due any more")
	}
	returns(w.Workflows.UpdateWorkflow(ctx, withNewTriggers(made, workflow.Paused)))(t, "pause meanwhile", true)
	s.NextAt, s.Registered, s.Sealed, s.TokenHash = nil, true, []byte("sealed"), []byte("hash of "+s.ID)
	s.Error, s.Failures, s.ExpiresAt = &trigger.Note{At: clock.Now(), Code: "c", Message: "m"}, 3, &until
	if err := w.Subscriptions.SaveSubscription(ctx, s, was, false); err != nil {
		t.Fatal(err)
	}
	equal(t, "due before the claim ends", len(w.dueSubscriptions(t, ws)), 0)
	returns(w.Subscriptions.DeleteSubscription(ctx, s, was))(t, "delete what has become due again", false)
	if err := w.Subscriptions.SaveSubscription(ctx, s, was, true); err != nil {
		t.Fatal(err)
	}
	again := w.dueSubscriptions(t, ws)
	equal(t, "due after the claim has ended", len(again), 1)
	kept := again[0]
	if kept.NextAt.Equal(was) {
		t.Error("it is due since it was claimed")
	}
	kept.NextAt = nil
	equal(t, "what was done", kept, s)
}

func testDueSubscriptions(t *testing.T, w *harness) {
	many, few := w.workspace(t), w.workspace(t)
	w.connection(t, many.ID, "my-bot")
	w.connection(t, few.ID, "my-bot")
	for range 6 {
		w.withTriggers(t, many.ID, called("a", "my-bot", "one"))
	}
	w.withTriggers(t, few.ID, called("a", "my-bot", "one"))
	equal(t, "of a workspace with many", len(w.dueSubscriptions(t, many)), 4)
	equal(t, "of another one", len(w.dueSubscriptions(t, few)), 1)
	first := w.dueSubscriptions(t, many)[0]
	if next := must(w.Subscriptions.NextSubscription(t.Context(), self, clock.Steady()))(t); next == nil || next.After(*first.NextAt) {
		t.Errorf("the next one is due at %v, the first one at %v", next, first.NextAt)
	}
	now := clock.Steady()
	for _, one := range w.dueSubscriptions(t, many) {
		returns(w.Subscriptions.ClaimSubscription(t.Context(), one, self, now, now.Add(time.Minute)))(t, "claim", true)
	}
	equal(t, "due while four are worked on", len(w.dueSubscriptions(t, many)), 0)
	equal(t, "due of another one meanwhile", len(w.dueSubscriptions(t, few)), 1)
	w.exec(t, `UPDATE subscriptions SET claimed_until = NULL WHERE workspace_id = $1`, many.ID)
	for _, ws := range []auth.Workspace{many, few} {
		for due := w.dueSubscriptions(t, ws); len(due) > 0; due = w.dueSubscriptions(t, ws) {
			for _, one := range due {
				w.settle(t, one)
			}
		}
	}
	if err := w.Subscriptions.RecheckSubscriptions(t.Context(), "https://one.example", clock.Steady()); err != nil {
		t.Fatal(err)
	}
	equal(t, "due with the same public URL", len(w.dueSubscriptions(t, few)), 0)
	if err := w.Subscriptions.RecheckSubscriptions(t.Context(), "https://two.example", clock.Steady()); err != nil {
		t.Fatal(err)
	}
	equal(t, "due with another one", len(w.dueSubscriptions(t, few)), 1)
}

func testSubscriptionTenants(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t), w.workspace(t)
	w.connection(t, ws.ID, "my-bot")
	made := w.withTriggers(t, stranger.ID, called("a", "my-bot", ""))
	equal(t, "subscriptions with the connection of another workspace", len(w.subscriptions(t, made)), 0)
	made = w.withTriggers(t, ws.ID, called("a", "my-bot", ""))
	s := w.subscriptions(t, made)[0]
	equal(t, "found by a stranger", len(must(w.Subscriptions.SubscriptionsFor(ctx, stranger.ID, []string{s.Target}))(t)), 0)
	foreign := s
	foreign.WorkspaceID = stranger.ID
	now := clock.Steady()
	returns(w.Subscriptions.ClaimSubscription(ctx, foreign, self, now, now.Add(time.Minute)))(t, "claimed by a stranger", false)
	returns(w.Subscriptions.DeleteSubscription(ctx, foreign, *s.NextAt))(t, "deleted by a stranger", false)
	need := must(w.Subscriptions.SubscriptionNeed(ctx, foreign))(t)
	equal(t, "need", need, subscription.Need{})
}

func testPollNow(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t), clock.Steady()
	due, later := now.Add(-time.Second), now.Add(time.Hour)
	made := w.withTriggers(t, ws.ID, workflow.Armed{ID: "p", Type: workflow.ServiceTrigger, Spec: "1", NextAt: &later})
	call := func(at time.Time) {
		t.Helper()
		if err := w.Triggers.PollNow(ctx, w.trigger(t, made, "p"), at); err != nil {
			t.Fatal(err)
		}
	}
	call(now)
	equal(t, "due", w.trigger(t, made, "p").NextAt, &now)
	call(now.Add(time.Minute))
	equal(t, "due later than it was", w.trigger(t, made, "p").NextAt, &now)

	claim := now.Add(2 * time.Minute)
	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: w.trigger(t, made, "p"), Next: &claim, Claims: true}))(t, "claim", true)
	call(due)
	polling := w.trigger(t, made, "p")
	equal(t, "while it is polled", polling.NextAt, &claim)
	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: polling, Next: &later}))(t, "end the poll", true)
	again := w.trigger(t, made, "p")
	if !again.NextAt.Before(claim) {
		t.Errorf("it is due at %s, although it was called during the poll", again.NextAt)
	}

	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: again, Next: &claim, Claims: true}))(t, "claim", true)
	call(due)
	start := newFiring(t, made, "p", run.Fire{Was: &claim, Next: &claim, State: []byte("part")})
	start.Run.Trigger.Type = workflow.ServiceTrigger
	returns(w.Runs.StartRun(ctx, start))(t, "a part of the poll", true)
	equal(t, "after a part", w.trigger(t, made, "p").NextAt, &claim)
	start = newFiring(t, made, "p", run.Fire{Was: &claim, Next: &later, State: []byte("all")})
	start.Run.Trigger.Type = workflow.ServiceTrigger
	returns(w.Runs.StartRun(ctx, start))(t, "the rest of it", true)
	if ended := w.trigger(t, made, "p"); !ended.NextAt.Before(claim) {
		t.Errorf("it is due at %s, although it was called during the poll", ended.NextAt)
	}
	quiet := w.trigger(t, made, "p")
	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: quiet, Next: &claim, Claims: true}))(t, "claim", true)
	quiet.NextAt = &claim
	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: quiet, Next: &later}))(t, "a poll without a call", true)
	equal(t, "after a poll without a call", w.trigger(t, made, "p").NextAt, &later)
}
