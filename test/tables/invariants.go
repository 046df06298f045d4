package tables

import (
	"database/sql"
	"maps"
	"strings"
	"testing"
)

// invariants hold after every commit, so they also hold for whatever a crash left
// behind. Each query returns the ids of the rows that violate one.
var invariants = map[string]string{
	"a run has exactly one run.started event, and exactly one final event, that of its status, once it has ended": `
		WITH counts AS (SELECT run_id, count(CASE WHEN type = 'run.started' THEN 1 END) AS started, count(CASE WHEN type <> 'run.started' THEN 1 END) AS ended, max(type) AS last,
			min(type) AS other FROM events WHERE run_id IS NOT NULL GROUP BY run_id)
		SELECT r.id FROM runs r LEFT JOIN counts ON counts.run_id = r.id
		WHERE COALESCE(counts.started, 0) <> 1 OR counts.ended <> CASE WHEN r.status <> 'running' THEN 1 ELSE 0 END
			OR r.status <> 'running' AND 'run.' || r.status NOT IN (counts.last, counts.other)`,
	"a run is queued exactly while it has not ended": `
		SELECT r.id FROM runs r LEFT JOIN run_queue q ON q.run_id = r.id WHERE (q.run_id IS NULL) <> (r.status <> 'running')`,
	"every queued run exists": `
		SELECT q.run_id FROM run_queue q LEFT JOIN runs r ON r.id = q.run_id WHERE r.id IS NULL`,
	"a run has an end time exactly when it has ended": `
		SELECT id FROM runs WHERE (finished_at IS NULL) <> (status = 'running')`,
	"a run that has ended has no open steps": `
		SELECT s.run_id FROM steps s JOIN runs r ON r.id = s.run_id WHERE r.status <> 'running' AND s.status IN ('running', 'waiting')`,
	"the chunks of a state belong to a step that is open": `
		SELECT c.run_id FROM step_chunks c LEFT JOIN steps s ON s.run_id = c.run_id AND s.path = c.path
		LEFT JOIN purged_runs m ON m.run_id = c.run_id WHERE m.run_id IS NULL AND (s.status IS NULL OR s.status NOT IN ('running', 'waiting'))`,
	"a step that has settled has no checkpoint, and only one that has succeeded a state": `
		SELECT run_id FROM steps WHERE status NOT IN ('running', 'waiting') AND (state IS NOT NULL AND status <> 'succeeded' OR checkpoint_attempt <> 0)`,
	"a step belongs to a run, or to one that is being removed": `
		SELECT s.run_id FROM steps s LEFT JOIN runs r ON r.id = s.run_id WHERE r.id IS NULL AND s.run_id NOT IN (SELECT run_id FROM purged_runs)`,
	"a workflow has its current version": `
		SELECT w.id FROM workflows w LEFT JOIN workflow_versions v ON v.workflow_id = w.id AND v.version = w.version WHERE v.version IS NULL`,
	"a run is pinned to a version that exists": `
		SELECT r.id FROM runs r LEFT JOIN workflow_versions v ON v.workflow_id = r.workflow_id AND v.version = r.workflow_version
		WHERE v.version IS NULL`,
	"a run is in the workspace of its workflow, and of its parent run": `
		SELECT r.id FROM runs r JOIN workflows w ON w.id = r.workflow_id LEFT JOIN runs p ON p.id = r.parent_run
		WHERE w.workspace_id <> r.workspace_id OR p.workspace_id <> r.workspace_id`,
	"an event of a run is in the workspace of the run": `
		SELECT e.id FROM events e JOIN runs r ON r.id = e.run_id WHERE e.workspace_id <> r.workspace_id`,
	"a delivery sends an event to a webhook of the same workspace": `
		SELECT d.id FROM deliveries d LEFT JOIN events e ON e.id = d.event_id LEFT JOIN webhooks w ON w.id = d.webhook_id
		WHERE e.id IS NULL OR w.id IS NULL OR e.workspace_id <> d.workspace_id OR w.workspace_id <> d.workspace_id`,
	"the counters of tables, rows and keys are those of the rows": `
		SELECT u.workspace_id FROM state_usage u WHERE tables <> (SELECT count(*) FROM data_tables t WHERE t.workspace_id = u.workspace_id)
			OR table_rows <> (SELECT coalesce(sum(row_count), 0) FROM data_tables t WHERE t.workspace_id = u.workspace_id)
			OR state_keys <> (SELECT count(*) FROM state_keys k WHERE k.workspace_id = u.workspace_id)
			OR stored_bytes <> (SELECT coalesce(sum(row_bytes), 0) FROM data_tables t WHERE t.workspace_id = u.workspace_id) + (SELECT coalesce(sum(size), 0) FROM state_keys k WHERE k.workspace_id = u.workspace_id)`,
	"the counters of a table are those of its rows": `
		SELECT t.id FROM data_tables t WHERE row_count <> (SELECT count(*) FROM table_rows r WHERE r.table_id = t.id) OR row_bytes <> (SELECT coalesce(sum(size), 0) FROM table_rows r WHERE r.table_id = t.id)`,
	"a row belongs to a table of its workspace, or to one that is being removed": `
		SELECT r.id FROM table_rows r LEFT JOIN data_tables t ON t.id = r.table_id AND t.workspace_id = r.workspace_id
		WHERE t.id IS NULL AND r.table_id NOT IN (SELECT table_id FROM purged_tables WHERE column_id = '')`,
	"an index entry belongs to a row, or is being removed": `
		SELECT i.row_id FROM table_index i LEFT JOIN table_rows r ON r.table_id = i.table_id AND r.id = i.row_id
		WHERE r.id IS NULL AND i.table_id NOT IN (SELECT table_id FROM purged_tables)`,
	"a key belongs to a workflow that exists": `
		SELECT k.name FROM state_keys k LEFT JOIN workflows w ON w.id = k.workflow_id AND w.workspace_id = k.workspace_id WHERE k.workflow_id <> '' AND w.id IS NULL`,
	"an idempotency key is stored once": `
		SELECT workspace_id || ' ' || route FROM idempotency GROUP BY workspace_id, route, key_hash HAVING count(*) > 1`,
}

