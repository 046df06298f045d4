package table

import (
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/decimal"
	"github.com/stepmill/stepmill/internal/fault"
)

// Selector names the rows of an operation: one of ID, Key and Filter. With a filter,
// at most Limit rows are taken, in the order of their creation.
type Selector struct {
	ID     string
	Key    json.RawMessage
	Filter json.RawMessage
	Limit  int
}

// Operation is an operation that changes rows: an Insert, Upsert, Update, Delete or
// Increment.
type Operation interface{ changesRows() }

func (Insert) changesRows()    {}
func (Upsert) changesRows()    {}
func (Update) changesRows()    {}
func (Delete) changesRows()    {}
func (Increment) changesRows() {}

// Write is an operation with its scope. It holds everything that the result depends
// on apart from the rows, so that repeating it is the same operation.
type Write struct {
	Scope Scope
	Op    Operation
}

// HasFilter reports whether the operation takes the rows that match a filter, so that it
// can take long.
func (w Write) HasFilter() bool {
	switch op := w.Op.(type) {
	case Update:
		return op.Filter != nil
	case Delete:
		return op.Filter != nil
	}
	return false
}

// The bounds of an operation. The embedded database has one writer for all workspaces, so a
// transaction should take no longer than about 150 ms (docs/decisions/0030).
const (
	// MaxSelected is how many rows an operation can change.
	MaxSelected = 1000
	// MaxExamined is how many rows an operation may read to find those that it changes, and
	// MaxExaminedBytes how many bytes they may have.
	MaxExamined      = 5_000
	MaxExaminedBytes = 2 << 20
	// MaxWrites is how many rows and index entries an operation may write.
	MaxWrites = 5_000
	// FileWrites is what a reference to a file counts among them.
	FileWrites = 4
)

// check returns an error unless exactly one of the members is given.
func (s Selector) check(filterAllowed bool) error {
	given := 0
	for _, is := range []bool{s.ID != "", s.Key != nil, s.Filter != nil} {
		if is {
			given++
		}
	}
	switch {
	case !filterAllowed && (given != 1 || s.Filter != nil):
		return fault.Field("/key", "give either the key or the id of the row")
	case given != 1:
		return fault.Field("/filter", "give one of key, id and filter")
	case s.Filter != nil && (s.Limit < 1 || s.Limit > MaxSelected):
		return fault.Field("/limit", "must be between 1 and %d", MaxSelected)
	}
	return nil
}

// describe returns the row that the selector names, for messages.
func (s Selector) describe() string {
	if s.Key != nil {
		return "with the key " + string(s.Key)
	}
	return s.ID
}

// CheckWrites returns a fault if an operation on the given number of rows would write too
// much: each row, its entries in indexes and its references to files.
func (t Table) CheckWrites(rows int) error {
	each := 1
	for _, c := range t.Columns {
		switch {
		case c.Indexed:
			each++
		case c.Type == File:
			each += FileWrites
		}
	}
	if most := max(1, MaxWrites/each); rows > most {
		return fault.New(fault.InvalidRequest, "at most %d rows of the table %s can be changed at a time, because of its indexes and file columns: this would change %d", most, t.Name, rows)
	}
	return nil
}

// Missing returns the error for a selector that names a row that does not exist.
func (s Selector) Missing() error { return RowNotFound(s.describe()) }

// Insert adds a row. A row with the same key must not exist.
type Insert struct {
	RowID  string
	Values Values
	Files  []string // the names of the columns whose values are references to files
}

// Upsert adds a row, or replaces the given values of the row with the same key.
type Upsert struct {
	RowID  string // of a new row
	Values Values
	Files  []string // as in Insert
}

// Upserted is the result of an Upsert.
type Upserted struct {
	Row     Row
	Created bool
}

// Get reads one row by its id or key.
type Get struct{ Selector }

