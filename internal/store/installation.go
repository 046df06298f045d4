package store

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
)

// Installation reads and writes what there is once in a database: the installation that it
// belongs to, the key that seals it, and its clock.
type Installation struct{ db *DB }

// The id of an import means nothing elsewhere.
var installationTable = Table{Name: "installation", Key: "id", Text: "first_workspace_id", Int: "id created_at", Bytes: "key_check", NotExported: "importing"}

// KeyCheck returns the value that identifies the master key of this store, or nil
// if nothing is installed yet.
func (s Installation) KeyCheck(ctx context.Context) ([]byte, error) {
	return readValue[[]byte](ctx, s.db, `SELECT key_check FROM installation WHERE id = 1`)
}

// RewrapDataKeys atomically replaces the data keys of all workspaces and the
// value that identifies the master key that wraps them.
func (s Installation) RewrapDataKeys(ctx context.Context, check []byte, rewrap func(workspaceID string, wrapped []byte) ([]byte, error)) error {
	type key struct {
		workspaceID string
		wrapped     []byte
	}
	return s.db.write(ctx, func(tx *transaction) error {
		keys, err := database.List(tx, `SELECT id, data_key FROM workspaces`, nil, func(r database.Row) (k key, err error) {
			err = r.Scan(&k.workspaceID, &k.wrapped)
			return k, err
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			wrapped, err := rewrap(k.workspaceID, k.wrapped)
			if err != nil {
				return err
			}
			if err := tx.Do(`UPDATE workspaces SET data_key = $1 WHERE id = $2`, wrapped, k.workspaceID); err != nil {
				return err
			}
		}
		return tx.Do(`UPDATE installation SET key_check = $1 WHERE id = 1`, check)
	})
}

// ImportIncomplete reports whether an import has not finished.
func (s Installation) ImportIncomplete(ctx context.Context) (bool, error) {
	err := s.db.read(ctx, checkComplete)
	if errors.Is(err, ErrImportIncomplete) {
		return true, nil
	}
	return false, err
}

// Probe commits a transaction that changes nothing. It returns when the disk has
// accepted the commit.
func (s Installation) Probe(ctx context.Context) error {
	hash := []byte("probe " + rand.Text())
	return s.db.write(ctx, func(tx *transaction) error {
		now := clock.Now()
		if err := tx.Do(`INSERT INTO tickets (hash, kind, user_id, created_at, expires_at) VALUES ($1, 'probe', '', $2, $2)`, hash, now); err != nil {
			return err
		}
		return tx.Do(`DELETE FROM tickets WHERE hash = $1`, hash)
	})
}
