package table

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/suggest"
)

// NewColumn describes a column to create.
type NewColumn struct {
	Name     string
	Type     Type
	Required bool
	Indexed  bool
}

// ColumnPatch changes a column. Members that are nil stay as they are.
type ColumnPatch struct {
	Name     *string
	Type     *Type
	Required *bool
	Indexed  *bool
}

// Patch changes a table. Columns are named as they are before the change: nil drops a
// column, and a name that does not exist adds one.
type Patch struct {
	Name    *string
	Columns map[string]*ColumnPatch
}

// Change is a checked change of a table.
type Change struct {
	Table Table
	// Reindex lists the ids of columns whose index has to be built, Unindex those
	// whose index is no longer needed.
	Reindex, Unindex []string
	// Rewrite is set if every record has to pass Convert.
	Rewrite bool
	was     Table
}

// checkColumn checks a column with everything that depends on other columns, except
// for its name being taken.
func (t Table) checkColumn(at string, c Column) error {
	var problems []error
	if !columnName.MatchString(c.Name) {
		problems = append(problems, fault.Field(at+"/name", "must start with a letter or _ and have at most 63 characters a-z, A-Z, 0-9 and _"))
	}
	if !slices.Contains(Types(), c.Type) {
		problems = append(problems, fault.Field(at+"/type", "must be one of %s%s", typeList(), suggest.Hint(string(c.Type), strings.Split(typeList(), ", "))))
	}
	if !c.Type.ordered() && c.Indexed {
		problems = append(problems, fault.Field(at+"/indexed", "a column of type %s cannot be indexed", c.Type))
	}
	if c.ID == t.Key && (!c.Type.ordered() || c.Type == Boolean) {
		problems = append(problems, fault.Field(at+"/type", "the key must be of type text, number or time"))
	}
	return fault.Fields(problems...)
}

