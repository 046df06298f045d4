package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store/migrations"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

func TestUpgradeMarksWaitingRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // without the current schema
	old, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.FileName)+"?_pragma=auto_vacuum(2)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, old, migrations.SQLite())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{storetest.OldRuns, storetest.OldSteps} {
		if _, err := old.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = open(t, dir).Read(t.Context(), func(c database.Conn) (err error) {
		got, err = column(c, storetest.UpgradedRuns)
		return err
	})
	if diff := cmp.Diff(storetest.WantUpgradedRuns(), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
