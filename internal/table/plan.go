package table

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/fault"
)

// Plan says how the rows of a query are found: which of them are read, in which
// order, and which of those belong to the result.
type Plan struct {
	Filter Filter
	// Key, if not empty, is the unique key of the only row that can match.
	Key string
	// Column, if not empty, is the id of an indexed column or of the key. Only rows
	// whose sort key, or whose unique key if ByKey is set, is at least Low and less
	// than High can match.
	Column    string
	ByKey     bool
	Low, High string
	// Sorted is set if the rows are read in the order of the result.
	Sorted bool
	sort   *Column // nil: by id
	key    string  // the id of the key column
	desc   bool
}

// Plan returns how to find the rows of a query.
func (t Table) Plan(filter json.RawMessage, sort string) (Plan, error) {
	f, err := t.ParseFilter("/filter", filter)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Filter: f, key: t.Key}
	name, desc := strings.CutPrefix(sort, "-")
	p.desc = desc
	if sort != "" {
		if p.sort, err = t.columnAt("/sort", name); err != nil {
			return Plan{}, err
		}
		if !p.sort.Type.ordered() {
			return Plan{}, fault.Field("/sort", "%s is of type %s, which has no order", name, p.sort.Type)
		}
	}
	p.choose()
	return p, nil
}

// choose looks for the most selective access among the conditions that every result
// must meet.
func (p *Plan) choose() {
	best := 0
	for _, c := range p.Filter.conjuncts() {
		isKey := p.isKey(c.column.ID)
		if isKey && c.kind == "=" {
			p.Key, p.Column, p.ByKey = c.operands[0], "", false
			break
		}
		low, high, rank := c.bounds(p.cut(c.column.ID))
		if rank > best && (isKey || c.column.Indexed) {
			best, p.Column, p.ByKey, p.Low, p.High = rank, c.column.ID, isKey, low, high
		}
	}
	if p.Key == "" && p.Column == "" && p.sort != nil && (p.sort.Indexed || p.isKey(p.sort.ID)) {
		p.Column, p.ByKey, p.Low, p.High = p.sort.ID, p.isKey(p.sort.ID), sortNull, afterValues
	}
	switch {
	case p.Key != "":
		p.Sorted = true
	case p.Column == "":
		p.Sorted = p.sort == nil
	default:
		p.Sorted = p.sort != nil && p.sort.ID == p.Column
	}
}

// isKey reports whether a column is the key, whose values are in the database as a
// whole: it needs no index.
func (p Plan) isKey(columnID string) bool { return p.key != "" && columnID == p.key }

// cut returns what makes the sortable value of a column the one that rows are found and
// sorted by.
func (p Plan) cut(columnID string) func(string) string {
	if p.isKey(columnID) {
		return func(sortable string) string { return sortable }
	}
	return shorten
}

// conjuncts returns the conditions that every match must meet.
func (f Filter) conjuncts() []Filter {
	switch f.kind {
	case "", "or", "not":
		return nil
	case "and":
		var all []Filter
		for _, child := range f.children {
			all = append(all, child.conjuncts()...)
		}
		return all
	}
	return []Filter{f}
}

// bounds returns a range of sort keys that contains every match, and how selective it
// is likely to be; 0 if an index does not help. The range may be too large, because
// the index only has the beginning of a long value, which cut returns.
func (f Filter) bounds(cut func(string) string) (low, high string, rank int) {
	switch f.kind {
	case "=":
		return cut(f.operands[0]), after(cut(f.operands[0])), 4
	case "in":
		return cut(slices.Min(f.operands)), after(cut(slices.Max(f.operands))), 3
	case "starts_with":
		prefix := sortValue + f.text
		if short := cut(prefix); short != prefix {
			return short, after(short), 3
		}
		return prefix, afterPrefix(prefix), 3
	case "<", "<=":
		return sortValue, after(cut(f.operands[0])), 2
	case ">", ">=":
		return cut(f.operands[0]), afterValues, 2
	case "is_null":
		if f.isNull {
			return sortNull, sortValue, 2
		}
	}
	return "", "", 0
}

// after returns the smallest text that sorts after a sort key. No value contains a NUL,
// so nothing lies between a text and the text followed by \x01.
func after(sortKey string) string { return sortKey + "\x01" }

// afterPrefix returns a text that sorts after every text with a prefix: the prefix
// with its last character replaced by the next one.
func afterPrefix(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if r == '\uD7FF' {
			return prefix + "\uE000" // there are no characters between them
		}
		if r < utf8.MaxRune {
			return prefix + string(r+1)
		}
	}
	return afterValues
}

// Descending reports whether the rows of an index or the key are read backwards.
func (p Plan) Descending() bool { return p.Sorted && p.desc }

// SortKey returns the place of a record in the order of the result, apart from its
// id.
func (p Plan) SortKey(r Record) string {
	if p.sort == nil {
		return ""
	}
	return p.cut(p.sort.ID)(p.sort.sortable(r.Cells[p.sort.ID]))
}

// Before reports whether one position of the result comes before another.
func (p Plan) Before(a, b Position) bool {
	if p.desc {
		a, b = b, a
	}
	if a.Key != b.Key {
		return a.Key < b.Key
	}
	return a.ID < b.ID
}

// Position is a place in the order of a result.
type Position struct{ Key, ID string }

// String returns the position as a cursor has it.
func (p Position) String() string { return p.ID + "|" + p.Key }

// ParsePosition is the inverse of String. It returns nil for an empty text.
func ParsePosition(text string) *Position {
	if text == "" {
		return nil
	}
	id, key, _ := strings.Cut(text, "|")
	return &Position{Key: key, ID: id}
}
