package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
)

// Audit implements audit.Store and audit.ChainStore.
type Audit struct {
	db *DB
	auditWriter
}

var auditTable = Table{Name: "audit", Key: "id", Text: "id workspace_id actor_type actor_id action target_type target_id details request_id", Int: "at seq", Bytes: "hash"}

// insertAudit adds entries that the transaction writes at its end. It converts
// them to the form in which they are stored, which their hashes cover.
func insertAudit(tx *transaction, entries ...audit.Entry) error {
	for _, e := range entries {
		details := []byte("{}")
		if e.Details != nil {
			var err error
			if details, err = json.Marshal(e.Details); err != nil {
				return fmt.Errorf("encode audit details: %w", err)
			}
		}
		for _, text := range []*string{&e.ID, &e.WorkspaceID, &e.ActorType, &e.ActorID, &e.Action, &e.TargetType, &e.TargetID, &e.RequestID} {
			*text = Text(*text)
		}
		e.Details = nil
		tx.audit = append(tx.audit, audit.Record{Entry: e, RawDetails: Text(string(details))})
	}
	return nil
}

const auditColumns = `id, workspace_id, at, actor_type, actor_id, action, target_type, target_id, details, request_id`

func scanAudit(r database.Row) (e audit.Entry, err error) {
	var details []byte
	if err := r.Scan(&e.ID, &e.WorkspaceID, &e.At, &e.ActorType, &e.ActorID, &e.Action, &e.TargetType, &e.TargetID, &details, &e.RequestID); err != nil {
		return e, err
	}
	return e, json.Unmarshal(details, &e.Details)
}

// AuditEntries implements audit.Store.
func (s Audit) AuditEntries(ctx context.Context, workspaceID string, filter audit.Filter, page paging.Request) (paging.Page[audit.Entry], error) {
	statement := `SELECT ` + auditColumns + ` FROM audit WHERE workspace_id = $1 AND id < $2`
	args := []any{workspaceID, before(page.After), page.Limit + 1}
	if filter.Action != "" {
		args = append(args, filter.Action)
		statement += fmt.Sprintf(` AND action = $%d`, len(args))
	}
	if filter.TargetID != "" {
		args = append(args, filter.TargetID)
		statement += fmt.Sprintf(` AND target_id = $%d`, len(args))
	}
	entries, err := readList(ctx, s.db, statement+` ORDER BY id DESC LIMIT $3`, args, scanAudit)
	return paging.Cut(entries, page.Limit, func(e audit.Entry) string { return e.ID }), err
}

// auditWriter writes audit entries, also for the stores that embed it.
type auditWriter struct{ db *DB }

// RecordAudit implements account.Store.
func (s auditWriter) RecordAudit(ctx context.Context, entries ...audit.Entry) error {
	return s.db.write(ctx, func(tx *transaction) error { return insertAudit(tx, entries...) })
}
