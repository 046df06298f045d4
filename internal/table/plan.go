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
	// Column, if not empty, is the id of an indexed column. Only rows whose sort key
	// is at least Low and less than High can match.
	Column    string
	Low, High string
	// Sorted is set if the rows are read in the order of the result.
	Sorted bool
	sort   *Column // nil: by id
	desc   bool
}

// Plan returns how to find the rows of a query.
func (t Table) Plan(filter json.RawMessage, sort string) (Plan, error) {
	f, err := t.ParseFilter("/filter", filter)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Filter: f}
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
	p.choose(t)
	return p, nil
}

// choose looks for the most selective access among the conditions that every result
// must meet.
func (p *Plan) choose(t Table) {
	best := 0
	for _, c := range p.Filter.conjuncts() {
		if t.Key != "" && c.column.ID == t.Key && c.kind == "=" {
			p.Key, p.Column = c.operands[0], ""
			break
		}
		low, high, rank := c.bounds()
		if rank > best && t.indexed(c.column.ID) {
			best, p.Column, p.Low, p.High = rank, c.column.ID, low, high
		}
	}
	if p.Key == "" && p.Column == "" && p.sort != nil && p.sort.Indexed {
		p.Column, p.Low, p.High = p.sort.ID, sortNull, afterValues
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

func (t Table) indexed(id string) bool {
	c := t.byID(id)
	return c != nil && c.Indexed
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
// the index only has the beginning of a long value.
func (f Filter) bounds() (low, high string, rank int) {
	switch f.kind {
	case "=":
		return shorten(f.operands[0]), after(f.operands[0]), 4
	case "in":
		return shorten(slices.Min(f.operands)), after(slices.Max(f.operands)), 3
	case "starts_with":
		return shorten(sortValue + f.text), afterPrefix(sortValue + f.text), 3
	case "<", "<=":
		return sortValue, after(f.operands[0]), 2
	case ">", ">=":
		return shorten(f.operands[0]), afterValues, 2
	case "is_null":
		if f.isNull {
			return sortNull, sortValue, 2
		}
	}
	return "", "", 0
}

// after returns the smallest text that sorts after the sort key of a value. No value
// contains a NUL, so nothing lies between a text and the text followed by \x01.
func after(sortable string) string { return shorten(sortable) + "\x01" }

// afterPrefix returns a text that sorts after every text with a prefix: the prefix
// with its last character replaced by the next one.
func afterPrefix(prefix string) string {
	if len(prefix) > maxSortKey {
		return after(prefix)
	}
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

// Descending reports whether the rows of an index are read backwards.
func (p Plan) Descending() bool { return p.Sorted && p.desc }

// SortKey returns the place of a record in the order of the result, apart from its
// id.
func (p Plan) SortKey(r Record) string {
	if p.sort == nil {
		return ""
	}
	return p.sort.SortKey(r)
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
