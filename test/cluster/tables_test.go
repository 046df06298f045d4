package cluster_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// texts returns the first column of a query, at most ten rows of it.
func texts(t testing.TB, db *pgxpool.Pool, query string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out[:min(len(out), 10)]
}

func number(t testing.TB, db *pgxpool.Pool, query string, args ...any) int {
	t.Helper()
	n := 0
	if err := db.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// nodeID is the id of the process that runs under a name.
func (c *cluster) nodeID(name string) string {
	c.t.Helper()
	found := texts(c.t, c.tables, `SELECT id FROM nodes WHERE name = $1 ORDER BY started_at DESC`, name)
	if len(found) == 0 {
		c.t.Fatalf("there is no node %s", name)
	}
	return found[0]
}

// invariants hold after every commit, so at any time. Each query finds the ids
// of what violates it.
var invariants = map[string]string{
	"a run has exactly one run.started event, and exactly one final event, that of its status, once it has ended": `
		SELECT r.id FROM runs r LEFT JOIN (SELECT run_id, count(*) FILTER (WHERE type = 'run.started') AS started,
			count(*) FILTER (WHERE type <> 'run.started') AS ended, max(type) FILTER (WHERE type <> 'run.started') AS last
			FROM events WHERE run_id IS NOT NULL GROUP BY run_id) told ON told.run_id = r.id
		WHERE told.started IS DISTINCT FROM 1 OR (told.ended = 1) <> (r.status <> 'running') OR told.ended > 1
			OR r.status <> 'running' AND 'run.' || r.status <> told.last`,
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
	"a delivery is of an event to a webhook of the same workspace": `
		SELECT d.id FROM deliveries d LEFT JOIN events e ON e.id = d.event_id LEFT JOIN webhooks w ON w.id = d.webhook_id
		WHERE e.id IS NULL OR w.id IS NULL OR e.workspace_id <> d.workspace_id OR w.workspace_id <> d.workspace_id`,
	"every event of a run has one delivery for the webhook that wants it": `
		SELECT e.id FROM events e JOIN webhooks w ON w.workspace_id = e.workspace_id
		WHERE e.run_id IS NOT NULL AND (SELECT count(*) FROM deliveries d WHERE d.event_id = e.id AND d.webhook_id = w.id) <> 1`,
	"an event of a run is in the workspace of the run": `
		SELECT e.id FROM events e JOIN runs r ON r.id = e.run_id WHERE e.workspace_id <> r.workspace_id`,
	"a run is in the workspace of its workflow, and of the run above it": `
		SELECT r.id FROM runs r JOIN workflows w ON w.id = r.workflow_id LEFT JOIN runs p ON p.id = r.parent_run
		WHERE w.workspace_id <> r.workspace_id OR p.workspace_id <> r.workspace_id`,
	"the load of a workspace is the number of its runs that have a slot, and that are parked": `
		SELECT w.id || ': ' || coalesce(l.running, 0) || '/' || coalesce(l.parked, 0) || ', counted ' || count(*) FILTER (WHERE q.slot) || '/' || count(*) FILTER (WHERE q.parked)
		FROM workspaces w LEFT JOIN workspace_load l ON l.workspace_id = w.id LEFT JOIN run_queue q ON q.workspace_id = w.id
		GROUP BY w.id, l.running, l.parked
		HAVING coalesce(l.running, 0) <> count(*) FILTER (WHERE q.slot) OR coalesce(l.parked, 0) <> count(*) FILTER (WHERE q.parked)`,
	"an order with an idempotency key is kept once": `
		SELECT workspace_id || key_hash FROM idempotency GROUP BY workspace_id, route, key_hash HAVING count(*) > 1`,
}

// checkTables holds the tables against the invariants, in one snapshot each.
func (c *cluster) checkTables() {
	c.t.Helper()
	for rule, query := range invariants {
		if got := texts(c.t, c.tables, query); len(got) != 0 {
			c.t.Errorf("%s; not so: %s", rule, strings.Join(got, ", "))
		}
	}
}
