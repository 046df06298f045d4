package crash_test

import (
	"database/sql"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/tables"
)

// An installation whose server was killed moves from a directory to PostgreSQL. A move
// back to a directory restores the same data, and on PostgreSQL everything continues.
func TestMoveToPostgresAndBack(t *testing.T) {
	harness.EmbeddedOnly(t, "it starts in a directory")
	t.Parallel()
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	name, err := server.CreateDatabase(t.Context(), "template0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.DropDatabase(name); err != nil {
			t.Error(err)
		}
	})
	l := newMovedInstallation(t)
	shared := newDirWithKey(t, l.Dir) // for the key only
	where := []string{"--data-dir", shared, "--database-url", server.URL(name)}
	run := func(args ...string) {
		t.Helper()
		if r := harness.Run(t, nil, args...); r.Code != 0 {
			t.Fatalf("stepmill %s: exit code %d: %s", args[0], r.Code, r.Stderr)
		}
	}
	run(append([]string{"import", export(t, l.Dir)}, where...)...)
	if r := harness.Run(t, nil, append([]string{"import", export(t, l.Dir)}, where...)...); r.Code == 0 {
		t.Error("a second import succeeded")
	}

	file := t.TempDir() + "/back.gz"
	run(append([]string{"export", file}, where...)...)
	home := newDirWithKey(t, l.Dir)
	importInto(t, file, home)
	checkTables(t, openCopy(t, home), "")
	deliveries := l.compare(t, home)

	db := tables.OpenPostgres(t, server.URL(name))
	makeDeliveriesDue(t, db)
	l.hooks.open.Store(true)
	s := harness.StartWith(t, harness.Options{Dir: shared, Database: server.URL(name), Args: []string{egress}})
	s.Key = l.Key
	if r := harness.Run(t, nil, append([]string{"export", file + ".live"}, where...)...); r.Code == 0 {
		t.Error("an export succeeded while a node was running")
	}
	l.checkContinues(t, s, deliveries, func() *sql.DB { return db })
}
