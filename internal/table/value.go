package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/decimal"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Values are values by column name.
type Values map[string]json.RawMessage

// timeLayout has a fixed width, so that times sort as text.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// normalize returns a value of the column in its canonical JSON, or nil for null.
// The error says what is wrong with the value.
func (c Column) normalize(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, null) {
		if c.Required {
			return nil, fmt.Errorf("is required: give a %s that is not null", c.Type)
		}
		return nil, nil
	}
	switch c.Type {
	case Text:
		return normalizeText(raw)
	case Number:
		d, err := decimal.Parse(string(raw))
		if err != nil {
			return nil, fmt.Errorf("must be a number: %s %w", excerpt(raw), err)
		}
		return json.RawMessage(d.String()), nil
	case Boolean:
		if text := string(raw); text != "true" && text != "false" {
			return nil, fmt.Errorf("must be true or false, not %s", excerpt(raw))
		}
		return raw, nil
	case Time:
		return normalizeTime(raw)
	case File:
		return normalizeFile(raw)
	default:
		return normalizeJSON(raw)
	}
}

func normalizeText(raw json.RawMessage) (json.RawMessage, error) {
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return nil, fmt.Errorf("must be a text in quotes, not %s", excerpt(raw))
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("must not contain NUL characters")
	}
	return strictjson.Encode(text)
}

func normalizeTime(raw json.RawMessage) (json.RawMessage, error) {
	var text string
	problem := fmt.Errorf("must be a time such as \"2026-03-01T12:00:00Z\" (RFC 3339, years 0001 to 9999), not %s", excerpt(raw))
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return nil, problem
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if at = at.UTC(); err != nil || at.Year() < 1 || at.Year() > 9999 {
		return nil, problem
	}
	return json.RawMessage(`"` + at.Truncate(time.Microsecond).Format(timeLayout) + `"`), nil
}

func normalizeJSON(raw json.RawMessage) (json.RawMessage, error) {
	if err := strictjson.Check(raw); err != nil {
		return nil, fmt.Errorf("must be JSON: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("must be JSON: %w", err)
	}
	return strictjson.NormalizeStrings(out.Bytes())
}

// excerpt returns the beginning of a value, for messages.
func excerpt(raw []byte) string {
	const most = 40
	if len(raw) <= most {
		return readable(string(raw))
	}
	end := most
	for !utf8.RuneStart(raw[end]) {
		end--
	}
	return readable(string(raw[:end])) + "…"
}

// sortable returns a text that compares bytewise like values of the column compare.
// A null sorts before every value. JSON and files have no order.
func (c Column) sortable(cell json.RawMessage) string {
	if cell == nil {
		return sortNull
	}
	switch c.Type {
	case Text, Time:
		return sortValue + unquote(cell)
	case Number:
		d, _ := decimal.Parse(string(cell)) // stored cells are canonical
		return sortValue + d.Sortable()
	case Boolean:
		if string(cell) == "true" {
			return sortValue + "1"
		}
		return sortValue + "0"
	default:
		return sortValue
	}
}

// The first character of a sortable value. afterValues sorts after all of them.
const (
	sortNull    = "0"
	sortValue   = "1"
	afterValues = "2"
)

func unquote(cell json.RawMessage) string {
	var text string
	_ = json.Unmarshal(cell, &text) // stored cells are valid
	return text
}

// maxSortKey is how many bytes of a value the index and the order of rows consider, so that entries
// of the index have a bounded size.
const maxSortKey = 200

// shorten returns the part of a sortable value that the index has.
func shorten(sortable string) string {
	if len(sortable) <= maxSortKey {
		return sortable
	}
	end := maxSortKey
	for !utf8.RuneStart(sortable[end]) {
		end--
	}
	return sortable[:end]
}

// SortKey returns the position of a record in the index of a column.
func (c Column) SortKey(r Record) string { return shorten(c.sortable(r.Cells[c.ID])) }

// pointerTo returns the JSON pointer to a member, such as /values/amount.
func pointerTo(at, name string) string { return at + jsonpointer.Of(name) }

// normalize checks values and returns them by column id. With patch, columns that
// are not given stay as they are in the record. Files are the names of the columns
// whose values are references. The errors are about members of at.
func (t Table) normalize(at string, values Values, files []string, record map[string]json.RawMessage, patch bool) (map[string]json.RawMessage, error) {
	cells := make(map[string]json.RawMessage, len(t.Columns))
	var problems []error
	for _, c := range t.Columns {
		raw, given := values[c.Name]
		if !given && patch {
			if cell, ok := record[c.ID]; ok {
				cells[c.ID] = cell
			}
			continue
		}
		cell, err := c.normalize(raw)
		if c.Type == File && err == nil && cell != nil && !slices.Contains(files, c.Name) {
			err = errNotFile
		}
		if err == nil && c.ID == t.Key {
			err = checkKey(c, cell)
		}
		switch {
		case err != nil:
			problems = append(problems, fault.Field(pointerTo(at, c.Name), "%s", err))
		case cell != nil:
			cells[c.ID] = cell
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if t.column(name) == nil {
			_, err := t.columnAt(pointerTo(at, name), name)
			problems = append(problems, err)
		}
	}
	return cells, fault.Fields(problems...)
}

func checkKey(c Column, cell json.RawMessage) error {
	if len(c.sortable(cell)) > MaxKey {
		return fmt.Errorf("has more than %d bytes, the maximum for a key", MaxKey-len(sortValue))
	}
	return nil
}

// UniqueKey returns the value by which a record is unique, or "" if the table has no
// key.
func (t Table) UniqueKey(cells map[string]json.RawMessage) string {
	c := t.KeyColumn()
	if c == nil {
		return ""
	}
	return c.sortable(cells[c.ID])
}

// LookupKey returns the value by which a record with the given key is found.
func (t Table) LookupKey(at string, key json.RawMessage) (string, error) {
	c := t.KeyColumn()
	if c == nil {
		return "", fault.Field(at, "the table %s has no key column: find the row by its id or with a filter", t.Name)
	}
	cell, err := c.normalize(key)
	if err == nil {
		err = checkKey(*c, cell)
	}
	if err != nil {
		return "", fault.Field(at, "%s", err)
	}
	return c.sortable(cell), nil
}

// Encode returns the cells of a record as they are stored.
func Encode(cells map[string]json.RawMessage) ([]byte, error) { return strictjson.Encode(cells) }

// Decode is the inverse of Encode.
func Decode(data []byte) (cells map[string]json.RawMessage, err error) {
	err = json.Unmarshal(data, &cells)
	return cells, err
}
