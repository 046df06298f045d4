package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/uid"
)

// A cell of a file column is a reference to a file, with all its members. A new value
// only names the file: what else it says is ignored, because the store resolves it.
// People with the scope write name any file of the workspace. A step can only pass on a
// reference that it has, so its operation lists the values that are references.

var errNotFile = errors.New("expected a file")

// names returns the names of all columns: a person may name files in each of them.
func (v Values) names() []string { return slices.Collect(maps.Keys(v)) }

// normalizeFile returns a value that only names its file.
func normalizeFile(raw json.RawMessage) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object[expr.FileKey] == nil {
		return nil, errNotFile
	}
	var id string
	if json.Unmarshal(object[expr.FileKey], &id) != nil || !uid.Valid(uid.File, id) {
		return nil, errors.New("expected a file: $file must be the id of a file, such as {\"$file\": \"file_…\"}")
	}
	return strictjson.Encode(map[string]string{expr.FileKey: id})
}

func fileID(cell json.RawMessage) string {
	var reference struct {
		ID string `json:"$file"`
	}
	_ = json.Unmarshal(cell, &reference) // stored cells are valid
	return reference.ID
}

// Files returns the ids of the files that a record refers to.
func (t Table) Files(cells map[string]json.RawMessage) []string {
	var ids []string
	for _, c := range t.Columns {
		if cell := cells[c.ID]; c.Type == File && cell != nil {
			ids = append(ids, fileID(cell))
		}
	}
	return ids
}

// NewFiles returns the ids of the files in cells that differ from those of an old record.
func (t Table) NewFiles(old, cells map[string]json.RawMessage) []string {
	var ids []string
	for _, c := range t.Columns {
		if cell := cells[c.ID]; c.Type == File && cell != nil && !bytes.Equal(cell, old[c.ID]) {
			ids = append(ids, fileID(cell))
		}
	}
	return ids
}

// Resolve replaces the cells that differ from those of an old record with references.
// Line is the line of an import that they come from, otherwise 0.
func (t Table) Resolve(old, cells, references map[string]json.RawMessage, line int) error {
	var problems []error
	for _, c := range t.Columns {
		cell := cells[c.ID]
		if c.Type != File || cell == nil || bytes.Equal(cell, old[c.ID]) {
			continue
		}
		id := fileID(cell)
		cells[c.ID] = references[id]
		switch {
		case references[id] != nil:
		case line > 0:
			return csvError(c.Name, line, 1, "there is no file %q", id)
		default:
			problems = append(problems, fault.Field(pointerTo("/values", c.Name), "there is no file %q", id))
		}
	}
	return fault.Fields(problems...)
}

// HasFiles reports whether the table has a file column.
func (t Table) HasFiles() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Type == File })
}
