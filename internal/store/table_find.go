package store

import (
	"slices"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
)

type stored struct {
	table.Record
	size int
}

const recordColumns = `r.id, r.data, r.size, r.created_at, r.updated_at`

func scanStored(r database.Row) (stored, error) {
	var (
		row  stored
		data []byte
	)
	err := r.Scan(&row.ID, &data, &row.size, &row.CreatedAt, &row.UpdatedAt)
	if err != nil {
		return row, err
	}
	row.Cells, err = table.Decode(data)
	return row, err
}

// indexed is a row that was found in an index or by a range of keys, with its place
// there.
type indexed struct {
	stored
	value string
}

func scanIndexed(r database.Row) (indexed, error) {
	var (
		row  indexed
		data []byte
	)
	err := r.Scan(&row.value, &row.ID, &data, &row.size, &row.CreatedAt, &row.UpdatedAt)
	if err != nil {
		return row, err
	}
	row.Cells, err = table.Decode(data)
	return row, err
}

// These statements are all that there are for queries: the rest of a filter is
// evaluated on the rows, so users do not determine the text of any statement.
const (
	rowByID    = `SELECT ` + recordColumns + ` FROM table_rows r WHERE r.table_id = $1 AND r.id = $2 AND r.workspace_id = $3`
	rowByKey   = `SELECT ` + recordColumns + ` FROM table_rows r WHERE r.table_id = $1 AND r.unique_key = $2 AND r.workspace_id = $3`
	rowsByID   = `SELECT ` + recordColumns + ` FROM table_rows r WHERE r.table_id = $1 AND r.workspace_id = $2 AND r.id > $3 ORDER BY r.id LIMIT $4`
	indexedRow = `SELECT i.value, ` + recordColumns + ` FROM table_index i JOIN table_rows r ON r.table_id = i.table_id AND r.id = i.row_id
		WHERE i.table_id = $1 AND i.workspace_id = $2 AND r.workspace_id = $2 AND i.column_id = $3 AND `
	rowsByIndex     = indexedRow + `(i.value, i.row_id) > ($4, $5) AND i.value < $6 ORDER BY i.value, i.row_id LIMIT $7`
	rowsByIndexDesc = indexedRow + `(i.value, i.row_id) < ($4, $5) AND i.value >= $6 ORDER BY i.value DESC, i.row_id DESC LIMIT $7`
	keyedRow        = `SELECT r.unique_key, ` + recordColumns + ` FROM table_rows r WHERE r.table_id = $1 AND r.workspace_id = $2 AND `
	rowsInKeys      = keyedRow + `(r.unique_key, r.id) > ($3, $4) AND r.unique_key < $5 ORDER BY r.unique_key LIMIT $6`
	rowsInKeysDesc  = keyedRow + `(r.unique_key, r.id) < ($3, $4) AND r.unique_key >= $5 ORDER BY r.unique_key DESC LIMIT $6`
)

// scanBatch is how many rows are read at a time.
const scanBatch = 200

// scanRows calls each with the rows that a plan reads, in its order, until it returns
// false. If that order is the one of the result, it starts after a position.
func scanRows(c database.Conn, t table.Table, p table.Plan, from *table.Position, each func(stored) bool) error {
	switch {
	case p.Key != "":
		rows, err := database.List(c, rowByKey, []any{t.ID, p.Key, t.WorkspaceID}, scanStored)
		if err == nil && len(rows) > 0 {
			each(rows[0])
		}
		return err
	case p.Column != "":
		return scanIndex(c, t, p, from, each)
	}
	after := ""
	if p.Sorted && from != nil {
		after = from.ID
	}
	for {
		rows, err := database.List(c, rowsByID, []any{t.ID, t.WorkspaceID, after, scanBatch}, scanStored)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if !each(row) {
				return nil
			}
		}
		if len(rows) < scanBatch {
			return nil
		}
		after = rows[len(rows)-1].ID
	}
}

