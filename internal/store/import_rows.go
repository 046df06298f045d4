package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/runqueue"
)

const (
	// importRows and importBytes bound what one transaction of an import writes. A row can have a
	// megabyte, so that a number of rows alone would bound neither its time nor its memory.
	importRows  = 500
	importBytes = 1 << 20
	// insertRows is the number of rows that one statement inserts.
	insertRows = 20
)

func (m *importer) load(ctx context.Context, t Table, from *archive.Reader) error {
	section, err := from.Next()
	if err != nil {
		return err
	}
	if t.Numbered {
		m.numbered = append(m.numbered, section)
	}
	var rows [][]any
	size := 0
	for {
		row, err := from.Row()
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if !end {
			rows, size = append(rows, row), size+rowSize(row)
		}
		if len(rows) == importRows || size >= importBytes || end {
			if err := m.write(ctx, t, rows); err != nil {
				return fmt.Errorf("import %s: %w", t.Name, err)
			}
			rows, size = rows[:0], 0
		}
		if end {
			return nil
		}
	}
}

func rowSize(row []any) (n int) {
	for _, value := range row {
		switch v := value.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}

func (m *importer) write(ctx context.Context, t Table, rows [][]any) error {
	switch {
	case len(rows) == 0:
		return nil
	case t.Name == "installation":
		m.installation = rows[0] // written by finish
		return nil
	}
	err := m.transaction(ctx, func(c database.Conn) error {
		if err := insertAll(c, t, rows); err != nil {
			return err
		}
		if t.Name != "run_queue" {
			return nil
		}
		key := newRowBuffer(t).keyColumns[0]
		for _, row := range rows {
			if err := runqueue.ReleaseImported(c, row[key], m.now); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		failpoint.Hit(failpoint.MidImport, t.Name)
	}
	if t.Name == "file_blobs" {
		m.files.rows += int64(len(rows))
	}
	return err
}

// insertAll inserts rows, several per statement while enough are left.
func insertAll(c database.Conn, t Table, rows [][]any) error {
	many, single := t.insertStatement(insertRows), t.insertStatement(1)
	for len(rows) > 0 {
		statement, n := single, 1
		if len(rows) >= insertRows {
			statement, n = many, insertRows
		}
		if err := c.Do(statement, slices.Concat(rows[:n]...)...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func (t Table) insertStatement(n int) string {
	statement := strings.Builder{}
	statement.WriteString(`INSERT INTO ` + t.Name + ` (` + t.columnList() + `) VALUES `)
	placeholder := 0
	for row := range n {
		for column := range t.Columns() {
			statement.WriteString(separator(row, column))
			placeholder++
			statement.WriteString(`$` + strconv.Itoa(placeholder))
		}
	}
	statement.WriteString(`)`)
	return statement.String()
}

func separator(row, column int) string {
	switch {
	case column > 0:
		return `, `
	case row > 0:
		return `), (`
	}
	return `(`
}