func typeList() string {
	var names []string
	for _, kind := range Types() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

func define(t Table, columns []NewColumn, key string) (Table, error) {
	if err := checkName(t.Name); err != nil {
		return t, err
	}
	if len(columns) == 0 || len(columns) > MaxColumns {
		return t, fault.Field("/columns", "must have between 1 and %d columns", MaxColumns)
	}
	for _, c := range columns {
		id := t.addColumn(Column{Name: c.Name, Type: c.Type, Required: c.Required, Indexed: c.Indexed})
		if key != "" && c.Name == key {
			t.Key = id
			t.byID(id).Required = true
		}
	}
	var problems []error
	for i, c := range t.Columns {
		at := "/columns/" + strconv.Itoa(i)
		problems = append(problems, t.checkColumn(at, c))
		if slices.IndexFunc(t.Columns, func(o Column) bool { return o.Name == c.Name }) < i {
			problems = append(problems, fault.Field(at+"/name", "is the name of another column"))
		}
	}
	if key != "" && t.Key == "" {
		_, err := t.columnAt("/key", key)
		problems = append(problems, err)
	}
	return t, fault.Fields(problems...)
}

func (t *Table) addColumn(c Column) string {
	t.LastColumn++
	c.ID = "c" + strconv.Itoa(t.LastColumn)
	t.Columns = append(t.Columns, c)
	return c.ID
}

// Change checks a patch and returns what it means for the table.
func (t Table) Change(p Patch) (Change, error) {
	next := t
	next.Columns = slices.Clone(t.Columns)
	if p.Name != nil {
		if err := checkName(*p.Name); err != nil {
			return Change{}, err
		}
		next.Name = *p.Name
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(p.Columns)) {
		problems = append(problems, next.patchColumn(t, name, p.Columns[name]))
	}
	if err := fault.Fields(problems...); err != nil {
		return Change{}, err
	}
	return t.compare(next)
}

func (t *Table) patchColumn(was Table, name string, p *ColumnPatch) error {
	at, old := pointerTo("/columns", name), was.column(name)
	switch {
	case old == nil && p == nil:
		_, err := was.columnAt(at, name)
		return err
	case old == nil:
		if p.Type == nil {
			return fault.Field(at+"/type", "is required to add the column: one of %s", typeList())
		}
		return t.patchNew(was, at, Column{Name: name}, p)
	case p == nil && old.ID == t.Key:
		return fault.Field(at, "is the key and cannot be dropped")
	case p == nil:
		t.Columns = slices.DeleteFunc(t.Columns, func(c Column) bool { return c.ID == old.ID })
		return nil
	}
	c := t.byID(old.ID)
	c.apply(p)
	if c.Type != old.Type && (c.Type == File || old.Type == File) {
		return fault.Field(at+"/type", "a column of type file cannot change its type, and no other can become one: add a column instead")
	}
	if c.ID == t.Key && !c.Required {
		return fault.Field(at+"/required", "must be true: it is the key")
	}
	return t.checkColumn(at, *c)
}

func (t *Table) patchNew(was Table, at string, c Column, p *ColumnPatch) error {
	c.apply(p)
	if c.Required && was.Rows > 0 {
		return fault.Field(at+"/required", "the table has rows, in which the column would be null: add it without required, fill it and then set required")
	}
	if len(t.Columns) >= MaxColumns {
		return fault.Field(at, "a table has at most %d columns", MaxColumns)
	}
	return t.checkColumn(at, *t.byID(t.addColumn(c)))
}

func (c *Column) apply(p *ColumnPatch) {
	if p.Name != nil {
		c.Name = *p.Name
	}
	if p.Type != nil {
		c.Type = *p.Type
	}
	if p.Required != nil {
		c.Required = *p.Required
	}
	if p.Indexed != nil {
		c.Indexed = *p.Indexed
	}
}

func (t Table) compare(next Table) (Change, error) {
	change := Change{Table: next, was: t}
	if len(next.Columns) == 0 {
		return change, fault.Field("/columns", "a table has at least one column")
	}
	for i, c := range next.Columns {
		if slices.IndexFunc(next.Columns, func(o Column) bool { return o.Name == c.Name }) < i {
			return change, fault.Field("/columns", "there would be two columns named %q", c.Name)
		}
		old := t.byID(c.ID)
		if old == nil {
			old = &Column{ID: c.ID, Type: c.Type}
		}
		if c.ID == t.Key && c.Type != old.Type && t.Rows > 0 {
			return change, fault.Field(pointerTo("/columns", old.Name)+"/type", "is the key, whose type can only change while the table is empty")
		}
		if c.Indexed && (!old.Indexed || c.Type != old.Type) {
			change.Reindex = append(change.Reindex, c.ID)
		}
		if !c.Indexed && old.Indexed {
			change.Unindex = append(change.Unindex, c.ID)
		}
		change.Rewrite = change.Rewrite || c.Type != old.Type || c.Required && !old.Required
	}
	for _, old := range t.Columns {
		if next.byID(old.ID) != nil {
			continue
		}
		if old.Indexed {
			change.Unindex = append(change.Unindex, old.ID)
		}
		// Its rows must not keep the files.
		change.Rewrite = change.Rewrite || old.Type == File && t.Rows > 0
	}
	if (change.Rewrite || change.Reindex != nil) && (t.Rows*max(1, len(change.Reindex)) > MaxRewrite || t.Bytes > MaxRewriteBytes) {
		return change, fault.Field("/columns", "the table has more than %d rows for each new index, or more than %d bytes: export it and import it into a new table with these columns", MaxRewrite, MaxRewriteBytes)
	}
	return change, nil
}

// Convert returns a record as the changed table has it. It fails if a value cannot be
// converted to the new type of its column, or if a required value is missing.
func (c Change) Convert(r Record) (Record, error) {
	cells := make(map[string]json.RawMessage, len(c.Table.Columns))
	for _, column := range c.Table.Columns {
		cell := r.Cells[column.ID]
		var err error
		if old := c.was.byID(column.ID); old != nil && old.Type != column.Type && cell != nil {
			cell, err = convert(*old, column, cell)
		}
		if err == nil && (column.Type != File || cell == nil) {
			cell, err = column.normalize(cell)
		}
		if err == nil && column.ID == c.Table.Key {
			err = checkKey(column, cell)
		}
		if err != nil {
			return r, fault.Field(pointerTo("/columns", column.Name), "the value of the row %s cannot be kept: it %s", r.ID, err)
		}
		if cell != nil {
			cells[column.ID] = cell
		}
	}
	r.Cells = cells
	return r, nil
}

// convert returns a value as JSON of another type. Everything can become text or
// JSON, and a text can become what it says.
func convert(from, to Column, cell json.RawMessage) (json.RawMessage, error) {
	switch {
	case to.Type == JSON:
		return cell, nil
	case to.Type == Text && from.Type == Time:
		return cell, nil
	case to.Type == Text:
		text, err := json.Marshal(string(cell))
		return text, err
	case from.Type == JSON:
		return cell, nil // if it is one of those
	case from.Type == Text && to.Type == Time:
		return cell, nil
	case from.Type == Text:
		return json.RawMessage(unquote(cell)), nil
	}
	return nil, fmt.Errorf("is a %s, which cannot become a %s", from.Type, to.Type)
}