// Find reads rows that match a filter, in the order of a column.
type Find struct {
	Filter json.RawMessage // nil: all rows
	Sort   string          // a column, descending after a "-"; empty: by creation
	Limit  int
	// MaxBytes limits the stored size of the rows of a page; zero: no limit. A page
	// has at least one row if there is one.
	MaxBytes int
	After    string // the position that the previous page ended at
}

// Found is one page of rows. Examined is how many rows were read to find them.
type Found struct {
	Rows     []Row
	Next     string
	Examined int
}

// Update replaces the given values of rows.
type Update struct {
	Selector
	Values Values
	Files  []string // as in Insert
}

// Delete deletes rows.
type Delete struct{ Selector }

// Increment adds By to a number. A null counts as zero.
type Increment struct {
	Selector
	Column string
	By     json.RawMessage // nil: 1
}

// Import adds rows, or replaces rows with the same key.
type Import struct {
	Rows []ImportRow
}

// ImportRow is a row of an import and the line that it comes from.
type ImportRow struct {
	RowID  string // of a new row
	Line   int
	Values Values
	Files  []string // as in Insert
}

// Imported is how many rows an import has created and replaced.
type Imported struct{ Created, Updated int }

// Check returns an error if the selector does not name exactly one row.
func (op Get) Check() error { return op.Selector.check(false) }

// Check returns an error if the selector is invalid.
func (op Update) Check() error { return op.Selector.check(true) }

// Check returns an error if the selector is invalid.
func (op Delete) Check() error { return op.Selector.check(true) }

// Check returns an error if the selector does not name exactly one row.
func (op Increment) Check() error { return op.Selector.check(false) }

// New returns the record of a new row. Its files still have to be resolved, see
// [Table.NewFiles].
func (t Table) New(id string, values Values, files []string, at time.Time) (Record, error) {
	cells, err := t.normalize("/values", values, files, nil, false)
	return Record{ID: id, Cells: cells, CreatedAt: at, UpdatedAt: at}, err
}

// Patch returns a record with some of its values replaced.
func (t Table) Patch(r Record, values Values, files []string, at time.Time) (Record, error) {
	cells, err := t.normalize("/values", values, files, r.Cells, true)
	r.Cells, r.UpdatedAt = cells, at
	return r, err
}

// UpsertKey returns the key by which an upsert finds its row.
func (t Table) UpsertKey(values Values) (string, error) {
	c := t.KeyColumn()
	if c == nil {
		return "", fault.Field("/values", "the table %s has no key column: insert the row instead", t.Name)
	}
	return t.LookupKey(pointerTo("/values", c.Name), values[c.Name])
}

// Increment returns a record with a number increased.
func (t Table) Increment(r Record, op Increment, at time.Time) (Record, error) {
	c, err := t.columnAt("/column", op.Column)
	if err != nil {
		return r, err
	}
	if c.Type != Number {
		return r, fault.Field("/column", "%s is of type %s: only a number can be incremented", c.Name, c.Type)
	}
	if c.ID == t.Key {
		return r, fault.Field("/column", "%s is the key and cannot be incremented", c.Name)
	}
	sum, err := Sum(r.Cells[c.ID], op.By)
	if err != nil {
		return r, err
	}
	return t.Patch(r, Values{c.Name: sum}, nil, at)
}

// Sum adds two numbers in JSON. A missing value is 0, a missing increment 1.
func Sum(value, by json.RawMessage) (json.RawMessage, error) {
	now, increment := "0", "1"
	if value != nil {
		now = string(value)
	}
	if by != nil {
		increment = string(by)
	}
	a, err := decimal.Parse(now)
	if err != nil {
		return nil, fault.Field("/value", "the stored value is not a number")
	}
	b, err := decimal.Parse(increment)
	if err != nil {
		return nil, fault.Field("/by", "must be a number: %s %s", excerpt([]byte(increment)), err)
	}
	sum, err := a.Add(b)
	if err != nil {
		return nil, fault.Field("/by", "the sum %s", err)
	}
	return json.RawMessage(sum.String()), nil
}
