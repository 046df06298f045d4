package store

import (
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/workflow"
)

// decodePins sets which parts of pins refer to files.
func (p filePointers) decodePins(pins workflow.Pins) error {
	if p == nil {
		return nil
	}
	var pointers []string
	err := p.decode(&pointers)
	pins.SetFilePointers(pointers)
	return err
}

// readFiles sets the files of a definition, which its version or its run holds. Most
// definitions have none, and nothing is read.
func (p filePointers) readFiles(c database.Conn, d *workflow.Definition) error {
	if p == nil {
		return nil
	}
	var pointers []string
	if err := p.decode(&pointers); err != nil {
		return err
	}
	named := d.NamedFiles()
	d.Files = make(workflow.References, len(pointers))
	for _, pointer := range pointers {
		found, err := database.One(c, fileRows.selects()+`WHERE id = $1`, []any{named[pointer]}, fileRows.scan)
		if err != nil {
			return err
		}
		if found != nil {
			d.Files[pointer] = found.Value()
		}
	}
	return nil
}
