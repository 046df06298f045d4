package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/paging"
)

func insertAudit(tx *transaction, entries ...audit.Entry) error {
	for _, e := range entries {
		details := []byte("{}")
		if e.Details != nil {
			var err error
			if details, err = json.Marshal(e.Details); err != nil {
				return fmt.Errorf("encode audit details: %w", err)
			}
		}
		if err := tx.Do(`INSERT INTO audit (id, workspace_id, at, actor_type, actor_id, action, target_type, target_id, details, request_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			e.ID, e.WorkspaceID, e.At, e.ActorType, e.ActorID, e.Action, e.TargetType, e.TargetID, string(details), e.RequestID); err != nil {
			return err
		}
	}
	return nil
}

func scanAudit(r Row) (e audit.Entry, err error) {
	var details []byte
	if err := r.Scan(&e.ID, &e.WorkspaceID, &e.At, &e.ActorType, &e.ActorID, &e.Action, &e.TargetType, &e.TargetID, &details, &e.RequestID); err != nil {
		return e, err
	}
	return e, json.Unmarshal(details, &e.Details)
}

// AuditEntries implements audit.Store.
func (s *Store) AuditEntries(ctx context.Context, workspaceID string, filter audit.Filter, page paging.Request) (paging.Page[audit.Entry], error) {
	statement := `SELECT id, workspace_id, at, actor_type, actor_id, action, target_type, target_id, details, request_id
		FROM audit WHERE workspace_id = $1 AND id < $2`
	args := []any{workspaceID, before(page.After), page.Limit + 1}
	if filter.Action != "" {
		args = append(args, filter.Action)
		statement += fmt.Sprintf(` AND action = $%d`, len(args))
	}
	if filter.TargetID != "" {
		args = append(args, filter.TargetID)
		statement += fmt.Sprintf(` AND target_id = $%d`, len(args))
	}
	var entries []audit.Entry
	err := s.read(ctx, func(c Conn) (err error) {
		entries, err = list(c, statement+` ORDER BY id DESC LIMIT $3`, args, scanAudit)
		return err
	})
	return paging.Cut(entries, page.Limit, func(e audit.Entry) string { return e.ID }), err
}
