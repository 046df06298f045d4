package table

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/suggest"
)

// The bounds of a filter.
const (
	maxFilterBytes  = 16 << 10
	maxFilterDepth  = 8
	maxConditions   = 100
	maxAlternatives = 100 // of in
)

var operators = []string{"=", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "is_null"}

// Filter is a compiled filter: it knows the columns of one table. The zero value
// matches every row.
type Filter struct {
	kind     string // and, or, not, or an operator; empty: everything
	children []Filter
	column   Column
	// operands are the values of a condition in sortable form, more than one for in.
	operands []string
	text     string // of contains and starts_with
	isNull   bool   // of is_null
}

// ParseFilter parses a filter for the rows of a table. A filter is
// {"and": […]}, {"or": […]}, {"not": …} or {"column": …, "op": …, "value": …}. The
// errors are about members of at.
func (t Table) ParseFilter(at string, raw json.RawMessage) (Filter, error) {
	if raw == nil {
		return Filter{}, nil
	}
	if len(raw) > maxFilterBytes {
		return Filter{}, fault.Field(at, "must have at most %d bytes", maxFilterBytes)
	}
	p := filterParser{table: t}
	return p.parse(at, raw, 1)
}

type filterParser struct {
	table      Table
	conditions int
}

type filterBody struct {
	And    *[]json.RawMessage `json:"and"`
	Or     *[]json.RawMessage `json:"or"`
	Not    json.RawMessage    `json:"not"`
	Column *string            `json:"column"`
	Op     *string            `json:"op"`
	Value  json.RawMessage    `json:"value"`
}

func (p *filterParser) parse(at string, raw json.RawMessage, depth int) (Filter, error) {
	if depth > maxFilterDepth {
		return Filter{}, fault.Field(at, "the filter is nested more than %d levels deep", maxFilterDepth)
	}
	var body filterBody
	if err := strictjson.DecodeBody(raw, &body); err != nil {
		return Filter{}, filterError(at, err)
	}
	given := 0
	for _, is := range []bool{body.And != nil, body.Or != nil, body.Not != nil, body.Column != nil || body.Op != nil || body.Value != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return Filter{}, fault.Field(at, `must have either and, or, not, or a column with an op, such as {"column": "city", "op": "=", "value": "Zurich"}`)
	case body.And != nil:
		return p.group(at+"/and", "and", *body.And, depth)
	case body.Or != nil:
		return p.group(at+"/or", "or", *body.Or, depth)
	case body.Not != nil:
		child, err := p.parse(at+"/not", body.Not, depth+1)
		return Filter{kind: "not", children: []Filter{child}}, err
	}
	return p.condition(at, body)
}

// filterError moves the problems of a part of the filter to where it is.
func filterError(at string, err error) error {
	var problems strictjson.Errors
	if !errors.As(err, &problems) {
		return err
	}
	return fault.Field(at+problems[0].Pointer, "%s", problems[0].Message)
}

func (p *filterParser) group(at, kind string, parts []json.RawMessage, depth int) (Filter, error) {
	if len(parts) == 0 {
		return Filter{}, fault.Field(at, "must have at least one condition")
	}
	group := Filter{kind: kind}
	for i, part := range parts {
		child, err := p.parse(at+"/"+strconv.Itoa(i), part, depth+1)
		if err != nil {
			return Filter{}, err
		}
		group.children = append(group.children, child)
	}
	return group, nil
}

