package crash_test

import (
	"archive/tar"
	"bytes"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/stepmill/stepmill/internal/adminsocket"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/tables"
)

// openTables opens the database as it is now, until the end of the test.
func openTables(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, discard := snapshot(t, dir)
	t.Cleanup(discard)
	return db
}

// number returns a number from the database as it is now.
func number(t *testing.T, dir, query string, args ...any) int {
	t.Helper()
	db, discard := snapshot(t, dir)
	defer discard()
	return tables.Number(t, db, query, args...)
}

// snapshot opens the database as it is now, until discard is called. For a server that
// is running, it is a backup that the server makes, since no other process can open its
// database.
func snapshot(t *testing.T, dir string) (db *sql.DB, discard func()) {
	t.Helper()
	if harness.OnPostgres() {
		db := openShared(t, dir)
		return db, func() { _ = db.Close() }
	}
	server, err := adminsocket.Connect(t.Context(), dir)
	if errors.Is(err, adminsocket.ErrNoServer) {
		db := openFile(t, filepath.Join(copyData(t, dir), "stepmill.db"))
		return db, func() { _ = db.Close() }
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	status, err := server.Run(t.Context(), []string{"backup", "-"}, file, &output)
	if err := errors.Join(err, file.Close()); err != nil || status != 0 {
		t.Fatalf("back up the database: status %d, %v: %s", status, err, &output)
	}
	unpacked := unpackDatabase(t, file.Name())
	db = openFile(t, unpacked)
	return db, func() { _ = errors.Join(db.Close(), os.Remove(unpacked)) }
}

// unpackDatabase replaces a backup with its first entry, the database.
func unpackDatabase(t *testing.T, backup string) string {
	t.Helper()
	packed, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	entries := tar.NewReader(bytes.NewReader(packed))
	header, err := entries.Next()
	if err != nil || header.Name != "stepmill.db" {
		t.Fatalf("the first entry of the backup: %+v, %v", header, err)
	}
	content, err := io.ReadAll(entries)
	if err := errors.Join(err, os.WriteFile(backup, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	return backup
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// openShared opens the PostgreSQL database of a directory.
func openShared(t *testing.T, dir string) *sql.DB {
	t.Helper()
	url, err := harness.DatabaseURL(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tables.OpenPostgres(t, url)
}

// openForWriting opens a database for writing. No server may be running.
func openForWriting(t *testing.T, dir string) *sql.DB {
	t.Helper()
	if harness.OnPostgres() {
		return openShared(t, dir)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "stepmill.db"))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// openCopy opens a copy of the database of a stopped server and checks its integrity. The
// copy leaves the files as the next server has to find them.
func openCopy(t *testing.T, dir string) *sql.DB {
	t.Helper()
	if harness.OnPostgres() {
		return openShared(t, dir)
	}
	db := openFile(t, filepath.Join(copyData(t, dir), "stepmill.db"))
	if got := tables.Texts(t, db, "PRAGMA integrity_check"); len(got) != 1 || got[0] != "ok" {
		t.Errorf("INVARIANT: integrity_check: %s", strings.Join(got, "; "))
	}
	if got := tables.Texts(t, db, "PRAGMA foreign_key_check"); len(got) != 0 {
		t.Errorf("INVARIANT: foreign_key_check: %s", strings.Join(got, "; "))
	}
	return db
}

// checkTables checks the invariants. The webhook, if any, is subscribed to every event of
// every run.
func checkTables(t *testing.T, db *sql.DB, webhookID string) {
	t.Helper()
	if harness.OnPostgres() {
		tables.CheckShared(t, db)
	} else {
		tables.Check(t, db)
	}
	if webhookID == "" {
		return
	}
	tables.CheckNone(t, db, "every event of a run has one delivery for a webhook that is subscribed to it", `
		WITH sent AS (SELECT event_id, count(*) AS n FROM deliveries WHERE webhook_id = $1 GROUP BY event_id)
		SELECT e.id FROM events e LEFT JOIN sent ON sent.event_id = e.id WHERE e.run_id IS NOT NULL AND COALESCE(sent.n, 0) <> 1`, webhookID)
}

// makeOrphans copies a run many times, as if a dead process had held all copies.
func makeOrphans(t *testing.T, dir, run string, copies int) {
	t.Helper()
	db := openForWriting(t, dir)
	defer db.Close()
	const many = "WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < $1) "
	copied := "'run_' || printf('%026d', n)"
	if harness.OnPostgres() {
		copied = "'run_' || lpad(n::text, 26, '0')"
	}
	for _, statement := range []string{
		many + `INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, trigger_type, payload)
			SELECT ` + copied + `, workspace_id, workflow_id, workflow_version, status, started_at, trigger_type, payload FROM many, runs WHERE id = $2`,
		many + `INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node)
			SELECT ` + copied + `, workspace_id, workflow_id, 1, 'node_gone' FROM many, run_queue WHERE run_id = $2`,
		many + `INSERT INTO events (id, workspace_id, type, workflow_id, run_id, at, body)
			SELECT 'evt_' || n, workspace_id, type, workflow_id, ` + copied + `, at, body FROM many, events WHERE run_id = $2`,
	} {
		tables.Exec(t, db, statement, copies, run)
	}
	if !harness.OnPostgres() {
		return
	}
	for _, statement := range []string{
		`UPDATE run_queue SET slot = true WHERE node = 'node_gone'`,
		`UPDATE workspace_load l SET running = (SELECT count(*) FROM run_queue q WHERE q.workspace_id = l.workspace_id AND slot)`,
		`INSERT INTO nodes (id, name, version, role, capacity, started_at, seen_at, expires_at, level) VALUES ('node_gone', '', '', 'serve', 1, 1, 1, 1, 3)`,
	} {
		tables.Exec(t, db, statement)
	}
}
