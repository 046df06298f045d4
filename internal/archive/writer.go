package archive

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"unicode/utf8"
)

// Writer writes an archive: each table of the header with all its rows, in the
// order of the header.
type Writer struct {
	tables      []Table
	tablesBegun int // tables
	rows        map[string]int64
	line        []any
	gzip        *gzip.Writer
	sum         hash.Hash
	lines       *json.Encoder
}

// NewWriter returns a Writer after writing the header. It sets the header's Format
// and Version.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	h.Format, h.Version = Format, Version
	if err := h.check(); err != nil {
		return nil, err
	}
	// The service is down during an export: speed matters more than size.
	packed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	w := &Writer{tables: h.Tables, rows: map[string]int64{}, gzip: packed, sum: sha256.New()}
	w.lines = newEncoder(io.MultiWriter(w.sum, packed))
	return w, w.lines.Encode(h)
}

// newEncoder returns an encoder that writes values as lines of JSON.
func newEncoder(to io.Writer) *json.Encoder {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e
}

// Begin starts the next table of the header.
func (w *Writer) Begin(s Section) error {
	if w.tablesBegun == len(w.tables) || s.Table != w.tables[w.tablesBegun].Name {
		return fmt.Errorf("archive: table %s is not the next one", s.Table)
	}
	w.tablesBegun++
	w.rows[s.Table] = 0
	return w.lines.Encode(s)
}

// Row writes a row of the current table, with a value for each column or nil for
// null.
func (w *Writer) Row(values []any) error {
	if w.tablesBegun == 0 {
		return errors.New("archive: Row called before Begin")
	}
	table := w.tables[w.tablesBegun-1]
	if len(values) != len(table.Columns) {
		return fmt.Errorf("archive: %d values for the %d columns of %s", len(values), len(table.Columns), table.Name)
	}
	w.line = w.line[:0]
	for i, column := range table.Columns {
		value, ok := column.Kind.encode(values[i])
		if !ok {
			return fmt.Errorf("archive: column %s of %s holds a %T", column.Name, table.Name, values[i])
		}
		w.line = append(w.line, value)
	}
	w.rows[table.Name]++
	return w.lines.Encode(w.line)
}

// encode returns the value to encode as JSON. It reports false if the value is
// not of the kind.
func (k Kind) encode(value any) (any, bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case string:
		if !utf8.ValidString(v) {
			return binaryText{[]byte(v)}, k == Text
		}
		return v, k == Text
	case int64:
		return v, k == Int
	case bool:
		return v, k == Bool
	case []byte:
		return v, k == Bytes && v != nil
	}
	return nil, false
}

// Rows returns the number of rows written so far.
func (w *Writer) Rows() int64 { return total(w.rows) }

func total(rows map[string]int64) (n int64) {
	for _, count := range rows {
		n += count
	}
	return n
}

// Close writes the trailer. Without it the file is incomplete.
func (w *Writer) Close() error {
	if w.tablesBegun < len(w.tables) {
		return fmt.Errorf("archive: table %s is missing", w.tables[w.tablesBegun].Name)
	}
	if err := w.lines.Encode(newTrailer(w.rows, w.sum)); err != nil {
		return err
	}
	return w.gzip.Close()
}