func (p *filterParser) condition(at string, body filterBody) (Filter, error) {
	if p.conditions++; p.conditions > maxConditions {
		return Filter{}, fault.Field(at, "the filter has more than %d conditions", maxConditions)
	}
	switch {
	case body.Column == nil:
		return Filter{}, fault.Field(at+"/column", "is required")
	case body.Op == nil:
		return Filter{}, fault.Field(at+"/op", "is required: one of %s", strings.Join(operators, ", "))
	case !slices.Contains(operators, *body.Op):
		return Filter{}, fault.Field(at+"/op", "must be one of %s%s", strings.Join(operators, ", "), suggest.Hint(*body.Op, operators))
	}
	c, err := p.table.columnAt(at+"/column", *body.Column)
	if err != nil {
		return Filter{}, err
	}
	f := Filter{kind: *body.Op, column: *c}
	f.column.Required = false
	if f.kind == "is_null" {
		return f.withNull(at, body.Value)
	}
	switch {
	case !c.Type.ordered():
		return Filter{}, fault.Field(at+"/op", "%s is of type %s, which can only be compared with is_null", c.Name, c.Type)
	case body.Value == nil:
		return Filter{}, fault.Field(at+"/value", "is required")
	case f.kind == "contains", f.kind == "starts_with":
		return f.withText(at, body.Value)
	}
	return f.withOperands(at, body.Value)
}

func (f Filter) withNull(at string, value json.RawMessage) (Filter, error) {
	switch string(value) {
	case "", "true":
		f.isNull = true
	case "false":
	default:
		return Filter{}, fault.Field(at+"/value", "must be true, which is also the default, or false")
	}
	return f, nil
}

func (f Filter) withText(at string, value json.RawMessage) (Filter, error) {
	if f.column.Type != Text {
		return Filter{}, fault.Field(at+"/op", "%s is of type %s: %s is for text", f.column.Name, f.column.Type, f.kind)
	}
	cell, err := f.column.normalize(value)
	if err == nil && cell != nil {
		f.text = unquote(cell)
	}
	if err != nil || f.text == "" {
		return Filter{}, fault.Field(at+"/value", "must be a text that is not empty")
	}
	return f, nil
}

func (f Filter) withOperands(at string, value json.RawMessage) (Filter, error) {
	values, places := []json.RawMessage{value}, []string{at + "/value"}
	if f.kind == "in" {
		if json.Unmarshal(value, &values) != nil || len(values) == 0 || len(values) > maxAlternatives {
			return Filter{}, fault.Field(at+"/value", "must be a list of 1 to %d values", maxAlternatives)
		}
		places = nil
		for i := range values {
			places = append(places, at+"/value/"+strconv.Itoa(i))
		}
	}
	for i, value := range values {
		cell, err := f.column.normalize(value)
		switch {
		case err != nil:
			return Filter{}, fault.Field(places[i], "%s", err)
		case cell == nil:
			return Filter{}, fault.Field(places[i], "must not be null: use the op is_null")
		}
		f.operands = append(f.operands, f.column.sortable(cell))
	}
	return f, nil
}

// Match reports whether a record matches the filter. A null equals no value and is
// neither smaller nor larger than one; != and not are the opposites of what they
// negate, so they match nulls.
func (f Filter) Match(r Record) bool {
	switch f.kind {
	case "":
		return true
	case "and":
		return !slices.ContainsFunc(f.children, func(c Filter) bool { return !c.Match(r) })
	case "or":
		return slices.ContainsFunc(f.children, func(c Filter) bool { return c.Match(r) })
	case "not":
		return !f.children[0].Match(r)
	}
	cell := r.Cells[f.column.ID]
	switch {
	case f.kind == "is_null":
		return (cell == nil) == f.isNull
	case cell == nil:
		return f.kind == "!="
	case f.kind == "contains":
		return strings.Contains(unquote(cell), f.text)
	case f.kind == "starts_with":
		return strings.HasPrefix(unquote(cell), f.text)
	}
	return f.compare(f.column.sortable(cell))
}

func (f Filter) compare(value string) bool {
	switch f.kind {
	case "=", "in":
		return slices.Contains(f.operands, value)
	case "!=":
		return value != f.operands[0]
	case "<":
		return value < f.operands[0]
	case "<=":
		return value <= f.operands[0]
	case ">":
		return value > f.operands[0]
	default:
		return value >= f.operands[0]
	}
}
