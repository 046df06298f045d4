// Package table owns the tables that workflows and people keep data in between runs:
// their columns and the rules for values, the filter language, and the operations on
// rows. It does not own how rows are stored and found (store), nor keys (state).
package table

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/suggest"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// Type is the type of a column.
type Type string

// The types of columns.
const (
	Text    Type = "text"
	Number  Type = "number"
	Boolean Type = "boolean"
	Time    Type = "time"
	JSON    Type = "json"
	File    Type = "file" // a reference to a stored file
)

// Types lists the types of columns.
func Types() []Type { return []Type{Text, Number, Boolean, Time, JSON, File} }

func (t Type) ordered() bool { return t != JSON && t != File }

// Column is a column of a table. Its id never changes and is never used again, so a
// column can be renamed without touching rows.
type Column struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Type     Type   `json:"type"`
	Required bool   `json:"required"`
	Indexed  bool   `json:"indexed"`
}

// Table is a table without its rows.
type Table struct {
	ID          string
	WorkspaceID string
	Name        string
	Columns     []Column
	// Key is the id of the column whose values are unique; empty if there is none.
	Key string
	// LastColumn is the number of the column that was added last.
	LastColumn int
	// Rows and Bytes are the number of rows and the size of their data.
	Rows      int
	Bytes     int
	CreatedAt time.Time
	CreatedBy string
	UpdatedAt time.Time
	UpdatedBy string
}

// Record is a row as it is stored: its values by column id, each in its canonical
// JSON. A null is left out.
type Record struct {
	ID        string
	Cells     map[string]json.RawMessage
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Row is a row as callers see it: its values by column name, including nulls.
type Row struct {
	ID        string
	Values    map[string]json.RawMessage
	Files     []string // the names of the columns whose values are references to files
	CreatedAt time.Time
	UpdatedAt time.Time
}

var null = json.RawMessage("null")

// Row returns a record by column names.
func (t Table) Row(r Record) Row {
	row := Row{ID: r.ID, Values: make(map[string]json.RawMessage, len(t.Columns)), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}
	for _, c := range t.Columns {
		row.Values[c.Name] = null
		if cell, ok := r.Cells[c.ID]; ok {
			row.Values[c.Name] = cell
			if c.Type == File {
				row.Files = append(row.Files, c.Name)
			}
		}
	}
	return row
}

// column returns the column with the given name, or nil.
func (t Table) column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// columnAt is like column; its error is about the place at that named the column.
func (t Table) columnAt(at, name string) (*Column, error) {
	if c := t.column(name); c != nil {
		return c, nil
	}
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return nil, fault.Field(at, "the table %s has no column %q%s", t.Name, name, suggest.Hint(name, names))
}

// byID returns the column with the given id, or nil.
func (t Table) byID(id string) *Column {
	for i := range t.Columns {
		if t.Columns[i].ID == id {
			return &t.Columns[i]
		}
	}
	return nil
}

// KeyColumn returns the column whose values are unique, or nil.
func (t Table) KeyColumn() *Column {
	if t.Key == "" {
		return nil
	}
	return t.byID(t.Key)
}

// Scope says where an operation takes place, within which limits and when.
type Scope struct {
	WorkspaceID string
	Table       string // the id or the name
	Plan        auth.Plan
	At          time.Time
}

// Store persists tables. Each method is one transaction. Names are unique per
// workspace.
type Store interface {
	In(tx txn.Tx) Store
	Rows
	InsertTable(ctx context.Context, t Table, atMost int, entry audit.Entry) (Outcome, error)
	// Table finds a table by id or name. It returns nil if there is none.
	Table(ctx context.Context, workspaceID, ref string) (*Table, error)
	// Tables is ordered by name.
	Tables(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Table], error)
	// ChangeTable applies what change returns for the table as it is now.
	ChangeTable(ctx context.Context, scope Scope, change func(Table) (Change, error), entry audit.Entry) (Table, error)
	DeleteTable(ctx context.Context, workspaceID, id string, entry audit.Entry) (deleted bool, err error)
}

// Rows persists the rows of tables. Each method is one transaction. It returns a fault
// and changes nothing if a table, a row or a column does not exist, a value is invalid,
// a key is taken, or a limit of the plan would be exceeded.
type Rows interface {
	InsertRow(ctx context.Context, scope Scope, op Insert) (Row, error)
	UpsertRow(ctx context.Context, scope Scope, op Upsert) (Upserted, error)
	// GetRow returns nil if there is no such row.
	GetRow(ctx context.Context, scope Scope, op Get) (*Row, error)
	FindRows(ctx context.Context, scope Scope, op Find) (Found, error)
	UpdateRows(ctx context.Context, scope Scope, op Update) ([]Row, error)
	DeleteRows(ctx context.Context, scope Scope, op Delete) (int, error)
	IncrementRow(ctx context.Context, scope Scope, op Increment) (Row, error)
	ImportRows(ctx context.Context, scope Scope, op Import) (Imported, error)
}

// Outcome is the result of creating a table.
type Outcome int

// The outcomes of creating a table.
const (
	Created Outcome = iota
	NameTaken
	TooMany
)

// The bounds of a table.
const (
	MaxColumns = 50
	// MaxKey is the maximum size of a value in the key column, in bytes.
	MaxKey = 255
	// MaxRewrite is how many rows a table may have for a change that has to look at each of them,
	// divided by the number of new indexes, and MaxRewriteBytes how many bytes. The change is one
	// transaction, for which others wait.
	MaxRewrite      = 5_000
	MaxRewriteBytes = 4 << 20
)

var (
	tableName  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	columnName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)
)

func checkName(name string) error {
	if !tableName.MatchString(name) {
		return fault.Field("/name", "must start with a letter a-z and have at most 63 characters a-z, 0-9, _ and -")
	}
	if uid.Valid(uid.Table, name) {
		return fault.Field("/name", "must not be the id of a table")
	}
	return nil
}

// NotFound returns the error for a table that does not exist.
func NotFound(ref string) error {
	return fault.New(fault.TableNotFound, "there is no table %q", ref)
}

// RowNotFound returns the error for a row that does not exist.
func RowNotFound(what string) error {
	return fault.New(fault.RowNotFound, "the table has no row %s", readable(what))
}
