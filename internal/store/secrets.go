package store

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/secret"
)

// Secrets implements secret.Store: secrets and variables.
type Secrets struct{ db *DB }

var variablesTable = Table{Name: "variables", Key: "workspace_id name", Text: "workspace_id name value created_by updated_by", Int: "created_at updated_at"}

var secretsTable = Table{Name: "secrets", Key: "workspace_id name", Text: "workspace_id name created_by updated_by", Int: "created_at updated_at", Bytes: "value"}

// valueTable implements secret.Table for secrets and for variables, which have
// a table each.
type valueTable[T interface{ Meta() secret.Metadata }] struct {
	db *DB
	// table is also the column of workspaces that counts the rows.
	table string
	// bytes is the column of workspaces that has the size of all values together;
	// empty if their size is not limited.
	bytes string
	// columns are read in addition to the metadata.
	columns string
	scan    func(database.Row) (T, error)
	// param converts a value to the type of its column.
	param func([]byte) any
	size  func(T) int
}

// Secrets implements secret.Store. Its rows are read without the value.
func (s Secrets) Secrets() secret.Table[secret.Secret] {
	return valueTable[secret.Secret]{
		db: s.db, table: "secrets",
		scan: func(r database.Row) (v secret.Secret, err error) {
			err = r.Scan(metadata(&v.Metadata)...)
			return v, err
		},
		param: func(value []byte) any { return value },
		size:  func(secret.Secret) int { return 0 },
	}
}

// Variables implements secret.Store.
func (s Secrets) Variables() secret.Table[secret.Variable] { return s.variables() }

func (s Secrets) variables() valueTable[secret.Variable] {
	return valueTable[secret.Variable]{
		db: s.db, table: "variables", bytes: "variable_bytes", columns: ", value",
		scan: func(r database.Row) (v secret.Variable, err error) {
			err = r.Scan(append(metadata(&v.Metadata), (*[]byte)(&v.Value))...)
			return v, err
		},
		param: func(value []byte) any { return string(value) },
		size:  func(v secret.Variable) int { return len(v.Value) },
	}
}

func metadata(m *secret.Metadata) []any {
	return []any{&m.WorkspaceID, &m.Name, &m.CreatedAt, &m.CreatedBy, &m.UpdatedAt, &m.UpdatedBy}
}

func (t valueTable[T]) query() string {
	return `SELECT workspace_id, name, created_at, created_by, updated_at, updated_by` + t.columns + ` FROM ` + t.table + ` WHERE workspace_id = $1`
}

func (t valueTable[T]) row(c database.Conn, workspaceID, name string) (*T, error) {
	return database.One(c, t.query()+` AND name = $2`, []any{workspaceID, name}, t.scan)
}

// lock serializes the changes of a workspace: otherwise two transactions could
// both find a name missing and insert it.
func (t valueTable[T]) lock(tx *transaction, workspaceID string) error {
	return tx.Do(`UPDATE workspaces SET `+t.table+` = `+t.table+` WHERE id = $1`, workspaceID)
}

// Put implements secret.Table.
func (t valueTable[T]) Put(ctx context.Context, w secret.Write) (stored T, outcome secret.Outcome, err error) {
	err = t.db.write(ctx, func(tx *transaction) error {
		if err := t.lock(tx, w.WorkspaceID); err != nil {
			return err
		}
		old, err := t.row(tx, w.WorkspaceID, w.Name)
		if err != nil {
			return err
		}
		outcome, err = t.put(tx, w, old)
		if err != nil || outcome == secret.TooMany || outcome == secret.TooLarge {
			return err
		}
		now, err := t.row(tx, w.WorkspaceID, w.Name)
		if err != nil {
			return err
		}
		stored = *now
		return nil
	})
	return stored, outcome, err
}

// put writes a value unless it exceeds a limit. old is nil if the name is new.
func (t valueTable[T]) put(tx *transaction, w secret.Write, old *T) (outcome secret.Outcome, err error) {
	growth := len(w.Value)
	if old != nil {
		growth -= t.size(*old)
	}
	if fits, err := t.fits(tx, w, growth); err != nil || !fits {
		return secret.TooLarge, err
	}
	if old != nil {
		outcome, err = secret.Updated, t.update(tx, w)
	} else {
		outcome, err = t.insert(tx, w)
	}
	if err != nil || outcome == secret.TooMany || t.bytes == "" {
		return outcome, err
	}
	return outcome, tx.Do(`UPDATE workspaces SET `+t.bytes+` = `+t.bytes+` + $1 WHERE id = $2`, growth, w.WorkspaceID)
}

// fits reports whether the values of a workspace may grow by a number of bytes.
// They may always shrink, also above the limit.
func (t valueTable[T]) fits(tx *transaction, w secret.Write, growth int) (bool, error) {
	if t.bytes == "" || growth <= 0 {
		return true, nil
	}
	size, err := database.Number(tx, `SELECT `+t.bytes+` FROM workspaces WHERE id = $1`, w.WorkspaceID)
	return size+growth <= w.Limit.Bytes, err
}

