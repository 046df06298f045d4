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

// Reader reads an archive. Only when Next has returned io.EOF is it known that
// what was read before is what was written.
type Reader struct {
	header Header
	begun  int // tables
	inside bool
	last   []byte // the line after the rows of a table
	rows   map[string]int64
	lines  *bufio.Reader
	line   []byte
	cells  []json.RawMessage
	sum    hash.Hash
}

// NewReader reads the header.
func NewReader(from io.Reader) (*Reader, error) {
	packed, err := gzip.NewReader(from)
	if err != nil {
		if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("the file is not an export of Stepmill")
		}
		return nil, err
	}
	r := &Reader{rows: map[string]int64{}, lines: bufio.NewReaderSize(packed, 64<<10), sum: sha256.New()}
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &r.header); err != nil {
		return nil, errors.New("the file is not an export of Stepmill")
	}
	r.sum.Write(line)
	return r, r.header.check()
}

// Header is the first line.
func (r *Reader) Header() Header { return r.header }

// Rows is how many rows were read.
func (r *Reader) Rows() int64 { return total(r.rows) }

// Next goes on to the next table, also when rows of the one before were not
// read yet. It returns io.EOF after the last table if the file was read to its
// end and nothing in it is missing or changed.
func (r *Reader) Next() (Section, error) {
	for r.inside {
		if _, err := r.row(); err != nil && !errors.Is(err, io.EOF) {
			return Section{}, err
		}
	}
	line := r.last
	if r.begun == 0 {
		var err error
		if line, err = r.next(); err != nil {
			return Section{}, err
		}
	}
	if r.begun == len(r.header.Tables) {
		return Section{}, r.end(line)
	}
	var s Section
	if err := strictly(line, &s); err != nil || s.Table != r.header.Tables[r.begun].Name {
		return Section{}, damaged("table %s is missing", r.header.Tables[r.begun].Name)
	}
	r.sum.Write(line)
	r.begun++
	r.inside = true
	r.rows[s.Table] = 0
	return s, nil
}

// Row returns the values of the next row of the table, and io.EOF after the
// last one.
func (r *Reader) Row() ([]any, error) {
	line, err := r.row()
	if err != nil {
		return nil, err
	}
	table := r.header.Tables[r.begun-1]
	values, err := r.values(table, line)
	if err != nil {
		return nil, damaged("row %d of %s: %v", r.rows[table.Name], table.Name, err)
	}
	return values, nil
}

// row is the line of the next row of the table.
func (r *Reader) row() ([]byte, error) {
	if !r.inside {
		return nil, io.EOF
	}
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	if line[0] != '[' {
		r.last, r.inside = bytes.Clone(line), false
		return nil, io.EOF
	}
	r.rows[r.header.Tables[r.begun-1].Name]++
	r.sum.Write(line)
	return line, nil
}

func (r *Reader) values(table Table, line []byte) ([]any, error) {
	r.cells = r.cells[:0]
	if err := json.Unmarshal(line, &r.cells); err != nil {
		return nil, err
	}
	if len(r.cells) != len(table.Columns) {
		return nil, fmt.Errorf("it has %d values for %d columns", len(r.cells), len(table.Columns))
	}
	values := make([]any, len(r.cells))
	for i, column := range table.Columns {
		value, err := column.Kind.read(r.cells[i])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
		values[i] = value
	}
	return values, nil
}

// read is the value that was encoded.
func (k Kind) read(cell json.RawMessage) (any, error) {
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
		var value raw
		err := strictly(cell, &value)
		return string(value.Base64), err
	}
	return nil, fmt.Errorf("it is not %s", k)
}

// end checks the last line, and that nothing comes after it.
func (r *Reader) end(line []byte) error {
	var want bytes.Buffer
	if err := encoder(&want).Encode(newTrailer(r.rows, r.sum)); err != nil {
		return err
	}
	if !bytes.Equal(line, want.Bytes()) {
		return damaged("its last line is missing, or tells of something else than what was read")
	}
	switch _, err := r.lines.ReadByte(); {
	case err == nil:
		return damaged("something follows its last line")
	case errors.Is(err, io.EOF):
		return io.EOF
	default:
		return explained(err)
	}
}

// next reads a line with its end. It is valid until the next one is read.
func (r *Reader) next() ([]byte, error) {
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
			return nil, explained(err)
		case len(r.line) > MaxLine:
			return nil, damaged("a line is longer than %d bytes", MaxLine)
		}
	}
}

// explained tells damage of the file from a failure to read it.
func explained(err error) error {
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

// strictly decodes a line that has nothing but what is asked for.
func strictly(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows")
	}
	return nil
}