// sharedInvariants hold where nodes share a database.
var sharedInvariants = map[string]string{
	"the load of a workspace counts its runs that have a slot, and those that wait for one": `
		SELECT w.id || ': ' || coalesce(l.running, 0) || '/' || coalesce(l.throttled, 0) || ', counted ' || count(*) FILTER (WHERE q.slot) || '/' || count(*) FILTER (WHERE q.throttled)
		FROM workspaces w LEFT JOIN workspace_load l ON l.workspace_id = w.id LEFT JOIN run_queue q ON q.workspace_id = w.id
		GROUP BY w.id, l.running, l.throttled
		HAVING coalesce(l.running, 0) <> count(*) FILTER (WHERE q.slot) OR coalesce(l.throttled, 0) <> count(*) FILTER (WHERE q.throttled)`,
	"a run that a node executes has a slot, and one that waits for a slot has neither slot nor node": `
		SELECT run_id FROM run_queue WHERE slot AND throttled OR throttled AND node IS NOT NULL OR executing IS NOT NULL AND NOT slot`,
}

// Check checks the invariants of an embedded database.
func Check(t testing.TB, db *sql.DB) {
	t.Helper()
	check(t, db, invariants)
}

// CheckShared checks the invariants of a database that nodes share.
func CheckShared(t testing.TB, db *sql.DB) {
	t.Helper()
	all := maps.Clone(invariants)
	maps.Copy(all, sharedInvariants)
	check(t, db, all)
}

func check(t testing.TB, db *sql.DB, rules map[string]string) {
	t.Helper()
	for rule, query := range rules {
		CheckNone(t, db, rule, query)
	}
}

// CheckNone reports the rows that a query returns as violations of a rule.
func CheckNone(t testing.TB, db *sql.DB, rule, query string, args ...any) {
	t.Helper()
	const shown = 10
	if got := Texts(t, db, query, args...); len(got) != 0 {
		t.Errorf("INVARIANT: %s: %d rows: %s", rule, len(got), strings.Join(got[:min(len(got), shown)], ", "))
	}
}

// Queue describes the queue of nodes that share a database, for the message of a
// test that fails because runs are still queued.
func Queue(t testing.TB, db *sql.DB) string {
	t.Helper()
	var out []string
	for _, query := range []string{
		`SELECT concat_ws(' ', 'queue', run_id, 'epoch', epoch, 'node', node, 'wake', to_timestamp(wake_at / 1000000), 'executing', executing, 'crashes', crashes,
			CASE WHEN admitted THEN 'admitted' END, CASE WHEN slot THEN 'slot' END, CASE WHEN throttled THEN 'throttled' END) FROM run_queue ORDER BY run_id LIMIT 10`,
		`SELECT concat_ws(' ', 'load', workspace_id, running, throttled) FROM workspace_load`,
		`SELECT concat_ws(' ', 'node', id, to_timestamp(expires_at / 1000000), dead) FROM nodes`,
		`SELECT concat_ws(' ', 'job', id, state, args, scheduled_at, attempt, attempted_by) FROM stepmill_river.river_job WHERE state <> 'completed' ORDER BY id LIMIT 10`,
		`SELECT concat_ws(' ', 'leader', leader_id, expires_at) FROM stepmill_river.river_leader`,
		`SELECT 'now ' || now()`,
	} {
		out = append(out, Texts(t, db, query)...)
	}
	return strings.Join(out, "\n")
}
