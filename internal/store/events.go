package store

import (
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/uid"
)

// insertEvents writes events with one delivery for each webhook that wants
// them: the webhooks that exist at this commit.
func insertEvents(u *unit, events ...event.Event) error {
	for _, e := range events {
		if _, err := u.Exec(`INSERT INTO events (id, workspace_id, type, workflow_id, run_id, at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			e.ID, e.WorkspaceID, string(e.Type), e.WorkflowID, orNil(e.RunID), e.At, e.Body); err != nil {
			return err
		}
		hooks, err := list(u, selectWebhook+`WHERE workspace_id = $1 AND deleted_at IS NULL`, []any{e.WorkspaceID}, scanWebhook)
		if err != nil {
			return err
		}
		for _, hook := range hooks {
			if !hook.Wants(e) {
				continue
			}
			if _, err := u.Exec(`INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, run_id, status, attempts, next_at, created_at)
				VALUES ($1, $2, $3, $4, $5, 'pending', 0, $6, $7)`,
				uid.At(uid.Delivery, e.At), e.WorkspaceID, hook.ID, e.ID, orNil(e.RunID), e.At, e.At); err != nil {
				return err
			}
		}
	}
	return nil
}
