package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/database"
)

// A mapping lists the columns of a table once, each with the field of a T that it is stored
// in. How rows are read and inserted, what an export contains, and the check against the
// schemas of the databases follow from the list.
type mapping[T any] struct {
	Table
	// fields returns names of columns and pointers to their fields by turns.
	fields func(*T) []any
	names  []string // the columns that have a field
	insert string   // the statement that inserts a row with them
}

// unbound is in place of the field of a column that only statements of its own read and
// write.
type unbound archive.Kind

// local marks a column that is about one installation, so that exports do not contain it.
const local = unbound("")

// converted is in place of a field that is stored in another form.
type converted struct {
	kind archive.Kind
	// into is where the column is scanned to, and decode converts that, if it is not nil.
	into   any
	decode func() error
	encode func() (any, error)
}

// notExported is a time that may be absent and is about one installation, so that exports
// do not contain it.
func notExported(at **time.Time) converted {
	return converted{into: at, encode: func() (any, error) { return database.TimeOrNil(*at), nil }}
}

// nullable is a text that is stored as NULL if it is empty.
func nullable(text *string) converted {
	return converted{archive.Text, text, nil, func() (any, error) { return database.OrNil(*text), nil }}
}

// nullableText is a text in bytes that is stored as NULL if it is empty.
func nullableText(text *[]byte) converted {
	return converted{archive.Text, text, nil, func() (any, error) { return database.OrNil(string(*text)), nil }}
}

// jsonText is a value that is stored as JSON. Value is a pointer.
func jsonText(value any) converted {
	text := new([]byte)
	decode := func() error { return json.Unmarshal(*text, value) }
	return converted{archive.Text, text, decode, func() (any, error) {
		encoded, err := json.Marshal(value)
		return string(encoded), err
	}}
}

// mapTable returns a mapping. The key is the primary key of the table.
func mapTable[T any](name, key string, fields func(*T) []any) *mapping[T] {
	m := &mapping[T]{Table: Table{Name: name, Key: key}, fields: fields}
	all := fields(new(T))
	for i := 0; i < len(all); i += 2 {
		column, field := all[i].(string), all[i+1]
		if _, ok := field.(unbound); !ok {
			m.names = append(m.names, column)
		}
		m.add(column, field)
	}
	m.insert = insertStatement(name, m.names)
	return m
}

// add adds a column to the table under the kind of its field.
func (t *Table) add(column string, field any) {
	list := &t.NotExported
	switch kindOf(field) {
	case archive.Text:
		list = &t.Text
	case archive.Int:
		list = &t.Int
	case archive.Bool:
		list = &t.Bool
	case archive.Bytes:
		list = &t.Bytes
	}
	*list = strings.TrimSpace(*list + " " + column)
}

func kindOf(field any) archive.Kind {
	switch f := field.(type) {
	case unbound:
		return archive.Kind(f)
	case converted:
		return f.kind
	case *string, **string:
		return archive.Text
	case *bool, **bool:
		return archive.Bool
	case *[]byte:
		return archive.Bytes
	case *int, *int64, *time.Time, **time.Time:
		return archive.Int
	default:
		panic(fmt.Sprintf("a column cannot be stored in a %T", field))
	}
}

func (m *mapping[T]) columns(prefix string) string {
	return prefix + strings.Join(m.names, ", "+prefix)
}

func (m *mapping[T]) selects() string { return `SELECT ` + m.columns("") + ` FROM ` + m.Name + ` ` }

func (m *mapping[T]) scan(r database.Row) (v T, err error) {
	err = m.scanInto(r, &v)
	return v, err
}

// scanInto reads a row of the columns, followed by others.
func (m *mapping[T]) scanInto(r database.Row, v *T, more ...any) error {
	into, convert := m.destinations(v)
	if err := r.Scan(append(into, more...)...); err != nil {
		return err
	}
	return convert()
}

// into returns where to scan the columns of a mapping whose fields are all pointers.
func (m *mapping[T]) into(v *T) []any {
	into, _ := m.destinations(v)
	return into
}

// destinations returns where to scan the columns, and a function to call afterwards.
func (m *mapping[T]) destinations(v *T) (into []any, convert func() error) {
	var conversions []func() error
	fields := m.fields(v)
	into = fields[:0] // the names make room
	for i := 1; i < len(fields); i += 2 {
		switch f := fields[i].(type) {
		case unbound:
		case converted:
			into = append(into, f.into)
			if f.decode != nil {
				conversions = append(conversions, f.decode)
			}
		default:
			into = append(into, f)
		}
	}
	return into, func() error {
		for _, convert := range conversions {
			if err := convert(); err != nil {
				return err
			}
		}
		return nil
	}
}

// args returns the values of the columns, in the order of insert.
func (m *mapping[T]) args(v T) ([]any, error) { return m.values(v, m.names...) }

func (m *mapping[T]) values(v T, columns ...string) ([]any, error) {
	fields := m.fields(&v)
	args, at := make([]any, len(columns)), 0
	for i, column := range columns {
		for tries := 0; fields[at] != column; tries++ { // usually it is the next one
			if at = (at + 2) % len(fields); tries == len(fields) {
				return nil, fmt.Errorf("%s has no column %s", m.Name, column)
			}
		}
		var err error
		if args[i], err = valueOf(fields[at+1]); err != nil {
			return nil, fmt.Errorf("encode %s.%s: %w", m.Name, column, err)
		}
	}
	return args, nil
}

// insertInto inserts a row, with the names and values of unbound columns.
func (m *mapping[T]) insertInto(c database.Conn, v T, more ...any) error {
	args, err := m.args(v)
	if err != nil {
		return err
	}
	statement := m.insert
	if len(more) > 0 {
		names := slices.Clone(m.names)
		for i := 0; i < len(more); i += 2 {
			names, args = append(names, more[i].(string)), append(args, more[i+1])
		}
		statement = insertStatement(m.Name, names)
	}
	return c.Do(statement, args...)
}

func insertStatement(table string, columns []string) string {
	return `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) VALUES (` + database.Placeholders(1, len(columns)) + `)`
}

func valueOf(field any) (any, error) {
	switch f := field.(type) {
	case converted:
		return f.encode()
	case *string:
		return *f, nil
	case **string:
		return *f, nil
	case *bool:
		return *f, nil
	case **bool:
		return *f, nil
	case *[]byte:
		return *f, nil
	case *int:
		return *f, nil
	case *int64:
		return *f, nil
	case *time.Time:
		return *f, nil
	case **time.Time:
		return database.TimeOrNil(*f), nil
	default:
		return nil, fmt.Errorf("a %T", field)
	}
}