// scanIndex is scanRows for a plan that uses an index or a range of keys.
func scanIndex(c database.Conn, t table.Table, p table.Plan, from *table.Position, each func(stored) bool) error {
	forwards, backwards, of := rowsByIndex, rowsByIndexDesc, []any{t.ID, t.WorkspaceID, p.Column}
	if p.ByKey {
		forwards, backwards, of = rowsInKeys, rowsInKeysDesc, of[:2]
	}
	statement, at, end := forwards, table.Position{Key: p.Low}, p.High
	if p.Descending() {
		statement, at, end = backwards, table.Position{Key: p.High}, p.Low
	}
	if p.Sorted && from != nil {
		at = *from
	}
	for {
		rows, err := database.List(c, statement, append(slices.Clip(of), at.Key, at.ID, end, scanBatch), scanIndexed)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if !each(row.stored) {
				return nil
			}
		}
		if len(rows) < scanBatch {
			return nil
		}
		last := rows[len(rows)-1]
		at = table.Position{Key: last.value, ID: last.ID}
	}
}

// pageSize limits the rows that findRows returns. The last row may exceed the limit
// of bytes, which shows that there are more.
type pageSize struct {
	rows  int
	bytes int // zero: no limit
	// examined is how many rows may be read to find them, and how many bytes they may
	// have; zero: no limit.
	examined, examinedBytes int
}

// examined is how much was read to find rows.
type examined struct{ rows, bytes int }

func (s pageSize) checkExamined(read examined) error {
	if s.examined > 0 && (read.rows > s.examined || read.bytes > s.examinedBytes) {
		return fault.Field("/filter", "reads more than %d rows or %d bytes to find those to change: "+
			"add a condition on the key or on an indexed column, or find the rows first and change them by their keys", s.examined, s.examinedBytes)
	}
	return nil
}

func (s pageSize) cut(found []stored) []stored {
	found = found[:min(len(found), s.rows)]
	if s.bytes == 0 {
		return found
	}
	within := len(withinBytes(found, s.bytes))
	return found[:min(len(found), within+1)]
}

// withinBytes returns the first rows that have at most the given size together, but
// at least one.
func withinBytes(rows []stored, bytes int) []stored {
	for i, row := range rows {
		if bytes -= row.size; bytes < 0 && i > 0 {
			return rows[:i]
		}
	}
	return rows
}

// findRows returns the first rows after a position, and how much was read, also if it
// fails. It holds little more than one page in memory.
func findRows(c database.Conn, t table.Table, p table.Plan, size pageSize, from *table.Position) (found []stored, read examined, err error) {
	position := func(r stored) table.Position { return table.Position{Key: p.SortKey(r.Record), ID: r.ID} }
	bytes := 0 // of the rows found so far
	keep := func() {
		slices.SortFunc(found, func(a, b stored) int {
			switch x, y := position(a), position(b); {
			case p.Before(x, y):
				return -1
			case p.Before(y, x):
				return 1
			}
			return 0
		})
		found, bytes = size.cut(found), 0
		for _, r := range found {
			bytes += r.size
		}
	}
	var tooMuch error
	err = scanRows(c, t, p, from, func(r stored) bool {
		read = examined{read.rows + 1, read.bytes + r.size}
		if tooMuch = size.checkExamined(read); tooMuch != nil {
			return false
		}
		if !p.Filter.Match(r.Record) || from != nil && !p.Before(*from, position(r)) {
			return true
		}
		found, bytes = append(found, r), bytes+r.size
		full := size.bytes > 0 && bytes > size.bytes && len(found) > 1
		if p.Sorted {
			return len(found) < size.rows && !full
		}
		if len(found) >= 2*size.rows+scanBatch || size.bytes > 0 && bytes > 2*size.bytes+maxPending {
			keep()
		}
		return true
	})
	if err == nil {
		err = tooMuch
	}
	if !p.Sorted {
		keep()
	}
	return found, read, err
}

// A read that ends in the middle of a scan of this size has failed because of the scan.
// A smaller one takes less than a second, so that something else was slow.
const (
	largeScan      = 100_000
	largeScanBytes = 64 << 20
)

// explainScan replaces the error of a read that took too long because it read too many
// rows: trying again would not help.
func explainScan(err error, op table.Find, read examined) error {
	if !fault.Is(err, fault.Unavailable) || read.rows < largeScan && read.bytes < largeScanBytes {
		return err
	}
	at, remedy := "/filter", "add a condition on the key or on an indexed column that every row must meet"
	if op.Filter == nil {
		at, remedy = "/sort", "sort by the key or by an indexed column"
	}
	return fault.Field(at, "takes too long in a table of this size, after reading %d rows: %s", read.rows, remedy).Because(err)
}

// maxPending is how many bytes of rows are collected before they are sorted.
const maxPending = 4 << 20
