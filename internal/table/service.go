package table

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// Service manages the tables of workspaces.
type Service struct{ store Store }

// NewService returns a service that uses the given store.
func NewService(store Store) *Service { return &Service{store: store} }

// In returns the service as a part of a transaction.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}

// Create creates a table. The key, which may be empty, is the name of the column
// whose values are unique.
func (s *Service) Create(ctx context.Context, actor auth.Actor, name string, columns []NewColumn, key string) (Table, error) {
	now := clock.Now()
	t, err := define(Table{
		ID: uid.At(uid.Table, now), WorkspaceID: actor.Workspace.ID, Name: name,
		CreatedAt: now, CreatedBy: actor.Name(), UpdatedAt: now, UpdatedBy: actor.Name(),
	}, columns, key)
	if err != nil {
		return t, err
	}
	atMost := actor.Limits().Tables
	outcome, err := s.store.InsertTable(ctx, t, atMost, actor.AuditEntry("table.created", "table", t.ID, map[string]any{"name": name}))
	switch {
	case err != nil:
	case outcome == NameTaken:
		err = Taken(name)
	case outcome == TooMany:
		err = OverLimit(actor.Workspace.Plan, "tables", atMost)
	}
	return t, err
}

// Taken returns the error for a name that another table has.
func Taken(name string) error {
	return fault.New(fault.TableExists, "there is already a table named %q", name)
}

// OverLimit returns the error for exceeding a limit of a plan, by its name in the
// usage of a workspace.
func OverLimit(plan auth.Plan, limit string, allowed int) error {
	what := map[string]string{
		"tables": "%d tables", "table_rows": "%d rows in all tables together", "row_bytes": "%d bytes for a row",
		"state_keys": "%d keys", "stored_bytes": "%d bytes for all rows and keys together",
	}[limit]
	return fault.New(fault.PlanLimitExceeded, "the %s plan allows "+what+" (%s); delete some first or store less", plan, allowed, limit)
}

// Get returns a table by id.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Table, error) {
	if !uid.Valid(uid.Table, id) {
		return Table{}, NotFound(id)
	}
	found, err := s.store.Table(ctx, actor.Workspace.ID, id)
	return fault.Found(found, err, NotFound, id)
}

// List lists the tables of a workspace by name.
func (s *Service) List(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Table], error) {
	return s.store.Tables(ctx, actor.Workspace.ID, page)
}

// Update changes the name or the columns of a table.
func (s *Service) Update(ctx context.Context, actor auth.Actor, id string, p Patch) (Table, error) {
	t, err := s.Get(ctx, actor, id)
	if err != nil {
		return t, err
	}
	entry := actor.AuditEntry("table.updated", "table", id, map[string]any{"name": t.Name})
	return s.store.ChangeTable(ctx, scopeOf(actor, id), func(t Table) (Change, error) {
		change, err := t.Change(p)
		change.Table.UpdatedAt, change.Table.UpdatedBy = clock.NowAfter(t.UpdatedAt), actor.Name()
		return change, err
	}, entry)
}

// Delete deletes a table with its rows.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string) error {
	t, err := s.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	deleted, err := s.store.DeleteTable(ctx, actor.Workspace.ID, id, actor.AuditEntry("table.deleted", "table", id, map[string]any{"name": t.Name}))
	if err == nil && !deleted {
		err = NotFound(id)
	}
	return err
}

func scopeOf(actor auth.Actor, id string) Scope {
	return Scope{WorkspaceID: actor.Workspace.ID, Table: id, Plan: actor.Workspace.Plan, At: clock.Now()}
}

// rowScope returns the scope of an operation on a table and, unless rowID is empty,
// one of its rows.
func (s *Service) rowScope(ctx context.Context, actor auth.Actor, id, rowID string) (Scope, error) {
	if !uid.Valid(uid.Table, id) {
		return Scope{}, NotFound(id)
	}
	if rowID != "" && !uid.Valid(uid.Row, rowID) {
		if _, err := s.Get(ctx, actor, id); err != nil {
			return Scope{}, err
		}
		return Scope{}, RowNotFound(rowID)
	}
	return scopeOf(actor, id), nil
}

