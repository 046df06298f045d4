package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/failpoint"
)

const (
	// importRows and importBytes bound what one unit of an import writes.
	importRows  = 500
	importBytes = 1 << 20
	// insertRows is how many rows one statement writes.
	insertRows = 20
)

// load writes the rows of a table.
func (m *move) load(ctx context.Context, t Table, from *archive.Reader) error {
	section, err := from.Next()
	if err != nil {
		return err
	}
	if t.Numbered {
		m.last = append(m.last, section)
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
			rows, size = append(rows, row), size+weight(row)
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

func weight(row []any) (n int) {
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

// write is a unit with some rows of a table.
func (m *move) write(ctx context.Context, t Table, rows [][]any) error {
	switch {
	case len(rows) == 0:
		return nil
	case t.Name == "installation":
		m.installation = rows[0] // last of all
		return nil
	}
	err := m.unit(ctx, func(c Conn) error {
		if err := insertAll(c, t, rows); err != nil {
			return err
		}
		if t.Name != "run_queue" {
			return nil
		}
		key := newCells(t).places[0]
		for _, row := range rows {
			if err := handBack(c, row[key], m.now); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		failpoint.Hit(failpoint.MidImport, t.Name)
	}
	return err
}

// insertAll writes rows, several with each statement while there are enough.
func insertAll(c Conn, t Table, rows [][]any) error {
	many, single := t.insertion(insertRows), t.insertion(1)
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

// insertion is the statement that writes n rows.
func (t Table) insertion(n int) string {
	statement := strings.Builder{}
	statement.WriteString(`INSERT INTO ` + t.Name + ` (` + t.selection() + `) VALUES `)
	place := 0
	for row := range n {
		for column := range t.Columns() {
			statement.WriteString(separator(row, column))
			place++
			statement.WriteString(`$` + strconv.Itoa(place))
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

// handBack takes a run from the node that held it where it comes from. As after
// a restart, steps under way count as a crash, and whoever is first takes it up;
// with another epoch than it ever had, nobody can write who held it there.
func handBack(c Conn, runID any, now time.Time) error {
	if err := c.Do(`UPDATE run_queue SET epoch = epoch + 1 WHERE run_id = $1`, runID); err != nil {
		return err
	}
	if err := c.Do(blame+` AND run_id = $2`, "", runID); err != nil {
		return err
	}
	return c.Do(`UPDATE run_queue SET node = NULL, wake_at = $1 WHERE run_id = $2`+inHands, now, runID)
}
