package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/audit"

	"github.com/stepmill/stepmill/internal/database"
)

var auditChainsTable = Table{Name: "audit_chains", Key: "workspace_id", Text: "workspace_id", Int: "seq purged_seq", Bytes: "hash purged_hash"}

// writeAudit writes the audit entries of a transaction. They come last, because
// the row of their workspace's chain stays locked until the commit: transactions
// that write entries of one workspace form its chain one after the other.
func writeAudit(tx *transaction) error {
	slices.SortStableFunc(tx.audit, func(a, b audit.Record) int { return cmp.Compare(a.WorkspaceID, b.WorkspaceID) })
	for group := range chunkBy(tx.audit, func(r audit.Record) string { return r.WorkspaceID }) {
		if err := appendAudit(tx, group[0].WorkspaceID, group); err != nil {
			return err
		}
	}
	return nil
}

// chunkBy yields the runs of consecutive items with the same key.
func chunkBy[T any](items []T, key func(T) string) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(items) > 0 {
			n := slices.IndexFunc(items, func(item T) bool { return key(item) != key(items[0]) })
			if n < 0 {
				n = len(items)
			}
			if !yield(items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}

func appendAudit(tx *transaction, workspaceID string, records []audit.Record) error {
	chain, err := advanceChain(tx, workspaceID, len(records))
	if err != nil {
		return err
	}
	first := chain.Seq - int64(len(records)) + 1
	for i, r := range records {
		r.Seq = first + int64(i)
		chain.Hash = r.Sum(chain.Hash)
		if err := tx.Do(`INSERT INTO audit (id, workspace_id, at, actor_type, actor_id, action, target_type, target_id, details, request_id, seq, hash)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			r.ID, r.WorkspaceID, r.At, r.ActorType, r.ActorID, r.Action, r.TargetType, r.TargetID, r.RawDetails, r.RequestID, r.Seq, chain.Hash); err != nil {
			return err
		}
	}
	return tx.Do(`UPDATE audit_chains SET hash = $1 WHERE workspace_id = $2`, chain.Hash, workspaceID)
}

// advanceChain locks the chain of a workspace and adds n to its seq. It returns
// the chain with the new seq and the hash of the last entry so far.
func advanceChain(tx *transaction, workspaceID string, n int) (audit.Chain, error) {
	const statement = `UPDATE audit_chains SET seq = seq + $1 WHERE workspace_id = $2 RETURNING seq, hash, purged_seq, purged_hash`
	chain, err := database.One(tx, statement, []any{n, workspaceID}, scanChain)
	if err != nil {
		return audit.Chain{}, err
	}
	if chain != nil {
		return *chain, nil
	}
	none := audit.NewChain()
	// A concurrent transaction may insert it first: this one waits for it.
	if _, err := tx.Exec(`INSERT INTO audit_chains (workspace_id, seq, hash, purged_seq, purged_hash) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		workspaceID, none.Seq, none.Hash, none.PurgedSeq, none.PurgedHash); err != nil {
		return none, err
	}
	if chain, err = database.One(tx, statement, []any{n, workspaceID}, scanChain); err == nil && chain == nil {
		err = database.ErrUnexpected
	}
	if err != nil {
		return none, err
	}
	return *chain, nil
}

func scanChain(r database.Row) (c audit.Chain, err error) {
	err = r.Scan(&c.Seq, &c.Hash, &c.PurgedSeq, &c.PurgedHash)
	return c, err
}

func scanAuditRecord(r database.Row) (rec audit.Record, err error) {
	err = r.Scan(&rec.ID, &rec.WorkspaceID, &rec.At, &rec.ActorType, &rec.ActorID, &rec.Action, &rec.TargetType, &rec.TargetID, &rec.RawDetails, &rec.RequestID,
		&rec.Seq, &rec.Hash)
	return rec, err
}

// AuditChain implements audit.ChainStore.
func (s Audit) AuditChain(ctx context.Context, workspaceID string, after int64, limit int) (*audit.Chain, []audit.Record, error) {
	var (
		chain   *audit.Chain
		records []audit.Record
	)
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		if chain, err = database.One(c, `SELECT seq, hash, purged_seq, purged_hash FROM audit_chains WHERE workspace_id = $1`, []any{workspaceID}, scanChain); err != nil {
			return err
		}
		records, err = database.List(c, `SELECT `+auditColumns+`, seq, hash FROM audit a WHERE workspace_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
			[]any{workspaceID, after, limit}, scanAuditRecord)
		return err
	})
	return chain, records, err
}

// UnchainedEntries implements audit.ChainStore.
func (s Audit) UnchainedEntries(ctx context.Context, workspaceID string) (count int, newest *audit.Entry, err error) {
	err = s.db.read(ctx, func(c database.Conn) (err error) {
		if count, err = database.Number(c, `SELECT count(*) FROM audit WHERE workspace_id = $1 AND seq IS NULL`, workspaceID); err != nil {
			return err
		}
		newest, err = database.One(c, `SELECT `+auditColumns+` FROM audit a WHERE workspace_id = $1 AND seq IS NULL ORDER BY at DESC LIMIT 1`, []any{workspaceID}, scanAudit)
		return err
	})
	return count, newest, err
}

// PurgeAudit deletes up to limit audit entries that were written before a time.
// It returns true if there may be more. Of a chain it deletes the entries up to
// the first one that is not as old: the rest stays verifiable. The last entry that is
// old enough stays too, to prove that those before it were.
func (s Audit) PurgeAudit(ctx context.Context, before time.Time, limit int) (bool, error) {
	due, err := readOne(ctx, s.db, `SELECT c.workspace_id FROM audit_chains c
		JOIN audit a ON a.workspace_id = c.workspace_id AND a.seq = c.purged_seq + 1
		JOIN audit b ON b.workspace_id = c.workspace_id AND b.seq = c.purged_seq + 2
		WHERE a.at < $1 AND b.at < $1 LIMIT 1`, []any{before}, scanText)
	if err != nil {
		return false, err
	}
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		n, err := tx.Exec(`DELETE FROM audit WHERE seq IS NULL AND at < $1 AND id IN (SELECT id FROM audit WHERE seq IS NULL ORDER BY id LIMIT $2)`, before, limit)
		if more = due != nil || n == int64(limit); err != nil || due == nil {
			return more, err
		}
		return more, purgeChain(tx, *due, before, limit)
	})
}

// purgeChain deletes up to limit entries from the start of a chain and keeps the
// hash of the last one.
func purgeChain(tx *transaction, workspaceID string, before time.Time, limit int) error {
	oldest, err := database.List(tx, `SELECT `+auditColumns+`, seq, hash FROM audit a WHERE workspace_id = $1 AND seq > 0 ORDER BY seq LIMIT $2`,
		[]any{workspaceID, limit + 1}, scanAuditRecord)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(oldest, func(r audit.Record) bool { return !r.At.Before(before) })
	if n < 0 {
		n = len(oldest)
	}
	if n < 2 {
		return nil
	}
	last := oldest[n-2]
	// Another node may have purged more meanwhile.
	if ok, err := oneRow(tx.Exec(`UPDATE audit_chains SET purged_seq = $1, purged_hash = $2 WHERE workspace_id = $3 AND purged_seq < $1`,
		last.Seq, last.Hash, workspaceID)); err != nil || !ok {
		return err
	}
	return tx.Do(`DELETE FROM audit WHERE workspace_id = $1 AND seq <= $2`, workspaceID, last.Seq)
}