func (t valueTable[T]) update(tx *transaction, w secret.Write) error {
	err := tx.Expect(`UPDATE `+t.table+` SET value = $1, updated_at = $2, updated_by = $3 WHERE workspace_id = $4 AND name = $5`,
		t.param(w.Value), w.At, w.By, w.WorkspaceID, w.Name)
	if err != nil {
		return err
	}
	return insertAudit(tx, w.Updated)
}

func (t valueTable[T]) insert(tx *transaction, w secret.Write) (secret.Outcome, error) {
	room, err := incrementUsage(tx, t.table, w.WorkspaceID, w.Limit.Count)
	if err != nil || !room {
		return secret.TooMany, err
	}
	if err := tx.Do(`INSERT INTO `+t.table+` (workspace_id, name, value, created_at, created_by, updated_at, updated_by)
		VALUES ($1, $2, $3, $4, $5, $4, $5)`, w.WorkspaceID, w.Name, t.param(w.Value), w.At, w.By); err != nil {
		return 0, err
	}
	return secret.Created, insertAudit(tx, w.Created)
}

// Get implements secret.Table.
func (t valueTable[T]) Get(ctx context.Context, workspaceID, name string) (*T, error) {
	return view(ctx, t.db, func(c database.Conn) (*T, error) { return t.row(c, workspaceID, name) })
}

// List implements secret.Table.
func (t valueTable[T]) List(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[T], error) {
	found, err := readList(ctx, t.db, t.query()+` AND name > $2 ORDER BY name LIMIT $3`, []any{workspaceID, page.After, page.Limit + 1}, t.scan)
	return paging.Cut(found, page.Limit, func(v T) string { return v.Meta().Name }), err
}

// Delete implements secret.Table.
func (t valueTable[T]) Delete(ctx context.Context, workspaceID, name string, entry audit.Entry) (bool, error) {
	return transact(ctx, t.db, func(tx *transaction) (deleted bool, err error) {
		if err := t.lock(tx, workspaceID); err != nil {
			return deleted, err
		}
		old, err := t.row(tx, workspaceID, name)
		if err != nil || old == nil {
			return deleted, err
		}
		if err := tx.Expect(`DELETE FROM `+t.table+` WHERE workspace_id = $1 AND name = $2`, workspaceID, name); err != nil {
			return deleted, err
		}
		if err := decrementUsage(tx, t.table, workspaceID, 1); err != nil {
			return deleted, err
		}
		if t.bytes != "" {
			if err := decrementUsage(tx, t.bytes, workspaceID, int64(t.size(*old))); err != nil {
				return deleted, err
			}
		}
		deleted = true
		return deleted, insertAudit(tx, entry)
	})
}

// SealedSecrets implements secret.Store.
func (s Secrets) SealedSecrets(ctx context.Context, workspaceID string, names []string) (map[string][]byte, error) {
	found := map[string][]byte{}
	if len(names) == 0 {
		return found, nil
	}
	args := []any{workspaceID}
	for _, name := range names {
		args = append(args, name)
	}
	err := s.db.read(ctx, func(c database.Conn) error {
		clear(found) // the transaction may be retried
		return c.Query(`SELECT name, value FROM secrets WHERE workspace_id = $1 AND name IN (`+database.Placeholders(2, len(names))+`)`,
			args, func(r database.Row) error {
				var name string
				var sealed []byte
				if err := r.Scan(&name, &sealed); err != nil {
					return err
				}
				found[name] = sealed
				return nil
			})
	})
	return found, err
}

// VariableValues implements secret.Store.
func (s Secrets) VariableValues(ctx context.Context, workspaceID string) (map[string]json.RawMessage, error) {
	found, table := map[string]json.RawMessage{}, s.variables()
	err := s.db.read(ctx, func(c database.Conn) error {
		clear(found) // the transaction may be retried
		rows, err := database.List(c, table.query(), []any{workspaceID}, table.scan)
		for _, v := range rows {
			found[v.Name] = v.Value
		}
		return err
	})
	return found, err
}

// ValueNames implements secret.Store.
func (s Secrets) ValueNames(ctx context.Context, workspaceID string) (secret.Names, error) {
	return view(ctx, s.db, func(c database.Conn) (names secret.Names, err error) {
		if names.Secrets, err = namesIn(c, "secrets", workspaceID); err != nil {
			return names, err
		}
		names.Variables, err = namesIn(c, "variables", workspaceID)
		return names, err
	})
}

func namesIn(c database.Conn, table, workspaceID string) ([]string, error) {
	return database.List(c, `SELECT name FROM `+table+` WHERE workspace_id = $1 ORDER BY name`, []any{workspaceID}, scanText)
}
