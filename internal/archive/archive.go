// Package archive owns the file in which an installation moves from one
// database to another: gzip around lines of JSON, a header first, then the rows
// of one table after the other, last a line that tells whether all of it
// arrived. It knows how values are written down, and nothing of what the tables
// mean or where they are stored.
package archive

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"
)

const (
	// Format is what every header says.
	Format = "stepmill-export"
	// Version is that of the form of the file, not of the tables in it.
	Version = 1
	// MaxLine bounds a line, and with that what a reader keeps in memory: the
	// largest row there can be, with room for what JSON and base64 add to it.
	MaxLine = 256 << 20
)

// ErrDamaged says that a file is not what was written: a part is missing, or
// something in it has changed.
var ErrDamaged = errors.New("the file is damaged or not whole")

// Kind is what a column holds, besides null.
type Kind string

// The kinds, with the types of their values in Go.
const (
	Text  Kind = "text"  // string
	Int   Kind = "int"   // int64
	Bool  Kind = "bool"  // bool
	Bytes Kind = "bytes" // []byte
)

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Table is a table in the file.
type Table struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
}

// Header is the first line.
type Header struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	Schema    int       `json:"schema"` // of the tables
	CreatedAt time.Time `json:"created_at"`
	Stepmill  string    `json:"stepmill"` // the version that wrote the file
	KeyCheck  []byte    `json:"key_check"`
	Tables    []Table   `json:"tables"`
}

// Section is the line before the rows of a table. Last is the largest number
// that the database has given to a row of it, if it gives any.
type Section struct {
	Table string `json:"table"`
	Last  int64  `json:"last,omitempty"`
}

// trailer is the last line: how many rows each table has, and the SHA-256 of
// every byte before it.
type trailer struct {
	Rows   map[string]int64 `json:"rows"`
	SHA256 string           `json:"sha256"`
}

func newTrailer(rows map[string]int64, sum hash.Hash) trailer {
	return trailer{rows, hex.EncodeToString(sum.Sum(nil))}
}

// raw is text that is not UTF-8 and would not survive as a string of JSON.
type raw struct {
	Base64 []byte `json:"base64"`
}

// check refuses a header that this package cannot read the rest of.
func (h Header) check() error {
	switch {
	case h.Format != Format:
		return errors.New("the file is not an export of Stepmill")
	case h.Version > Version:
		return fmt.Errorf("the file has version %d of the format and was written by Stepmill %s, this binary knows version %d: upgrade it", h.Version, h.Stepmill, Version)
	case h.Version < Version:
		return fmt.Errorf("%w: there is no version %d of the format", ErrDamaged, h.Version)
	}
	seen := map[string]bool{}
	for _, table := range h.Tables {
		if seen[table.Name] || len(table.Columns) == 0 {
			return fmt.Errorf("%w: the header has table %q twice or without columns", ErrDamaged, table.Name)
		}
		seen[table.Name] = true
		for _, column := range table.Columns {
			if !slices.Contains([]Kind{Text, Int, Bool, Bytes}, column.Kind) {
				return fmt.Errorf("%w: column %s of %s is of an unknown kind", ErrDamaged, column.Name, table.Name)
			}
		}
	}
	return nil
}
