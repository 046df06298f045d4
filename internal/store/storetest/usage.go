package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
)

func testUsage(t *testing.T, w *harness) {
	ctx, ws, other := t.Context(), w.workspace(t), w.workspace(t)
	add := func(counts map[usage.Key]usage.Day) {
		t.Helper()
		if err := w.Usage.AddUsage(ctx, counts); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("adds up", func(t *testing.T) {
		equal(t, "days of a new workspace", must(w.Usage.UsageDays(ctx, ws.ID, ""))(t), nil)
		add(nil)
		add(map[usage.Key]usage.Day{
			{WorkspaceID: ws.ID, Date: "2026-01-31"}:    {Requests: 1, RunsStarted: 2, RunsSucceeded: 3, RunsFailed: 4, RunsCancelled: 5},
			{WorkspaceID: ws.ID, Date: "2026-02-01"}:    {Requests: 1 << 40},
			{WorkspaceID: other.ID, Date: "2026-02-01"}: {Requests: 7},
		})
		add(map[usage.Key]usage.Day{
			{WorkspaceID: ws.ID, Date: "2026-01-31"}: {Requests: 10, RunsStarted: 20, RunsSucceeded: 30, RunsFailed: 40, RunsCancelled: 50},
			{WorkspaceID: ws.ID, Date: "2025-12-31"}: {RunsFailed: 1},
		})
		days := []usage.Day{
			{Date: "2026-02-01", Requests: 1 << 40},
			{Date: "2026-01-31", Requests: 11, RunsStarted: 22, RunsSucceeded: 33, RunsFailed: 44, RunsCancelled: 55},
			{Date: "2025-12-31", RunsFailed: 1},
		}
		equal(t, "all days", must(w.Usage.UsageDays(ctx, ws.ID, "2025-12-31"))(t), days)
		equal(t, "since", must(w.Usage.UsageDays(ctx, ws.ID, "2026-01-01"))(t), days[:2])
		equal(t, "in the future", must(w.Usage.UsageDays(ctx, ws.ID, "2026-02-02"))(t), nil)
		equal(t, "of another", must(w.Usage.UsageDays(ctx, other.ID, ""))(t), []usage.Day{{Date: "2026-02-01", Requests: 7}})
	})

	t.Run("loses nothing under concurrency", func(t *testing.T) {
		own := w.workspace(t)
		concurrently(t, 32, func(int) (bool, error) {
			return true, w.Usage.AddUsage(ctx, map[usage.Key]usage.Day{
				{WorkspaceID: own.ID, Date: "2026-01-01"}: {Requests: 3}, {WorkspaceID: own.ID, Date: "2026-01-02"}: {RunsStarted: 1},
			})
		})
		equal(t, "days", must(w.Usage.UsageDays(ctx, own.ID, ""))(t), []usage.Day{{Date: "2026-01-02", RunsStarted: 32}, {Date: "2026-01-01", Requests: 96}})
	})

	t.Run("counts current objects", func(t *testing.T) {
		own := w.workspace(t)
		equal(t, "new workspace", must(w.Usage.UsageCurrent(ctx, own.ID))(t), usage.Current{APIKeys: 1})
		wf, deleted := w.workflow(t, own.ID), newWorkflowData(t, w, own.ID)
		key := w.key(t, own.ID)
		w.webhook(t, own.ID, nil)
		hook := w.webhook(t, own.ID, func(h *webhook.Webhook) { h.Enabled = false })
		w.start(t, wf, "node_1")
		w.start(t, wf, "")
		w.finish(t, w.start(t, wf, "node_1"), run.Succeeded)
		equal(t, "full", must(w.Usage.UsageCurrent(ctx, own.ID))(t), usage.Current{Workflows: 2, Webhooks: 3, APIKeys: 2, RunningRuns: 4})

		w.deleteWorkflow(t, deleted.Workflow)
		returns(w.Workspaces.RevokeKey(ctx, own.ID, key.ID, clock.Now(), newEntry(own.ID, "api_key.revoked", key.ID)))(t, "revoke", true)
		returns(w.Webhooks.DeleteWebhook(ctx, own.ID, hook.ID, clock.Now(), newEntry(own.ID, "webhook.deleted", hook.ID)))(t, "delete", true)
		equal(t, "after deletions", must(w.Usage.UsageCurrent(ctx, own.ID))(t), usage.Current{Workflows: 1, Webhooks: 1, APIKeys: 1, RunningRuns: 2})
		equal(t, "unknown workspace", must(w.Usage.UsageCurrent(ctx, "ws_none"))(t), usage.Current{})
	})
}
