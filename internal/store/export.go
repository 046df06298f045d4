package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/archive"
)

// Mover is a database that an installation can move out of and into.
type Mover interface {
	Driver
	// Frozen calls fn with a view of what is committed that stays the same
	// however long fn takes. Rows are handed on as they are read, one at a time:
	// no other statement runs until the last of them is looked at.
	Frozen(ctx context.Context, fn func(Conn) error) error
	// LastNumber is the largest number that was given to a row of a table, also
	// if that row is gone: positions of streams are such numbers.
	LastNumber(c Conn, table string) (int64, error)
	// Resequence lets the numbers of a table go on after the given one. Rows
	// that came with a number of their own do not do that in every database.
	Resequence(c Conn, table string, last int64) error
	// Moved does what is left to do for rows that came from elsewhere.
	Moved(c Conn) error
}

// exportPage is how many rows one query reads.
const exportPage = 500

// Export writes all rows of all tables, as they are at one moment, one at a time:
// what it keeps in memory grows neither with the tables nor with their rows.
func Export(ctx context.Context, db Mover, to *archive.Writer) error {
	return db.Frozen(ctx, func(c Conn) error {
		for _, t := range Tables() {
			section := archive.Section{Table: t.Name}
			if t.Numbered {
				var err error
				if section.Last, err = db.LastNumber(c, t.Name); err != nil {
					return fmt.Errorf("export %s: %w", t.Name, err)
				}
			}
			if err := to.Begin(section); err != nil {
				return err
			}
			if err := exportTable(ctx, c, t, to); err != nil {
				return fmt.Errorf("export %s: %w", t.Name, err)
			}
		}
		return nil
	})
}

// exportTable walks along the primary key: each page begins after the last row
// of the one before.
func exportTable(ctx context.Context, c Conn, t Table, to *archive.Writer) error {
	row := newCells(t)
	first, rest := t.pages()
	for statement, args := first, []any{exportPage}; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		found := 0
		err := c.Query(statement, args, func(r Row) error {
			found++
			if err := row.scan(r); err != nil {
				return err
			}
			return to.Row(row.values)
		})
		if err != nil || found < exportPage {
			return err
		}
		statement, args = rest, append([]any{exportPage}, row.key()...)
	}
}

// pages are the statements that read the first page and the following ones.
func (t Table) pages() (first, rest string) {
	var places []string
	for i := range strings.Fields(t.Key) {
		places = append(places, "$"+strconv.Itoa(i+2))
	}
	head := `SELECT ` + t.selection() + ` FROM ` + t.Name
	tail := ` ORDER BY ` + joined(t.Key) + ` LIMIT $1`
	return head + tail, head + ` WHERE (` + joined(t.Key) + `) > (` + strings.Join(places, ", ") + `)` + tail
}

// cells holds one row of a table.
type cells struct {
	columns []archive.Column
	places  []int // of the key
	dest    []any
	values  []any
}

func newCells(t Table) *cells {
	r := &cells{columns: t.Columns()}
	r.dest, r.values = make([]any, len(r.columns)), make([]any, len(r.columns))
	for name := range strings.FieldsSeq(t.Key) {
		for i, column := range r.columns {
			if column.Name == name {
				r.places = append(r.places, i)
			}
		}
	}
	return r
}

// scan reads the row.
func (r *cells) scan(row Row) error {
	for i, column := range r.columns {
		switch column.Kind {
		case archive.Text:
			r.dest[i] = new(*string)
		case archive.Int:
			r.dest[i] = new(*int64)
		case archive.Bool:
			r.dest[i] = new(*bool)
		case archive.Bytes:
			r.dest[i] = new([]byte)
		}
	}
	if err := row.Scan(r.dest...); err != nil {
		return err
	}
	for i, dest := range r.dest {
		r.values[i] = held(dest)
	}
	return nil
}

// held is what was read into a destination; nil for NULL.
func held(dest any) any {
	switch d := dest.(type) {
	case **string:
		if *d != nil {
			return **d
		}
	case **int64:
		if *d != nil {
			return **d
		}
	case **bool:
		if *d != nil {
			return **d
		}
	case *[]byte:
		if *d != nil {
			return *d
		}
	}
	return nil
}

// key is where the row stands in the order of the table.
func (r *cells) key() []any {
	var key []any
	for _, i := range r.places {
		key = append(key, r.values[i])
	}
	return key
}
