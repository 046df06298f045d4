package expr

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

func documentFunctions() []function {
	return []function{
		fn("parseCSV", "parseCSV(text[, options]) array", "The rows of CSV text: maps with the names in the first row as keys, or with the option header set to false, lists. The option delimiter is a character, a comma by default.", 1, 2, parseCSV,
			`parseCSV("id,name\n1,Ada\n2,\"Grace, H.\"")`, `[{"id":"1","name":"Ada"},{"id":"2","name":"Grace, H."}]`,
			`parseCSV("1;2\n3;4", {"header": false, "delimiter": ";"})`, `[["1","2"],["3","4"]]`),
		fn("toCSV", "toCSV(rows[, options]) string", "A list of maps or of lists as CSV. The columns of maps are their keys, sorted, or those in the option columns. The option header set to false leaves out the names; delimiter is a character, a comma by default.", 1, 2, toCSV,
			`toCSV([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace, H."}])`, `"id,name\n1,Ada\n2,\"Grace, H.\"\n"`,
			`toCSV([[1, nil], ["a", true]], {"delimiter": ";"})`, `"1;\na;true\n"`),
		fn("parseXML", "parseXML(text) map", `The elements of XML text. An element with neither attributes nor elements is its text; any other is a map with its attributes as "@name", its text as "#text", and its elements by name, as a list if one occurs several times. A document type is ignored.`, 1, 1, parseXML,
			`parseXML("<order id=\"7\"><line>a</line><line>b</line><note/></order>")`, `{"order":{"@id":"7","line":["a","b"],"note":""}}`,
			`parseXML("<p lang=\"en\">Hi &amp; bye</p>")`, `{"p":{"#text":"Hi & bye","@lang":"en"}}`),
	}
}

const csvBuffer = 5 << 10 // bytes that a reader or writer allocates

func (o options) delimiter() (rune, error) {
	s, err := o.text("delimiter", ",")
	if err != nil {
		return 0, err
	}
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 || size != len(s) || strings.ContainsRune("\x00\"\r\n\uFFFD", r) {
		return 0, failf("%s: delimiter must be one character, but neither a quote nor a line break", o.of)
	}
	return r, nil
}

func parseCSV(m *evaluation, a args) (any, error) {
	text, err := a.text(0)
	if err != nil {
		return nil, err
	}
	given, err := a.options(m, 1, "header", "delimiter")
	if err != nil {
		return nil, err
	}
	hasHeader, err := given.flag("header", true)
	if err != nil {
		return nil, err
	}
	delimiter, err := given.delimiter()
	if err != nil {
		return nil, err
	}
	if err := m.write(csvBuffer + 2*len(text)); err != nil {
		return nil, err
	}
	if err := m.spend(len(text) / 4); err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\uFEFF")))
	r.Comma = delimiter
	var names []string
	if hasHeader {
		if names, err = readHeader(m, r); err != nil || names == nil {
			return []any{}, err
		}
	} else {
		r.FieldsPerRecord = -1
	}
	return boxed(m.readRows(r, names))
}

func readHeader(m *evaluation, r *csv.Reader) ([]string, error) {
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, csvProblem(err)
	}
	if err := m.spend(sortCost(len(names))); err != nil {
		return nil, err
	}
	sorted := slices.Sorted(slices.Values(names))
	if len(slices.Compact(sorted)) < len(names) {
		return nil, failf("the first row of the CSV has a name twice; set the option header to false")
	}
	return names, nil
}

func (m *evaluation) readRows(r *csv.Reader, names []string) ([]any, error) {
	out := []any{}
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, csvProblem(err)
		}
		if err := m.spend(len(fields)); err != nil {
			return nil, err
		}
		if err := m.grow(2*weightElement + weightList + len(fields)*(weightElement+2*weightBoxed)); err != nil {
			return nil, err
		}
		if names == nil {
			out = append(out, stringList(fields))
			continue
		}
		if err := m.growObject(2 * len(names)); err != nil {
			return nil, err
		}
		row := make(map[string]any, len(names))
		for i, name := range names {
			row[name] = fields[i]
		}
		out = append(out, row)
	}
}

func csvProblem(err error) error {
	e, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case ok && errors.Is(err, csv.ErrFieldCount):
		return failf("line %d of the CSV has another number of fields than the first row", e.Line)
	case ok:
		return failf("line %d of the CSV has a quote in the wrong place", e.Line)
	}
	return failf("the text is not valid CSV")
}

func toCSV(m *evaluation, a args) (any, error) {
	rows, err := a.list(0)
	if err != nil {
		return nil, err
	}
	given, err := a.options(m, 1, "columns", "header", "delimiter")
	if err != nil {
		return nil, err
	}
	hasHeader, err := given.flag("header", true)
	if err != nil {
		return nil, err
	}
	delimiter, err := given.delimiter()
	if err != nil {
		return nil, err
	}
	columns, err := m.columns(given, rows)
	if err != nil {
		return nil, err
	}
	if err := m.write(csvBuffer); err != nil {
		return nil, err
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = delimiter
	if hasHeader && columns != nil {
		if err := m.writeRow(w, &b, stringList(columns)); err != nil {
			return nil, err
		}
	}
	for _, row := range rows {
		fields, err := m.rowFields(row, columns)
		if err != nil {
			return nil, err
		}
		if err := m.writeRow(w, &b, fields); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.String(), nil
}

// columns returns the names of the columns, nil if the rows are lists.
func (m *evaluation) columns(given options, rows []any) ([]string, error) {
	listed, err := given.list("columns")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range listed {
		name, ok := v.(string)
		if !ok {
			return nil, failf("%s: columns must be a list of strings", given.of)
		}
		out = append(out, name)
	}
	if out != nil {
		return out, m.grow(2 * len(out) * weightElement)
	}
	all := map[string]any{}
	for _, row := range rows {
		object, _ := row.(map[string]any)
		if err := m.spend(1 + len(object)); err != nil {
			return nil, err
		}
		for name := range object {
			if _, ok := all[name]; ok {
				continue
			}
			if err := m.grow(2 * weightKey); err != nil {
				return nil, err
			}
			all[name] = nil
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return m.keys(all)
}

// rowFields returns the fields of a row, which is a map or a list.
func (m *evaluation) rowFields(row any, columns []string) ([]any, error) {
	row, err := m.normalize(row)
	if err != nil {
		return nil, err
	}
	switch row := row.(type) {
	case []any:
		return row, nil
	case map[string]any:
		out, err := m.newList(len(columns))
		for i := range out {
			out[i] = row[columns[i]]
		}
		return out, err
	}
	return nil, failf("argument 1 of toCSV must be a list of maps or of lists")
}

// writeRow writes a row with w, whose text goes to b.
func (m *evaluation) writeRow(w *csv.Writer, b *strings.Builder, fields []any) error {
	if err := m.grow(len(fields) * 2 * weightElement); err != nil {
		return err
	}
	record := make([]string, len(fields))
	for i, field := range fields {
		v, err := m.normalize(field)
		if err != nil {
			return err
		}
		if record[i], err = m.text(v); err != nil {
			return err
		}
		// Each quote is doubled, and the field is quoted.
		if err := m.extend(len(record[i]) + strings.Count(record[i], `"`) + 3); err != nil {
			return err
		}
	}
	if len(record) == 1 && record[0] == "" {
		w.Flush()
		b.WriteString("\"\"\n") // an empty line would not be a row
		return nil
	}
	if err := w.Write(record); err != nil {
		return failf("a row cannot be written as CSV")
	}
	return nil
}
