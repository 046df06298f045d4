package crash_test

import (
	"database/sql"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

// An installation moves from a directory, in which its server was killed, to
// PostgreSQL. From there it could move back as it was; where it is, all of it
// goes on.
func TestMoveToPostgresAndBack(t *testing.T) {
	harness.EmbeddedOnly(t, "it begins in a directory")
	t.Parallel()
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	name, err := server.MakeDatabase(t.Context(), "template0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.DropDatabase(name); err != nil {
			t.Error(err)
		}
	})
	l := live(t)
	shared := newHome(t, l.Dir) // for the key alone
	where := []string{"--data-dir", shared, "--database-url", server.URL(name)}
	moves := func(args ...string) {
		t.Helper()
		if r := harness.Run(t, nil, args...); r.Code != 0 {
			t.Fatalf("stepmill %s: exit code %d: %s", args[0], r.Code, r.Stderr)
		}
	}
	moves(append([]string{"import", export(t, l.Dir)}, where...)...)
	if r := harness.Run(t, nil, append([]string{"import", export(t, l.Dir)}, where...)...); r.Code == 0 {
		t.Error("it was imported twice")
	}

	file := t.TempDir() + "/back.gz"
	moves(append([]string{"export", file}, where...)...)
	home := newHome(t, l.Dir)
	imported(t, file, home)
	checkTables(t, checkFile(t, home), "")
	deliveries := l.compare(t, home)

	l.hooks.hears.Store(true)
	s := harness.StartWith(t, harness.Options{Dir: shared, Database: server.URL(name), Args: []string{egress}})
	s.Key = l.Key
	if r := harness.Run(t, nil, append([]string{"export", file + ".live"}, where...)...); r.Code == 0 {
		t.Error("it was exported while a node was at work")
	}
	tables, err := sql.Open("pgx", server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	l.goesOn(t, s, deliveries, tables)
}
