package store

import (
	"encoding/json"
	"slices"

	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
)

// resolveFiles replaces what names a file in changed rows with the reference. Until the
// end of the transaction nobody else can delete these files.
func (t *tableTx) resolveFiles(changes []rowChange) error {
	var ids []string
	for _, c := range changes {
		ids = append(ids, t.table.NewFiles(c.cells(), c.next.Cells)...)
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := lockFileRows(t.tx, t.scope.WorkspaceID, ids, t.scope.At)
	if err != nil {
		return err
	}
	references := make(map[string]json.RawMessage, len(found))
	for id, f := range found {
		if references[id], err = strictjson.Encode(f.Value()); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := t.table.Resolve(c.cells(), c.next.Cells, references, c.line); err != nil {
			return err
		}
	}
	return nil
}

// holdFiles makes a row hold the files that it refers to and no others. The table may
// have other columns than the cells were written with.
func (t *tableTx) holdFiles(as table.Table, old map[string]json.RawMessage, next table.Record) error {
	before, now := t.table.Files(old), as.Files(next.Cells)
	if slices.Equal(before, now) {
		return nil
	}
	return replaceFiles(t.tx, t.table.WorkspaceID, file.HeldByRow(t.table.ID, next.ID), now, t.scope.At)
}
