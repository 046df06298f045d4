package store

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/secret"
)

// Secrets and variables are kept alike, in a table of their own each, and are
// counted in a column of workspaces that has the same name.
const (
	secrets   = "secrets"
	variables = "variables"
)

const selectSecret = `SELECT workspace_id, name, created_at, created_by, updated_at, updated_by FROM secrets `

func scanSecret(r Row) (s secret.Secret, err error) {
	err = r.Scan(&s.WorkspaceID, &s.Name, &s.CreatedAt, &s.CreatedBy, &s.UpdatedAt, &s.UpdatedBy)
	return s, err
}

const selectVariable = `SELECT workspace_id, name, value, created_at, created_by, updated_at, updated_by FROM variables `

func scanVariable(r Row) (v secret.Variable, err error) {
	err = r.Scan(&v.WorkspaceID, &v.Name, (*[]byte)(&v.Value), &v.CreatedAt, &v.CreatedBy, &v.UpdatedAt, &v.UpdatedBy)
	return v, err
}

// named is a row to write.
type named struct {
	table, workspaceID, name string
	value                    any
	at                       time.Time
	by                       string
}

// oneAtATime keeps two units from making the same name: both would find it
// missing.
func oneAtATime(u *unit, table, workspaceID string) error {
	err := u.Do(`UPDATE workspaces SET `+table+` = `+table+` WHERE id = $1`, workspaceID)
	return err
}

// put updates the row of the name, or inserts it if there is room.
func put(u *unit, row named, atMost int, deed secret.Deed) (secret.Outcome, error) {
	n, err := u.Exec(`UPDATE `+row.table+` SET value = $1, updated_at = $2, updated_by = $3 WHERE workspace_id = $4 AND name = $5`,
		row.value, row.at, row.by, row.workspaceID, row.name)
	if err != nil {
		return 0, err
	}
	if n == 1 {
		return secret.Updated, insertAudit(u, deed.Updated)
	}
	room, err := grow(u, row.table, row.workspaceID, atMost)
	if err != nil || !room {
		return secret.TooMany, err
	}
	if err := u.Do(`INSERT INTO `+row.table+` (workspace_id, name, value, created_at, created_by, updated_at, updated_by)
		VALUES ($1, $2, $3, $4, $5, $4, $5)`, row.workspaceID, row.name, row.value, row.at, row.by); err != nil {
		return 0, err
	}
	return secret.Created, insertAudit(u, deed.Created)
}

// PutSecret implements secret.Store.
func (s *Store) PutSecret(ctx context.Context, in secret.Secret, sealed []byte, atMost int, deed secret.Deed) (secret.Secret, secret.Outcome, error) {
	var now *secret.Secret
	var outcome secret.Outcome
	err := s.write(ctx, func(u *unit) (err error) {
		now = &in
		if err := oneAtATime(u, secrets, in.WorkspaceID); err != nil {
			return err
		}
		row := named{secrets, in.WorkspaceID, in.Name, sealed, in.UpdatedAt, in.UpdatedBy}
		if outcome, err = put(u, row, atMost, deed); err != nil || outcome != secret.Updated {
			return err
		}
		now, err = one(u, selectSecret+`WHERE workspace_id = $1 AND name = $2`, []any{in.WorkspaceID, in.Name}, scanSecret)
		return err
	})
	if err != nil {
		return secret.Secret{}, 0, err
	}
	return *now, outcome, nil
}

// Secret implements secret.Store.
func (s *Store) Secret(ctx context.Context, workspaceID, name string) (*secret.Secret, error) {
	var found *secret.Secret
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = one(c, selectSecret+`WHERE workspace_id = $1 AND name = $2`, []any{workspaceID, name}, scanSecret)
		return err
	})
	return found, err
}

// Secrets implements secret.Store.
func (s *Store) Secrets(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[secret.Secret], error) {
	var found []secret.Secret
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = list(c, selectSecret+`WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`,
			[]any{workspaceID, page.After, page.Limit + 1}, scanSecret)
		return err
	})
	return paging.Cut(found, page.Limit, func(s secret.Secret) string { return s.Name }), err
}

// DeleteSecret implements secret.Store.
func (s *Store) DeleteSecret(ctx context.Context, workspaceID, name string, entry audit.Entry) (bool, error) {
	deleted := false
	err := s.write(ctx, func(u *unit) error {
		deleted = false // also when the unit runs again
		if err := oneAtATime(u, secrets, workspaceID); err != nil {
			return err
		}
		n, err := u.Exec(`DELETE FROM secrets WHERE workspace_id = $1 AND name = $2`, workspaceID, name)
		if deleted = n == 1; err != nil || !deleted {
			return err
		}
		if err := shrink(u, secrets, workspaceID, 1); err != nil {
			return err
		}
		return insertAudit(u, entry)
	})
	return deleted, err
}

