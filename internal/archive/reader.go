package archive

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
)

// Reader reads an archive. What it returns is verified only once Next has
// returned io.EOF.
type Reader struct {
	header     Header
	tablesRead int // tables
	inTable    bool
	pending    []byte // the line after the rows of a table, not processed yet
	rows       map[string]int64
	lines      *bufio.Reader
	line       []byte
	cells      []json.RawMessage
	sum        hash.Hash
}

// NewReader returns a Reader after reading the header.
func NewReader(from io.Reader) (*Reader, error) {
	packed, err := gzip.NewReader(from)
	if err != nil {
		if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("the file is not a Stepmill export")
		}
		return nil, err
	}
	r := &Reader{rows: map[string]int64{}, lines: bufio.NewReaderSize(packed, 64<<10), sum: sha256.New()}
	line, err := r.readLine()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &r.header); err != nil {
		return nil, errors.New("the file is not a Stepmill export")
	}
	r.sum.Write(line)
	return r, r.header.check()
}

// Header returns the header.
func (r *Reader) Header() Header { return r.header }

// Rows returns the number of rows read so far.
func (r *Reader) Rows() int64 { return total(r.rows) }

// Next advances to the next table and skips unread rows of the current one. It
// returns io.EOF after the last table if the file is complete and unchanged.
func (r *Reader) Next() (Section, error) {
	for r.inTable {
		if _, err := r.rowLine(); err != nil && !errors.Is(err, io.EOF) {
			return Section{}, err
		}
	}
	line := r.pending
	if r.tablesRead == 0 {
		var err error
		if line, err = r.readLine(); err != nil {
			return Section{}, err
		}
	}
	if r.tablesRead == len(r.header.Tables) {
		return Section{}, r.checkTrailer(line)
	}
	var s Section
	if err := decodeStrict(line, &s); err != nil || s.Table != r.header.Tables[r.tablesRead].Name {
		return Section{}, damaged("table %s is missing", r.header.Tables[r.tablesRead].Name)
	}
	r.sum.Write(line)
	r.tablesRead++
	r.inTable = true
	r.rows[s.Table] = 0
	return s, nil
}

// Row returns the values of the next row of the table, or io.EOF after the last
// one.
func (r *Reader) Row() ([]any, error) {
	line, err := r.rowLine()
	if err != nil {
		return nil, err
	}
	table := r.header.Tables[r.tablesRead-1]
	values, err := r.values(table, line)
	if err != nil {
		return nil, damaged("row %d of %s: %v", r.rows[table.Name], table.Name, err)
	}
	return values, nil
}

func (r *Reader) rowLine() ([]byte, error) {
	if !r.inTable {
		return nil, io.EOF
	}
	line, err := r.readLine()
	if err != nil {
		return nil, err
	}
	if line[0] != '[' {
		r.pending, r.inTable = bytes.Clone(line), false
		return nil, io.EOF
	}
	r.rows[r.header.Tables[r.tablesRead-1].Name]++
	r.sum.Write(line)
	return line, nil
}

func (r *Reader) values(table Table, line []byte) ([]any, error) {
	r.cells = r.cells[:0]
	if err := json.Unmarshal(line, &r.cells); err != nil {
		return nil, err
	}
	if len(r.cells) != len(table.Columns) {
		return nil, fmt.Errorf("%d values for %d columns", len(r.cells), len(table.Columns))
	}
	values := make([]any, len(r.cells))
	for i, column := range table.Columns {
		value, err := column.Kind.decode(r.cells[i])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
		values[i] = value
	}
	return values, nil
}

func (k Kind) decode(cell json.RawMessage) (any, error) {
	if string(cell) == "null" {
		return nil, nil
	}
	switch {
	case k == Int:
		return strconv.ParseInt(string(cell), 10, 64)
	case k == Bool && (cell[0] == 't' || cell[0] == 'f'):
		return cell[0] == 't', nil
	case k == Bytes && cell[0] == '"':
		value := []byte{}
		err := json.Unmarshal(cell, &value)
		return value, err
	case k == Text && cell[0] == '"':
		value := ""
		err := json.Unmarshal(cell, &value)
		return value, err
	case k == Text && cell[0] == '{':
		var value binaryText
		err := decodeStrict(cell, &value)
		return string(value.Base64), err
	}
	return nil, fmt.Errorf("the value is not of kind %s", k)
}

// checkTrailer checks the last line, and that nothing follows it.
func (r *Reader) checkTrailer(line []byte) error {
	var want bytes.Buffer
	if err := newEncoder(&want).Encode(newTrailer(r.rows, r.sum)); err != nil {
		return err
	}
	if !bytes.Equal(line, want.Bytes()) {
		return damaged("the trailer is missing or does not match the rows")
	}
	switch _, err := r.lines.ReadByte(); {
	case err == nil:
		return damaged("there is data after the trailer")
	case errors.Is(err, io.EOF):
		return io.EOF
	default:
		return classifyReadError(err)
	}
}

// readLine reads a line including its newline. It is valid until the next call.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.lines.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case err == nil && len(r.line) > 1:
			return r.line, nil
		case err == nil:
			return nil, damaged("a line is empty")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, classifyReadError(err)
		case len(r.line) > MaxLine:
			return nil, damaged("a line is longer than %d bytes", MaxLine)
		}
	}
}

// classifyReadError distinguishes a damaged file from a failure to read it.
func classifyReadError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader) ||
		errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return damaged("%v", err)
	}
	return err
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// decodeStrict decodes a line and rejects unknown fields and trailing data.
func decodeStrict(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is data after the value")
	}
	return nil
}
