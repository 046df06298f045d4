package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/uid"
)

// MaxImport is how many rows one import may have.
const MaxImport = MaxWrites

// ParseCSV reads the rows of an import. The first line names the columns, and its
// separators are those of all lines; columns that it does not name are null. An empty
// field is null, except in a required text column. Every error names the line and the
// column of the file.
func (t Table) ParseCSV(data []byte, at time.Time) (Import, error) {
	reader := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\uFEFF"))))
	reader.Comma = csvSeparator(data)
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return Import{}, csvError("", 1, 1, "the file is empty: its first line must name the columns")
	}
	if err != nil {
		return Import{}, csvSyntax(err)
	}
	columns, err := t.csvHeader(reader, header)
	if err != nil {
		return Import{}, err
	}
	var op Import
	seen := map[string]int{}
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return op, nil
		}
		if err != nil {
			return Import{}, csvSyntax(err)
		}
		line, _ := reader.FieldPos(0)
		if len(op.Rows) == MaxImport {
			return Import{}, csvError("", line, 1, "an import has at most %d rows: split the file", MaxImport)
		}
		row, err := csvRow(reader, columns, fields)
		if err != nil {
			return Import{}, err
		}
		row.RowID, row.Line = uid.At(uid.Row, at), line
		if err := t.csvKey(row, seen); err != nil {
			return Import{}, err
		}
		op.Rows = append(op.Rows, row)
	}
}

// csvSeparator returns the separator of fields that the first line has most of. The
// names of columns contain none of them. Spreadsheets write semicolons where the comma
// is the decimal separator.
func csvSeparator(data []byte) rune {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	best, most := ',', bytes.Count(line, []byte(","))
	for _, separator := range ";\t|" {
		if n := bytes.Count(line, []byte(string(separator))); n > most {
			best, most = separator, n
		}
	}
	return best
}

// csvKey rejects a key that an earlier line has too.
func (t Table) csvKey(row ImportRow, seen map[string]int) error {
	c := t.KeyColumn()
	if c == nil {
		return nil
	}
	key, err := t.LookupKey("", row.Values[c.Name])
	if err != nil {
		return csvError(c.Name, row.Line, 1, "%s", strings.TrimPrefix(messageOf(err), ": "))
	}
	if first, ok := seen[key]; ok {
		return csvError(c.Name, row.Line, 1, "line %d has the same key", first)
	}
	seen[key] = row.Line
	return nil
}

func (t Table) csvHeader(reader *csv.Reader, header []string) ([]Column, error) {
	columns, given := make([]Column, len(header)), map[string]bool{}
	for i, name := range header {
		line, at := reader.FieldPos(i)
		c, err := t.columnAt("", name)
		if err != nil {
			return nil, csvError(name, line, at, "%s", strings.TrimPrefix(messageOf(err), ": "))
		}
		if given[name] {
			return nil, csvError(name, line, at, "the column is named twice")
		}
		columns[i], given[name] = *c, true
	}
	for _, c := range t.Columns {
		if c.Required && !given[c.Name] {
			return nil, csvError(c.Name, 1, 1, "the column is required, but the first line does not name it")
		}
	}
	return columns, nil
}

func csvRow(reader *csv.Reader, columns []Column, fields []string) (ImportRow, error) {
	row := ImportRow{Values: make(Values, len(columns))}
	for i, field := range fields {
		c := columns[i]
		if c.Type == File {
			row.Files = append(row.Files, c.Name)
		}
		raw, err := c.fromCSV(field)
		if err == nil {
			raw, err = c.normalize(raw)
		}
		if err != nil {
			line, at := reader.FieldPos(i)
			return row, csvError(c.Name, line, at, "%s", err)
		}
		if raw == nil {
			raw = null
		}
		row.Values[c.Name] = raw
	}
	return row, nil
}

func (c Column) fromCSV(field string) (json.RawMessage, error) {
	switch {
	case field == "" && (c.Type != Text || !c.Required):
		return null, nil
	case c.Type == Text || c.Type == Time:
		return strictjson.Encode(field)
	case c.Type == File:
		return strictjson.Encode(map[string]string{expr.FileKey: field})
	}
	return json.RawMessage(field), nil
}

// toCSV is the inverse of fromCSV.
func (c Column) toCSV(cell json.RawMessage) string {
	switch {
	case cell == nil:
		return ""
	case c.Type == Text || c.Type == Time:
		return unquote(cell)
	case c.Type == File:
		return fileID(cell)
	}
	return string(cell)
}

// CSVHeader returns the first line of an export.
func (t Table) CSVHeader() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// CSVFields returns a row of an export.
func (t Table) CSVFields(r Row) []string {
	fields := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cell := r.Values[c.Name]
		if bytes.Equal(cell, null) {
			cell = nil
		}
		fields[i] = c.toCSV(cell)
	}
	return fields
}

func csvSyntax(err error) error {
	var syntax *csv.ParseError
	if !errors.As(err, &syntax) {
		return err
	}
	reason := map[error]string{
		csv.ErrFieldCount: "the line has another number of fields than the first one",
		csv.ErrBareQuote:  `a quote inside a field: put the field in quotes and write "" for a quote`,
		csv.ErrQuote:      "the quotes of a field do not match",
	}[syntax.Err]
	if reason == "" {
		reason = "the line cannot be read"
	}
	return csvError("", syntax.Line, syntax.Column, "%s", reason)
}

// csvError returns an error about a place in a file.
func csvError(column string, line, at int, format string, args ...any) error {
	problem := fault.Field(pointerTo("", column), format, args...)
	where := fault.New(fault.InvalidRequest, "line %d", line)
	if column != "" {
		where.Message += ", column " + readable(column)
	}
	detail := fault.Detail{Message: problem.Details[0].Message, Line: line, Column: max(1, at)}
	if column != "" {
		detail.Pointer = problem.Details[0].Pointer
	}
	where.Message += ": " + detail.Message
	return where.With(detail)
}

// readable returns text from a file for a message: quoted if it has characters that
// cannot be seen.
func readable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return strconv.Quote(text)
	}
	return text
}

func messageOf(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return err.Error()
}
