// Package archive reads and writes the file format of exports: gzipped lines of
// JSON with a header, the rows of each table, and a trailer with row counts and a
// checksum. It does not know what the tables mean or where they are stored.
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
	// Format identifies the file format in the header.
	Format = "stepmill-export"
	// Version is the version of the file format, not of the tables in it.
	Version = 1
	// MaxLine bounds the length of a line, and so the memory of a reader. It has
	// room for the largest possible row with the overhead of JSON and base64.
	MaxLine = 256 << 20
)

// ErrDamaged means that a file differs from what was written: a part is missing
// or was changed.
var ErrDamaged = errors.New("the file is damaged or incomplete")

// Kind is the type of a column, which may also hold null.
type Kind string

// The kinds, with the Go types of their values.
const (
	Text  Kind = "text"  // string
	Int   Kind = "int"   // int64
	Bool  Kind = "bool"  // bool
	Bytes Kind = "bytes" // []byte
)

// Column describes a column of a table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Table describes a table in the file.
type Table struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
}

// Header is the first line of the file.
type Header struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	Schema    int       `json:"schema"` // version of the tables
	CreatedAt time.Time `json:"created_at"`
	Stepmill  string    `json:"stepmill"` // the version that wrote the file
	KeyCheck  []byte    `json:"key_check"`
	Tables    []Table   `json:"tables"`
}

// Section is the line before the rows of a table. Last is the last value of the
// table's sequence, if it has one.
type Section struct {
	Table string `json:"table"`
	Last  int64  `json:"last,omitempty"`
}

// trailer is the last line: the number of rows of each table, and the SHA-256 of
// every byte before it.
type trailer struct {
	Rows   map[string]int64 `json:"rows"`
	SHA256 string           `json:"sha256"`
}

func newTrailer(rows map[string]int64, sum hash.Hash) trailer {
	return trailer{rows, hex.EncodeToString(sum.Sum(nil))}
}

// binaryText is text that is not valid UTF-8, which a JSON string cannot hold.
type binaryText struct {
	Base64 []byte `json:"base64"`
}

func (h Header) check() error {
	switch {
	case h.Format != Format:
		return errors.New("the file is not a Stepmill export")
	case h.Version > Version:
		return fmt.Errorf("the file has format version %d and was written by Stepmill %s, but this binary supports version %d: upgrade Stepmill", h.Version, h.Stepmill, Version)
	case h.Version < Version:
		return fmt.Errorf("%w: format version %d does not exist", ErrDamaged, h.Version)
	}
	seen := map[string]bool{}
	for _, table := range h.Tables {
		if seen[table.Name] || len(table.Columns) == 0 {
			return fmt.Errorf("%w: the header has table %q twice or without columns", ErrDamaged, table.Name)
		}
		seen[table.Name] = true
		for _, column := range table.Columns {
			if !slices.Contains([]Kind{Text, Int, Bool, Bytes}, column.Kind) {
				return fmt.Errorf("%w: column %s of %s has an unknown kind", ErrDamaged, column.Name, table.Name)
			}
		}
	}
	return nil
}