// Insert adds a row.
func (s *Service) Insert(ctx context.Context, actor auth.Actor, id string, values Values) (Row, error) {
	scope, err := s.rowScope(ctx, actor, id, "")
	if err != nil {
		return Row{}, err
	}
	return s.store.InsertRow(ctx, scope, Insert{RowID: uid.At(uid.Row, scope.At), Values: values, Files: values.names()})
}

// Upsert adds a row, or replaces the given values of the row with the same key.
func (s *Service) Upsert(ctx context.Context, actor auth.Actor, id string, values Values) (Upserted, error) {
	scope, err := s.rowScope(ctx, actor, id, "")
	if err != nil {
		return Upserted{}, err
	}
	return s.store.UpsertRow(ctx, scope, Upsert{RowID: uid.At(uid.Row, scope.At), Values: values, Files: values.names()})
}

// Row returns a row by id.
func (s *Service) Row(ctx context.Context, actor auth.Actor, id, rowID string) (Row, error) {
	scope, err := s.rowScope(ctx, actor, id, rowID)
	if err != nil {
		return Row{}, err
	}
	found, err := s.store.GetRow(ctx, scope, Get{Selector{ID: rowID}})
	return fault.Found(found, err, RowNotFound, rowID)
}

// Find returns one page of rows.
func (s *Service) Find(ctx context.Context, actor auth.Actor, id string, op Find) (Found, error) {
	scope, err := s.rowScope(ctx, actor, id, "")
	if err != nil {
		return Found{}, err
	}
	return s.store.FindRows(ctx, scope, op)
}

// UpdateRow replaces the given values of a row.
func (s *Service) UpdateRow(ctx context.Context, actor auth.Actor, id, rowID string, values Values) (Row, error) {
	scope, err := s.rowScope(ctx, actor, id, rowID)
	if err != nil {
		return Row{}, err
	}
	rows, err := s.store.UpdateRows(ctx, scope, Update{Selector{ID: rowID}, values, values.names()})
	if err == nil && len(rows) == 0 {
		err = RowNotFound(rowID)
	}
	if err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

// DeleteRow deletes a row.
func (s *Service) DeleteRow(ctx context.Context, actor auth.Actor, id, rowID string) error {
	scope, err := s.rowScope(ctx, actor, id, rowID)
	if err != nil {
		return err
	}
	n, err := s.store.DeleteRows(ctx, scope, Delete{Selector{ID: rowID}})
	if err == nil && n == 0 {
		err = RowNotFound(rowID)
	}
	return err
}

// PrepareImport reads a CSV file. The result is imported by Import.
func (s *Service) PrepareImport(ctx context.Context, actor auth.Actor, id string, data []byte) (Import, error) {
	t, err := s.Get(ctx, actor, id)
	if err != nil {
		return Import{}, err
	}
	return t.ParseCSV(data, clock.Now())
}

// Import adds all rows or none. Rows whose key exists are replaced.
func (s *Service) Import(ctx context.Context, actor auth.Actor, id string, op Import) (Imported, error) {
	return s.store.ImportRows(ctx, scopeOf(actor, id), op)
}

// exportPage is how many rows an export reads at a time.
const exportPage = 200

// Export calls each with every row in the order of creation. Rows that are added
// while it reads may be missing.
func (s *Service) Export(ctx context.Context, actor auth.Actor, t Table, each func(Row) error) error {
	scope, after := scopeOf(actor, t.ID), ""
	for {
		found, err := s.store.FindRows(ctx, scope, Find{Limit: exportPage, After: after})
		if err != nil {
			return err
		}
		for _, row := range found.Rows {
			if err := each(row); err != nil {
				return err
			}
		}
		if after = found.Next; after == "" {
			return nil
		}
	}
}
