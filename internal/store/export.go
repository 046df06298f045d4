package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/database"
)

// Mover is a database that an installation can be exported from and imported
// into.
type Mover interface {
	database.Driver
	// ReadSnapshot calls fn with a view of the committed data that does not
	// change however long fn takes. Rows are streamed: no other statement can run
	// until the last one is read.
	ReadSnapshot(ctx context.Context, fn func(database.Conn) error) error
	// LastNumber returns the largest number ever assigned to a row of a table,
	// even if that row has been deleted: positions in streams are such numbers.
	LastNumber(c database.Conn, table string) (int64, error)
	// Resequence makes a table's numbering continue after the given number.
	// Inserting rows with explicit numbers does not do that in every database.
	Resequence(c database.Conn, table string, last int64) error
	// AfterImport does what remains to be done for imported rows.
	AfterImport(c database.Conn) error
}

// exportPage is the number of rows that one query reads.
const exportPage = 500

// Export writes all rows of all tables from one consistent snapshot, and the bytes of
// the files, unless blobs is nil. It streams them, so its memory use depends neither on
// the number of rows nor on the size of files. Meanwhile nobody may delete blobs.
func Export(ctx context.Context, db Mover, blobs blob.Store, to *archive.Writer) error {
	return db.ReadSnapshot(ctx, func(c database.Conn) error {
		for i, t := range Exported() {
			if i == fileBytesAt {
				if err := exportBlobs(ctx, c, blobs, to); err != nil {
					return fmt.Errorf("export the bytes of files: %w", err)
				}
			}
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

// exportTable pages through a table in primary key order.
func exportTable(ctx context.Context, c database.Conn, t Table, to *archive.Writer) error {
	row := newRowBuffer(t)
	first, rest := t.pageQueries()
	for statement, args := first, []any{exportPage}; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		found := 0
		err := c.Query(statement, args, func(r database.Row) error {
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

// pageQueries returns the statements for the first page and for the following
// ones.
func (t Table) pageQueries() (first, rest string) {
	head := `SELECT ` + t.columnList() + ` FROM ` + t.Name
	tail := ` ORDER BY ` + sqlList(t.Key) + ` LIMIT $1`
	return head + tail, head + ` WHERE (` + sqlList(t.Key) + `) > (` + database.Placeholders(2, len(strings.Fields(t.Key))) + `)` + tail
}

type rowBuffer struct {
	columns    []archive.Column
	keyColumns []int // indexes of the primary key
	dest       []any
	values     []any
}

func newRowBuffer(t Table) *rowBuffer {
	r := &rowBuffer{columns: t.Columns()}
	r.dest, r.values = make([]any, len(r.columns)), make([]any, len(r.columns))
	for name := range strings.FieldsSeq(t.Key) {
		for i, column := range r.columns {
			if column.Name == name {
				r.keyColumns = append(r.keyColumns, i)
			}
		}
	}
	return r
}

func (r *rowBuffer) scan(row database.Row) error {
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
		r.values[i] = deref(dest)
	}
	return nil
}

// deref returns the value of a scan destination, or nil for NULL.
func deref(dest any) any {
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

func (r *rowBuffer) key() []any {
	var key []any
	for _, i := range r.keyColumns {
		key = append(key, r.values[i])
	}
	return key
}
