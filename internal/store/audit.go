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

const auditColumns = `a.id, a.workspace_id, a.at, a.actor_type, a.actor_id, a.action, a.target_type, a.target_id, a.details, a.request_id`

// auditNames are the present names of the actor and the target. A person who has left the
// workspace keeps the name there: the entry shows that it was a member.
const (
	auditNames = `COALESCE(actor.name, actor_key.name), COALESCE(w.name, target_key.name, target_user.name, c.name, d.name, ws.name)`
	auditJoins = ` LEFT JOIN users actor ON a.actor_type = 'user' AND actor.id = a.actor_id
		LEFT JOIN api_keys actor_key ON a.actor_type = 'api_key' AND actor_key.id = a.actor_id AND actor_key.workspace_id = a.workspace_id
		LEFT JOIN runs r ON a.target_type = 'run' AND r.id = a.target_id AND r.workspace_id = a.workspace_id
		LEFT JOIN workflows w ON w.id = CASE WHEN a.target_type = 'workflow' THEN a.target_id ELSE r.workflow_id END AND w.workspace_id = a.workspace_id
		LEFT JOIN api_keys target_key ON a.target_type = 'api_key' AND target_key.id = a.target_id AND target_key.workspace_id = a.workspace_id
		LEFT JOIN users target_user ON a.target_type = 'user' AND target_user.id = a.target_id
		LEFT JOIN connections c ON a.target_type = 'connection' AND c.id = a.target_id AND c.workspace_id = a.workspace_id
		LEFT JOIN data_tables d ON a.target_type = 'table' AND d.id = a.target_id AND d.workspace_id = a.workspace_id
		LEFT JOIN workspaces ws ON a.target_type = 'workspace' AND ws.id = a.target_id AND ws.id = a.workspace_id`
)

func scanAudit(r database.Row) (audit.Entry, error) { return scanAuditWith(r) }

func scanNamedAudit(r database.Row) (audit.Entry, error) {
	var actor, target string
	e, err := scanAuditWith(r, &actor, &target)
	e.ActorName, e.TargetName = actor, target
	return e, err
}

func scanAuditWith(r database.Row, more ...any) (e audit.Entry, err error) {
	var details []byte
	into := []any{&e.ID, &e.WorkspaceID, &e.At, &e.ActorType, &e.ActorID, &e.Action, &e.TargetType, &e.TargetID, &details, &e.RequestID}
	if err := r.Scan(append(into, more...)...); err != nil {
		return e, err
	}
	return e, json.Unmarshal(details, &e.Details)
}

// AuditEntries implements audit.Store.
func (s Audit) AuditEntries(ctx context.Context, workspaceID string, filter audit.Filter, page paging.Request) (paging.Page[audit.Entry], error) {
	statement := `SELECT ` + auditColumns + `, ` + auditNames + ` FROM audit a` + auditJoins + ` WHERE a.workspace_id = $1 AND a.id < $2`
	args := []any{workspaceID, before(page.After), page.Limit + 1}
	if filter.Action != "" {
		args = append(args, filter.Action)
		statement += fmt.Sprintf(` AND a.action = $%d`, len(args))
	}
	if filter.TargetID != "" {
		args = append(args, filter.TargetID)
		statement += fmt.Sprintf(` AND a.target_id = $%d`, len(args))
	}
	entries, err := readList(ctx, s.db, statement+` ORDER BY a.id DESC LIMIT $3`, args, scanNamedAudit)
	return paging.Cut(entries, page.Limit, func(e audit.Entry) string { return e.ID }), err
}

// auditWriter writes audit entries, also for the stores that embed it.
type auditWriter struct{ db *DB }

// RecordAudit implements account.Store.
func (s auditWriter) RecordAudit(ctx context.Context, entries ...audit.Entry) error {
	return s.db.write(ctx, func(tx *transaction) error { return insertAudit(tx, entries...) })
}
