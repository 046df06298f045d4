package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/postgres"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func ask[T any](t *testing.T, conn *pgx.Conn, sql string) T {
	t.Helper()
	var answer T
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func TestDataOutlivesEveryStop(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t, postgres.Options{MaxConnections: 17, Settings: map[string]string{"work_mem": "3MB"}})
	url, port := server.NewDatabase(t), server.Port()
	conn := connect(t, url)
	for setting, want := range map[string]string{"max_connections": "17", "work_mem": "3MB", "fsync": "on"} {
		if got := ask[string](t, conn, "SHOW "+setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	exec(t, conn, "CREATE TABLE t (n int)")
	_ = conn.Close(t.Context())
	for i, stop := range []func(){server.StopImmediate, func() { server.Stop(true) }, func() { server.Stop(false) }} {
		conn := connect(t, url)
		exec(t, conn, "INSERT INTO t VALUES (1)")
		if i == 2 { // this one waits for those who are connected
			_ = conn.Close(t.Context())
		}
		stop()
		if server.Pid() != 0 {
			t.Fatal("a stopped server has a process")
		}
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Fatal("a stopped server answers")
		}
		server.Start()
		conn = connect(t, url)
		if got := ask[int](t, conn, "SELECT count(*) FROM t"); got != i+1 || server.Port() != port {
			t.Fatalf("after stop %d there are %d rows, on port %d instead of %d", i, got, server.Port(), port)
		}
		_ = conn.Close(t.Context())
	}
	if log := server.Log(); !strings.Contains(log, "immediate shutdown") || !strings.Contains(log, "fast shutdown") {
		t.Errorf("the log does not tell of the stops:\n%s", log)
	}
}

func TestDatabasesAreSeparateAndGoWithTheirTest(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	var names []string
	for range 2 {
		t.Run("", func(t *testing.T) {
			conn := connect(t, server.NewDatabase(t))
			exec(t, conn, "CREATE TABLE t (n int)")
			names = append(names, ask[string](t, conn, "SELECT current_database()"))
		})
	}
	if names[0] == names[1] {
		t.Fatal("two databases have one name")
	}
	rows, err := connect(t, server.URL("postgres")).Query(t.Context(), "SELECT datname FROM pg_database")
	if err != nil {
		t.Fatal(err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(left, names[0]) || slices.Contains(left, names[1]) {
		t.Errorf("databases are left behind: %v of %v", left, names)
	}
}

// So that what has to be compared by bytes, and does not say so, is found.
func TestTextIsComparedByALanguage(t *testing.T) {
	t.Parallel()
	conn := connect(t, postgres.Shared(t).NewDatabase(t))
	icu := ask[bool](t, conn, "SELECT current_setting('server_version_num')::int >= 150000")
	if got := ask[bool](t, conn, "SELECT 'a' < 'B'"); got != icu {
		t.Errorf("'a' < 'B' is %t", got)
	}
}

func TestTheSharedServerIsOne(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	if server != postgres.Shared(t) {
		t.Error("there are two shared servers")
	}
	if got := ask[string](t, connect(t, server.NewDatabase(t)), "SHOW fsync"); got != "off" {
		t.Errorf("fsync of the shared server is %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("the shared server can be stopped")
		}
	}()
	server.StopImmediate()
}
