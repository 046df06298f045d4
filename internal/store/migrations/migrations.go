// Package migrations owns the schema of the databases: how each release changes the one
// before. Migrations that are the same on both databases are written once, in both, with
// the types TEXT, INTEGER, BLOB and BOOLEAN and with WITHOUT ROWID, which PostgreSQL gets in
// its own words.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed both sqlite postgres
var files embed.FS

// SQLite returns the migrations of the embedded database.
func SQLite() fs.FS {
	return database{"sqlite", func(text string) string { return booleans.ReplaceAllString(text, "INTEGER") }}
}

// Postgres returns the migrations of PostgreSQL. Texts sort by their bytes, as on SQLite.
func Postgres() fs.FS {
	return database{"postgres", func(text string) string {
		text = strings.ReplaceAll(text, ") WITHOUT ROWID", ")")
		return types.ReplaceAllStringFunc(text, func(name string) string {
			return map[string]string{"TEXT": `TEXT COLLATE "C"`, "INTEGER": "BIGINT", "BLOB": "BYTEA"}[name]
		})
	}}
}

var (
	booleans = regexp.MustCompile(`\bBOOLEAN\b`)
	types    = regexp.MustCompile(`\b(TEXT|INTEGER|BLOB)\b`)
)

// Last returns the number of the last migration, which is the version of the schema.
func Last() int {
	last := 0
	for _, dir := range []string{"both", "sqlite", "postgres"} {
		names, err := fs.Glob(files, dir+"/*.sql")
		if err != nil {
			panic(err) // the pattern is malformed
		}
		for _, name := range names {
			number, _, _ := strings.Cut(path.Base(name), "_")
			if n, err := strconv.Atoi(number); err == nil {
				last = max(last, n)
			}
		}
	}
	return last
}

// database is the migrations of one database as a directory: its own and the common ones.
type database struct {
	own       string
	translate func(string) string
}

// Glob implements fs.GlobFS.
func (d database) Glob(pattern string) ([]string, error) {
	var names []string
	for _, dir := range []string{"both", d.own} {
		found, err := fs.Glob(files, path.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Open implements fs.FS.
func (d database) Open(name string) (fs.File, error) {
	if own, err := files.Open(path.Join(d.own, name)); err == nil {
		return own, nil
	}
	common, err := files.Open(path.Join("both", name))
	if err != nil {
		return nil, fmt.Errorf("open a migration: %w", err)
	}
	text, err := fs.ReadFile(files, path.Join("both", name))
	if err != nil {
		return nil, err
	}
	return translated{common, strings.NewReader(d.translate(string(text)))}, nil
}

// translated is a file with another text.
type translated struct {
	fs.File
	text *strings.Reader
}

// Read implements fs.File.
func (t translated) Read(p []byte) (int, error) { return t.text.Read(p) }
