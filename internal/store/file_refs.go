package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/file"
)

var fileRefsTable = Table{Name: "file_refs", Key: "holder file_id", Text: "holder file_id workspace_id"}

// HoldFiles implements file.Store.
func (s Files) HoldFiles(ctx context.Context, workspaceID string, holder file.Holder, ids []string, now time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error { return holdFiles(tx, workspaceID, holder, ids, now) })
}

// holdFiles adds references to files, which do not expire from now on. It returns
// file_not_found, and has written nothing, if one of them does not exist or has expired.
func holdFiles(tx *transaction, workspaceID string, holder file.Holder, ids []string, now time.Time) error {
	found, err := lockFileRows(tx, workspaceID, ids, now)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, ok := found[id]; !ok {
			return file.NotFound(id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		n, err := tx.Exec(`INSERT INTO file_refs (holder, file_id, workspace_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, string(holder), id, workspaceID)
		if err != nil {
			return err
		}
		if n == 0 {
			continue // it has the reference already
		}
		if err := tx.Do(`UPDATE files SET holders = holders + 1, expires_at = NULL WHERE id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}

// lockFileRows returns those of the files that exist and have not expired, by id. Until
// the end of the transaction nobody else can delete them.
func lockFileRows(tx *transaction, workspaceID string, ids []string, now time.Time) (map[string]file.File, error) {
	found := make(map[string]file.File, len(ids))
	// Two transactions lock the rows in the same order.
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		err := tx.Query(`UPDATE files SET holders = holders WHERE id = $1 AND workspace_id = $2 AND `+liveFile+` RETURNING `+fileRows.columns(""),
			[]any{id, workspaceID, now}, func(r database.Row) (err error) {
				found[id], err = fileRows.scan(r)
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// lockAllFiles is like lockFileRows and reports whether all files exist.
func lockAllFiles(tx *transaction, workspaceID string, ids []string, now time.Time) (bool, error) {
	if len(ids) == 0 {
		return true, nil
	}
	found, err := lockFileRows(tx, workspaceID, ids, now)
	return err == nil && !slices.ContainsFunc(ids, func(id string) bool { return found[id].ID == "" }), err
}

// replaceFiles makes a holder refer to these files and to no others. As holdFiles, it
// has written nothing if it returns file_not_found.
func replaceFiles(tx *transaction, workspaceID string, holder file.Holder, ids []string, now time.Time) error {
	if err := holdFiles(tx, workspaceID, holder, ids, now); err != nil {
		return err
	}
	held, err := refsOf(tx, holder, -1)
	if err != nil {
		return err
	}
	return dropRefs(tx, slices.DeleteFunc(held, func(r fileRef) bool { return slices.Contains(ids, r.file) }), now)
}

// ReplaceFiles implements file.Store.
func (s Files) ReplaceFiles(ctx context.Context, workspaceID string, holder file.Holder, ids []string, now time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error { return replaceFiles(tx, workspaceID, holder, ids, now) })
}

type fileRef struct{ holder, file string }

func scanFileRef(r database.Row) (ref fileRef, err error) {
	err = r.Scan(&ref.holder, &ref.file)
	return ref, err
}

func refsOf(c database.Conn, holder file.Holder, limit int) ([]fileRef, error) {
	if limit < 0 {
		return database.List(c, `SELECT holder, file_id FROM file_refs WHERE holder = $1 ORDER BY file_id`, []any{string(holder)}, scanFileRef)
	}
	return database.List(c, `SELECT holder, file_id FROM file_refs WHERE holder = $1 ORDER BY file_id LIMIT $2`, []any{string(holder), limit}, scanFileRef)
}

// dropHolder removes all references of a holder. A file that nothing refers to any
// more expires at once.
func dropHolder(tx *transaction, holder file.Holder, now time.Time) error {
	held, err := refsOf(tx, holder, -1)
	if err != nil {
		return err
	}
	return dropRefs(tx, held, now)
}

// DropHolder implements file.Store.
func (s Files) DropHolder(ctx context.Context, holder file.Holder, now time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error { return dropHolder(tx, holder, now) })
}

// dropHoldersOf removes up to limit references of everything that belongs to an owner,
// such as the rows of a table, and returns how many.
func dropHoldersOf(tx *transaction, owner string, now time.Time, limit int) (int, error) {
	first, end := file.HoldersOf(owner)
	held, err := database.List(tx, `SELECT holder, file_id FROM file_refs WHERE holder >= $1 AND holder < $2 ORDER BY holder, file_id LIMIT $3`,
		[]any{first, end, limit}, scanFileRef)
	if err != nil {
		return 0, err
	}
	return len(held), dropRefs(tx, held, now)
}

func dropRefs(tx *transaction, refs []fileRef, now time.Time) error {
	for _, ref := range refs {
		n, err := tx.Exec(`DELETE FROM file_refs WHERE holder = $1 AND file_id = $2`, ref.holder, ref.file)
		if err != nil {
			return err
		}
		if n == 0 {
			continue // removed since it was read
		}
		if err := tx.Do(`UPDATE files SET holders = holders - 1, expires_at = CASE WHEN holders = 1 THEN CAST($2 AS BIGINT) ELSE NULL END WHERE id = $1`, ref.file, now); err != nil {
			return err
		}
	}
	return nil
}

// purgeRefs removes the references of a run within the budget, and reports whether
// none are left.
func (b *budget) purgeRefs(tx *transaction, runID string, now time.Time) (bool, error) {
	held, err := refsOf(tx, file.HeldByRun(runID), int(b.rows))
	if err != nil {
		return false, err
	}
	if err := dropRefs(tx, held, now); err != nil {
		return false, err
	}
	if b.rows -= int64(len(held)); b.rows <= 0 {
		return false, nil
	}
	return true, tx.Do(`DELETE FROM file_usage WHERE owner = $1`, runID)
}
