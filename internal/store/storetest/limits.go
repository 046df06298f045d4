package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
)

// limited is a kind of thing of which a workspace may hold only so many.
type limited struct {
	insert func(atMost int) (bool, error)
	remove func() (bool, error) // the last that was inserted
	listed func() int
	count  func(usage.Current) int
}

func testLimits(t *testing.T, w *world) {
	for name, kind := range map[string]func(*testing.T, *world, string) limited{
		"keys": limitedKeys, "workflows": limitedWorkflows, "webhooks": limitedWebhooks,
		"secrets": limitedSecrets, "variables": limitedVariables,
	} {
		t.Run(name, func(t *testing.T) {
			const most = 10
			ws := w.workspace(t)
			l := kind(t, w, ws.ID)
			held := func() int {
				counted := l.count(must(w.UsageCurrent(t.Context(), ws.ID))(t))
				same(t, "counted, beside what is listed", counted, l.listed())
				return counted
			}
			room := most - held()
			for range room - 3 {
				answers(l.insert(most))(t, "an insert below the limit", true)
			}
			same(t, "inserts of 32 for the last 3 places", together(t, 32, func(int) (bool, error) { return l.insert(most) }), 3)
			same(t, "held", held(), most)
			entries := w.count(t, `SELECT count(*) FROM audit WHERE workspace_id = $1`, ws.ID)
			answers(l.insert(most))(t, "an insert at the limit", false)
			same(t, "audit entries of a refused insert", w.count(t, `SELECT count(*) FROM audit WHERE workspace_id = $1`, ws.ID), entries)
			answers(l.insert(most+1))(t, "an insert with a higher limit", true)
			answers(l.insert(0))(t, "an insert where nothing is allowed", false)
			answers(l.remove())(t, "a removal", true)
			answers(l.insert(most))(t, "an insert at the limit", false)
			answers(l.remove())(t, "a removal", true)
			answers(l.insert(most))(t, "an insert into the room that was made", true)
			same(t, "held", held(), most)
		})
	}
}

func limitedKeys(t *testing.T, w *world, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			made := newKey(workspaceID)
			return w.InsertKey(ctx, made, atMost, newEntry(workspaceID, "api_key.created", made.ID))
		},
		remove: func() (bool, error) {
			last := must(w.Keys(ctx, workspaceID, whole))(t).Items[0]
			return w.RevokeKey(ctx, workspaceID, last.ID, clock.Now(), newEntry(workspaceID, "api_key.revoked", last.ID))
		},
		listed: func() int { return len(must(w.Keys(ctx, workspaceID, whole))(t).Items) },
		count:  func(c usage.Current) int { return c.APIKeys },
	}
}

func limitedWorkflows(t *testing.T, w *world, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			made, first := newWorkflow(workspaceID)
			return w.InsertWorkflow(ctx, made, first, atMost, newEntry(workspaceID, "workflow.created", made.ID))
		},
		remove: func() (bool, error) {
			last := must(w.Workflows(ctx, workspaceID, "", whole))(t).Items[0]
			return w.DeleteWorkflow(ctx, found(w.Workflow(ctx, workspaceID, last.ID))(t), clock.Now(), newEntry(workspaceID, "workflow.deleted", last.ID))
		},
		listed: func() int { return len(must(w.Workflows(ctx, workspaceID, "", whole))(t).Items) },
		count:  func(c usage.Current) int { return c.Workflows },
	}
}

func limitedWebhooks(t *testing.T, w *world, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			made := newWebhook(workspaceID)
			outcome, err := w.InsertWebhook(ctx, made, atMost, newEntry(workspaceID, "webhook.created", made.ID))
			if outcome != webhook.Done && outcome != webhook.TooMany {
				t.Errorf("answered %v", outcome)
			}
			return outcome == webhook.Done, err
		},
		remove: func() (bool, error) {
			last := must(w.Webhooks(ctx, workspaceID, whole))(t).Items[0]
			return w.DeleteWebhook(ctx, workspaceID, last.ID, clock.Now(), newEntry(workspaceID, "webhook.deleted", last.ID))
		},
		listed: func() int { return len(must(w.Webhooks(ctx, workspaceID, whole))(t).Items) },
		count:  func(c usage.Current) int { return c.Webhooks },
	}
}
