package crash_test

import (
	"database/sql"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	_ "modernc.org/sqlite"             // the other

	"github.com/stepmill/stepmill/test/harness"
)

// openTables opens a database for reading only, also that of a running server.
func openTables(t *testing.T, dir string) *sql.DB {
	t.Helper()
	if harness.OnPostgres() {
		return openShared(t, dir)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "stepmill.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// openShared opens the database on PostgreSQL that belongs to a directory.
func openShared(t *testing.T, dir string) *sql.DB {
	t.Helper()
	url, err := harness.DatabaseURL(dir)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// change opens a database for writing, when no server uses it.
func change(t *testing.T, dir string) *sql.DB {
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

// texts returns the first column of a query.
func texts(t *testing.T, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func number(t *testing.T, db *sql.DB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// invariants hold after every commit, so also for whatever a crash has left.
// Each query finds the ids of what violates it.
var invariants = map[string]string{
	"a run has exactly one run.started event, and exactly one final event, that of its status, once it has ended": `
		WITH told AS (SELECT run_id, count(CASE WHEN type = 'run.started' THEN 1 END) AS started, count(CASE WHEN type <> 'run.started' THEN 1 END) AS ended, max(type) AS last,
			min(type) AS other FROM events WHERE run_id IS NOT NULL GROUP BY run_id)
		SELECT r.id FROM runs r LEFT JOIN told ON told.run_id = r.id
		WHERE COALESCE(told.started, 0) <> 1 OR told.ended <> CASE WHEN r.status <> 'running' THEN 1 ELSE 0 END
			OR r.status <> 'running' AND 'run.' || r.status NOT IN (told.last, told.other)`,
	"a run is queued exactly while it has not ended": `
		SELECT r.id FROM runs r LEFT JOIN run_queue q ON q.run_id = r.id WHERE (q.run_id IS NULL) <> (r.status <> 'running')`,
	"what is queued is a run": `
		SELECT q.run_id FROM run_queue q LEFT JOIN runs r ON r.id = q.run_id WHERE r.id IS NULL`,
	"a run has an end time exactly when it has ended": `
		SELECT id FROM runs WHERE (finished_at IS NULL) <> (status = 'running')`,
	"a run that has ended has no open steps": `
		SELECT s.run_id FROM steps s JOIN runs r ON r.id = s.run_id WHERE r.status <> 'running' AND s.status IN ('running', 'waiting')`,
	"a step belongs to a run, or is what remains of one": `
		SELECT s.run_id FROM steps s LEFT JOIN runs r ON r.id = s.run_id WHERE r.id IS NULL AND s.run_id NOT IN (SELECT run_id FROM run_remains)`,
	"a workflow has the version it names": `
		SELECT w.id FROM workflows w LEFT JOIN workflow_versions v ON v.workflow_id = w.id AND v.version = w.version WHERE v.version IS NULL`,
	"a run is pinned to a version that exists": `
		SELECT r.id FROM runs r LEFT JOIN workflow_versions v ON v.workflow_id = r.workflow_id AND v.version = r.workflow_version
		WHERE v.version IS NULL`,
	"a delivery is of an event to a webhook": `
		SELECT d.id FROM deliveries d LEFT JOIN events e ON e.id = d.event_id LEFT JOIN webhooks w ON w.id = d.webhook_id
		WHERE e.id IS NULL OR w.id IS NULL`,
}

// sharedInvariants hold where nodes share a database.
var sharedInvariants = map[string]string{
	"the load of a workspace is what its runs say": `
		SELECT w.id FROM workspaces w LEFT JOIN workspace_load l ON l.workspace_id = w.id
		LEFT JOIN (SELECT workspace_id, count(CASE WHEN slot THEN 1 END) AS running, count(CASE WHEN parked THEN 1 END) AS parked
			FROM run_queue GROUP BY workspace_id) q ON q.workspace_id = w.id
		WHERE COALESCE(l.running, 0) <> COALESCE(q.running, 0) OR COALESCE(l.parked, 0) <> COALESCE(q.parked, 0)`,
	"a run is executed by a node that has a slot for it, and none is parked with one": `
		SELECT run_id FROM run_queue WHERE slot AND parked OR parked AND node IS NOT NULL OR executing IS NOT NULL AND NOT slot`,
}

// checkFile looks at the file of a server that is not running, on a copy, so
// that the next server finds everything as the last one left it.
func checkFile(t *testing.T, dir string) *sql.DB {
	t.Helper()
	if harness.OnPostgres() {
		return openShared(t, dir)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(copyData(t, dir), "stepmill.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if got := texts(t, db, "PRAGMA integrity_check"); len(got) != 1 || got[0] != "ok" {
		t.Errorf("integrity_check: %s", strings.Join(got, "; "))
	}
	if got := texts(t, db, "PRAGMA foreign_key_check"); len(got) != 0 {
		t.Errorf("foreign_key_check: %s", strings.Join(got, "; "))
	}
	return db
}

// checkTables holds the tables against the invariants. The webhook is one that
// wants every event of every run.
func checkTables(t *testing.T, db *sql.DB, webhookID string) {
	t.Helper()
	rules := maps.Clone(invariants)
	if harness.OnPostgres() {
		maps.Copy(rules, sharedInvariants)
	}
	for rule, query := range rules {
		if got := texts(t, db, query); len(got) != 0 {
			t.Errorf("%s; not so: %s", rule, strings.Join(got, ", "))
		}
	}
	if webhookID == "" {
		return
	}
	if got := texts(t, db, `WITH sent AS (SELECT event_id, count(*) AS n FROM deliveries WHERE webhook_id = $1 GROUP BY event_id)
		SELECT e.id FROM events e LEFT JOIN sent ON sent.event_id = e.id WHERE e.run_id IS NOT NULL AND COALESCE(sent.n, 0) <> 1`, webhookID); len(got) != 0 {
		t.Errorf("every event of a run has one delivery for a webhook that wants it; not so: %s", strings.Join(got, ", "))
	}
}

// orphan copies a run many times, as if a process that died had held them all.
func orphan(t *testing.T, dir, run string, copies int) {
	t.Helper()
	db := change(t, dir)
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
		if _, err := db.ExecContext(t.Context(), statement, copies, run); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if !harness.OnPostgres() {
		return
	}
	for _, statement := range []string{
		`UPDATE run_queue SET slot = true WHERE node = 'node_gone'`,
		`UPDATE workspace_load l SET running = (SELECT count(*) FROM run_queue q WHERE q.workspace_id = l.workspace_id AND slot)`,
		`INSERT INTO nodes (id, name, version, role, capacity, started_at, seen_at, expires_at) VALUES ('node_gone', '', '', 'serve', 1, 1, 1, 1)`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// queued shows what is in the queue of nodes that share a database, for a test
// that failed because something is.
func queued(t *testing.T, dir string) string {
	t.Helper()
	if !harness.OnPostgres() {
		return ""
	}
	db := openTables(t, dir)
	var out []string
	for _, query := range []string{
		`SELECT concat_ws(' ', 'queue', run_id, 'epoch', epoch, 'node', node, 'wake', to_timestamp(wake_at / 1000000), 'executing', executing, 'crashes', crashes,
			CASE WHEN turn THEN 'turn' END, CASE WHEN slot THEN 'slot' END, CASE WHEN parked THEN 'parked' END) FROM run_queue ORDER BY run_id`,
		`SELECT concat_ws(' ', 'load', workspace_id, running, parked) FROM workspace_load`,
		`SELECT concat_ws(' ', 'node', id, to_timestamp(expires_at / 1000000), dead) FROM nodes`,
		`SELECT concat_ws(' ', 'job', id, state, args, scheduled_at, attempt, attempted_by) FROM stepmill_river.river_job WHERE state <> 'completed' ORDER BY id`,
		`SELECT concat_ws(' ', 'leader', leader_id, expires_at) FROM stepmill_river.river_leader`,
		`SELECT 'now ' || now()`,
	} {
		out = append(out, texts(t, db, query)...)
	}
	return strings.Join(out, "\n")
}
