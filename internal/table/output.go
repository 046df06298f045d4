package table

import (
	"encoding/json"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// RowOutput is a row as steps output it, in the shape of the API.
type RowOutput struct {
	ID        string                     `json:"id"`
	Values    map[string]json.RawMessage `json:"values"`
	CreatedAt string                     `json:"created_at"`
	UpdatedAt string                     `json:"updated_at"`

	files []string // names of columns
}

// Output returns the row as steps output it.
func (r Row) Output() RowOutput {
	return RowOutput{ID: r.ID, Values: r.Values, CreatedAt: clock.Format(r.CreatedAt), UpdatedAt: clock.Format(r.UpdatedAt), files: r.Files}
}

// FilePointers returns the JSON pointers of the references to files.
func (r RowOutput) FilePointers() []string {
	var pointers []string
	for _, name := range r.files {
		pointers = append(pointers, jsonpointer.Of("values", name))
	}
	return pointers
}

// Output is the result of an Operation as a step outputs it. Which members it has
// depends on the operation.
type Output struct {
	Row     *RowOutput `json:"row,omitempty"`
	Created *bool      `json:"created,omitempty"`
	Count   *int       `json:"count,omitempty"`
}

// FilePointers returns the JSON pointers of the references to files.
func (o Output) FilePointers() []string {
	if o.Row == nil {
		return nil
	}
	pointers := o.Row.FilePointers()
	for i, pointer := range pointers {
		pointers[i] = "/row" + pointer
	}
	return pointers
}

// Output returns the result as a step outputs it.
func (u Upserted) Output() Output {
	row := u.Row.Output()
	return Output{Row: &row, Created: &u.Created}
}

// Output returns the rows that the update has changed as a step outputs them: those
// of a filter are only counted.
func (op Update) Output(rows []Row) (Output, error) {
	count := len(rows)
	if op.Filter != nil {
		return Output{Count: &count}, nil
	}
	if count == 0 {
		return Output{}, op.Missing()
	}
	row := rows[0].Output()
	return Output{Row: &row, Count: &count}, nil
}
