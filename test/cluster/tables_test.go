package cluster_test

import (
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/tables"
)

// nodeID returns the id of the current process of a node.
func (c *cluster) nodeID(name string) string {
	c.t.Helper()
	var found []string
	harness.Eventually(c.t, "node "+name+" is a member", func() bool {
		found = tables.Texts(c.t, c.db, `SELECT id FROM nodes WHERE name = $1 ORDER BY started_at DESC`, name)
		return len(found) > 0
	})
	return found[0]
}

// holds reports whether a node holds a run.
func (c *cluster) holds(m *member, run string) bool {
	c.t.Helper()
	return tables.Number(c.t, c.db, `SELECT count(*) FROM run_queue q JOIN nodes n ON n.id = q.node WHERE q.run_id = $1 AND n.name = $2`, run, m.name) == 1
}

// checkTables checks the invariants. In these tests each workspace has one webhook,
// which is subscribed to every event of a run.
func (c *cluster) checkTables() {
	c.t.Helper()
	tables.CheckShared(c.t, c.db)
	tables.CheckNone(c.t, c.db, "every event of a run has one delivery for the webhook that is subscribed to it", `
		SELECT e.id FROM events e JOIN webhooks w ON w.workspace_id = e.workspace_id
		WHERE e.run_id IS NOT NULL AND (SELECT count(*) FROM deliveries d WHERE d.event_id = e.id AND d.webhook_id = w.id) <> 1`)
}