// SealedSecrets implements secret.Store.
func (s *Store) SealedSecrets(ctx context.Context, workspaceID string, names []string) (map[string][]byte, error) {
	found := map[string][]byte{}
	if len(names) == 0 {
		return found, nil
	}
	args, places := []any{workspaceID}, make([]string, len(names))
	for i, name := range names {
		args = append(args, name)
		places[i] = "$" + strconv.Itoa(i+2)
	}
	err := s.read(ctx, func(c Conn) error {
		clear(found) // also when the unit runs again
		return c.Query(`SELECT name, value FROM secrets WHERE workspace_id = $1 AND name IN (`+strings.Join(places, ", ")+`)`,
			args, func(r Row) error {
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

// PutVariable implements secret.Store.
func (s *Store) PutVariable(ctx context.Context, in secret.Variable, atMost, bytesAtMost int, deed secret.Deed) (secret.Variable, secret.Outcome, error) {
	now := in
	var outcome secret.Outcome
	err := s.write(ctx, func(u *unit) (err error) {
		now = in
		if err := oneAtATime(u, variables, in.WorkspaceID); err != nil {
			return err
		}
		was, err := one(u, selectVariable+`WHERE workspace_id = $1 AND name = $2`, []any{in.WorkspaceID, in.Name}, scanVariable)
		if err != nil {
			return err
		}
		more := len(in.Value)
		if was != nil {
			now.CreatedAt, now.CreatedBy = was.CreatedAt, was.CreatedBy
			more -= len(was.Value)
		}
		outcome, err = putValue(u, in, more, atMost, bytesAtMost, deed)
		return err
	})
	return now, outcome, err
}

// putValue writes a variable that takes so many bytes more than before, if
// there is room for it and for them.
func putValue(u *unit, in secret.Variable, more, atMost, bytesAtMost int, deed secret.Deed) (secret.Outcome, error) {
	held, err := number(u, `SELECT variable_bytes FROM workspaces WHERE id = $1`, in.WorkspaceID)
	if err != nil {
		return 0, err
	}
	if more > 0 && held+more > bytesAtMost {
		return secret.TooLarge, nil
	}
	row := named{variables, in.WorkspaceID, in.Name, string(in.Value), in.UpdatedAt, in.UpdatedBy}
	outcome, err := put(u, row, atMost, deed)
	if err != nil || outcome == secret.TooMany {
		return outcome, err
	}
	err = u.Do(`UPDATE workspaces SET variable_bytes = variable_bytes + $1 WHERE id = $2`, more, in.WorkspaceID)
	return outcome, err
}

// Variable implements secret.Store.
func (s *Store) Variable(ctx context.Context, workspaceID, name string) (*secret.Variable, error) {
	var found *secret.Variable
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = one(c, selectVariable+`WHERE workspace_id = $1 AND name = $2`, []any{workspaceID, name}, scanVariable)
		return err
	})
	return found, err
}

// Variables implements secret.Store.
func (s *Store) Variables(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[secret.Variable], error) {
	var found []secret.Variable
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = list(c, selectVariable+`WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`,
			[]any{workspaceID, page.After, page.Limit + 1}, scanVariable)
		return err
	})
	return paging.Cut(found, page.Limit, func(v secret.Variable) string { return v.Name }), err
}

// DeleteVariable implements secret.Store.
func (s *Store) DeleteVariable(ctx context.Context, workspaceID, name string, entry audit.Entry) (bool, error) {
	deleted := false
	err := s.write(ctx, func(u *unit) error {
		deleted = false // also when the unit runs again
		if err := oneAtATime(u, variables, workspaceID); err != nil {
			return err
		}
		was, err := one(u, selectVariable+`WHERE workspace_id = $1 AND name = $2`, []any{workspaceID, name}, scanVariable)
		if err != nil || was == nil {
			return err
		}
		n, err := u.Exec(`DELETE FROM variables WHERE workspace_id = $1 AND name = $2`, workspaceID, name)
		if deleted = n == 1; err != nil || !deleted {
			return err
		}
		if err := shrink(u, variables, workspaceID, 1); err != nil {
			return err
		}
		if err := shrink(u, "variable_bytes", workspaceID, int64(len(was.Value))); err != nil {
			return err
		}
		return insertAudit(u, entry)
	})
	return deleted, err
}

// VariableValues implements secret.Store.
func (s *Store) VariableValues(ctx context.Context, workspaceID string) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	err := s.read(ctx, func(c Conn) error {
		rows, err := list(c, selectVariable+`WHERE workspace_id = $1`, []any{workspaceID}, scanVariable)
		for _, v := range rows {
			found[v.Name] = v.Value
		}
		return err
	})
	return found, err
}

// SecretNames implements secret.Store.
func (s *Store) SecretNames(ctx context.Context, workspaceID string) (secret.Names, error) {
	var names secret.Names
	scan := func(r Row) (name string, err error) {
		err = r.Scan(&name)
		return name, err
	}
	err := s.read(ctx, func(c Conn) (err error) {
		if names.Secrets, err = list(c, `SELECT name FROM secrets WHERE workspace_id = $1 ORDER BY name`, []any{workspaceID}, scan); err != nil {
			return err
		}
		names.Variables, err = list(c, `SELECT name FROM variables WHERE workspace_id = $1 ORDER BY name`, []any{workspaceID}, scan)
		return err
	})
	return names, err
}
