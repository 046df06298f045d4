package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/lane"
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

func query[T any](t *testing.T, conn *pgx.Conn, sql string) T {
	t.Helper()
	var value T
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func TestDataSurvivesRestart(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	server := postgres.Start(t, postgres.Options{MaxConnections: 17, Settings: map[string]string{"work_mem": "3MB"}})
	url, port := server.NewDatabase(t), server.Port()
	conn := connect(t, url)
	for setting, want := range map[string]string{"max_connections": "17", "work_mem": "3MB", "fsync": "on"} {
		if got := query[string](t, conn, "SHOW "+setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	exec(t, conn, "CREATE TABLE t (n int)")
	_ = conn.Close(t.Context())
	for i, stop := range []func(){server.StopImmediate, func() { server.Stop(true) }, func() { server.Stop(false) }} {
		conn := connect(t, url)
		exec(t, conn, "INSERT INTO t VALUES (1)")
		if i == 2 { // this one waits for connected clients
			_ = conn.Close(t.Context())
		}
		stop()
		if server.Pid() != 0 {
			t.Fatal("a stopped server has a process")
		}
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Fatal("a stopped server accepts connections")
		}
		server.Start()
		conn = connect(t, url)
		if got := query[int](t, conn, "SELECT count(*) FROM t"); got != i+1 || server.Port() != port {
			t.Fatalf("after stop %d there are %d rows on port %d, want port %d", i, got, server.Port(), port)
		}
		_ = conn.Close(t.Context())
	}
	if log := server.Log(); !strings.Contains(log, "immediate shutdown") || !strings.Contains(log, "fast shutdown") {
		t.Errorf("the log does not mention the shutdowns:\n%s", log)
	}
}

func TestDatabasesAreSeparateAndDropped(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	server := postgres.Shared(t)
	var names []string
	for range 2 {
		t.Run("", func(t *testing.T) {
			conn := connect(t, server.NewDatabase(t))
			exec(t, conn, "CREATE TABLE t (n int)")
			names = append(names, query[string](t, conn, "SELECT current_database()"))
		})
	}
	if names[0] == names[1] {
		t.Fatal("two databases have the same name")
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
		t.Errorf("databases %[2]v were not dropped: %[1]v", left, names)
	}
}

// A linguistic collation exposes queries that must compare bytes and do not say so.
func TestDefaultCollationIsLinguistic(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	conn := connect(t, postgres.Shared(t).NewDatabase(t))
	icu := query[bool](t, conn, "SELECT current_setting('server_version_num')::int >= 150000")
	if got := query[bool](t, conn, "SELECT 'a' < 'B'"); got != icu {
		t.Errorf("'a' < 'B' is %t, want %t", got, icu)
	}
}

func TestSharedServer(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	server := postgres.Shared(t)
	if server != postgres.Shared(t) {
		t.Error("Shared returned two servers")
	}
	if got := query[string](t, connect(t, server.NewDatabase(t)), "SHOW fsync"); got != "off" {
		t.Errorf("fsync of the shared server is %s, want off", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("the shared server can be stopped")
		}
	}()
	server.StopImmediate()
}
