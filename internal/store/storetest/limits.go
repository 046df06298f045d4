package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// limited is a kind of object of which a workspace may have a limited number.
type limited struct {
	insert func(atMost int) (bool, error)
	remove func() (bool, error) // the last one inserted
	listed func() int
	count  func(usage.Current) int
}

func testLimits(t *testing.T, w *harness) {
	for name, kind := range map[string]func(*testing.T, *harness, string) limited{
		"keys": limitedKeys, "workflows": limitedWorkflows, "webhooks": limitedWebhooks,
		"secrets": limitedSecrets, "variables": limitedVariables, "connections": limitedConnections,
	} {
		t.Run(name, func(t *testing.T) {
			const most = 10
			ws := w.workspace(t)
			l := kind(t, w, ws.ID)
			count := func() int {
				counted := l.count(must(w.Usage.UsageCurrent(t.Context(), ws.ID))(t))
				equal(t, "counted, beside what is listed", counted, l.listed())
				return counted
			}
			free := most - count()
			for range free - 3 {
				returns(l.insert(most))(t, "an insert below the limit", true)
			}
			equal(t, "inserts of 32 for the last 3 places", concurrently(t, 32, func(int) (bool, error) { return l.insert(most) }), 3)
			equal(t, "counted", count(), most)
			entries := w.count(t, `SELECT count(*) FROM audit WHERE workspace_id = $1`, ws.ID)
			returns(l.insert(most))(t, "an insert at the limit", false)
			equal(t, "audit entries of a refused insert", w.count(t, `SELECT count(*) FROM audit WHERE workspace_id = $1`, ws.ID), entries)
			returns(l.insert(most+1))(t, "an insert with a higher limit", true)
			returns(l.insert(0))(t, "an insert where nothing is allowed", false)
			returns(l.remove())(t, "a removal", true)
			returns(l.insert(most))(t, "an insert at the limit", false)
			returns(l.remove())(t, "a removal", true)
			returns(l.insert(most))(t, "an insert into the room that was made", true)
			equal(t, "counted", count(), most)
		})
	}
}

func limitedKeys(t *testing.T, w *harness, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			made := newKey(workspaceID)
			return w.Workspaces.InsertKey(ctx, made, atMost, newEntry(workspaceID, "api_key.created", made.ID))
		},
		remove: func() (bool, error) {
			last := must(w.Workspaces.Keys(ctx, workspaceID, fullPage))(t).Items[0]
			return w.Workspaces.RevokeKey(ctx, workspaceID, last.ID, clock.Now(), newEntry(workspaceID, "api_key.revoked", last.ID))
		},
		listed: func() int { return len(must(w.Workspaces.Keys(ctx, workspaceID, fullPage))(t).Items) },
		count:  func(c usage.Current) int { return c.APIKeys },
	}
}

func limitedWorkflows(t *testing.T, w *harness, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			made, first := newWorkflow(workspaceID)
			return w.Workflows.InsertWorkflow(ctx, made, first, atMost, newEntry(workspaceID, "workflow.created", made.ID))
		},
		remove: func() (bool, error) {
			last := must(w.Workflows.Workflows(ctx, workspaceID, workflow.Filter{}, fullPage))(t).Items[0]
			return w.Workflows.DeleteWorkflow(ctx, found(w.Workflows.Workflow(ctx, workspaceID, last.ID))(t), clock.Now(), newEntry(workspaceID, "workflow.deleted", last.ID))
		},
		listed: func() int {
			return len(must(w.Workflows.Workflows(ctx, workspaceID, workflow.Filter{}, fullPage))(t).Items)
		},
		count: func(c usage.Current) int { return c.Workflows },
	}
}

func limitedWebhooks(t *testing.T, w *harness, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			made := newWebhook(workspaceID)
			outcome, err := w.Webhooks.InsertWebhook(ctx, made, atMost, newEntry(workspaceID, "webhook.created", made.ID))
			if outcome != webhook.Done && outcome != webhook.TooMany {
				t.Errorf("got %v", outcome)
			}
			return outcome == webhook.Done, err
		},
		remove: func() (bool, error) {
			last := must(w.Webhooks.Webhooks(ctx, workspaceID, fullPage))(t).Items[0]
			return w.Webhooks.DeleteWebhook(ctx, workspaceID, last.ID, clock.Now(), newEntry(workspaceID, "webhook.deleted", last.ID))
		},
		listed: func() int { return len(must(w.Webhooks.Webhooks(ctx, workspaceID, fullPage))(t).Items) },
		count:  func(c usage.Current) int { return c.Webhooks },
	}
}
