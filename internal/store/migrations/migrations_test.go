package migrations_test

import (
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/store/migrations"
)

// TestNumbers checks that both databases have the same migrations, numbered without gaps.
func TestNumbers(t *testing.T) {
	t.Parallel()
	list := func(of fs.FS) []string {
		names, err := fs.Glob(of, "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	embedded := list(migrations.SQLite())
	if diff := cmp.Diff(embedded, list(migrations.Postgres())); diff != "" {
		t.Errorf("-SQLite +PostgreSQL:\n%s", diff)
	}
	for i, name := range embedded {
		number, _, _ := strings.Cut(name, "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			t.Errorf("migration %d is %s", i+1, name)
		}
	}
	if migrations.Last() != len(embedded) {
		t.Errorf("the last migration is %d of %d", migrations.Last(), len(embedded))
	}
}

// TestTypes checks how a common migration names types.
func TestTypes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of   fs.FS
		want []string
	}{
		"SQLite":     {migrations.SQLite(), []string{"shared       INTEGER NOT NULL", "secret       BLOB    NOT NULL", ") WITHOUT ROWID;"}},
		"PostgreSQL": {migrations.Postgres(), []string{"shared       BOOLEAN NOT NULL", "secret       BYTEA    NOT NULL", `client_id    TEXT COLLATE "C"    NOT NULL`, "created_at   BIGINT NOT NULL", ");"}},
	} {
		text, err := fs.ReadFile(tc.of, "00005_connections.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, text)
			}
		}
	}
}
