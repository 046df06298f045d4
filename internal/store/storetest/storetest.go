// Package storetest owns the conformance suite that every database driver must
// pass. It knows what the methods of the store promise and the names of the
// tables, but nothing about a particular database.
package storetest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
)

// areas are the parts of the suite. Each runs on its own store.
var areas = []struct {
	name string
	test func(*testing.T, *harness)
}{
	{"installation", testInstallation},
	{"workspaces", testWorkspaces},
	{"keys", testKeys},
	{"workflows", testWorkflows},
	{"versions", testVersions},
	{"deletion of workflows", testDeletion},
	{"purge", testPurge},
	{"start of runs", testStart},
	{"runs of drafts", testDrafts},
	{"steps at paths", testStepsAt},
	{"search", testSearch},
	{"activities", testActivities},
	{"lists of runs", testRuns},
	{"lists of all runs", testAllRuns},
	{"runs that wait", testWaiting},
	{"lists of steps", testSteps},
	{"logs", testLogs},
	{"cancellation", testCancel},
	{"activation", testActivate},
	{"commits", testCommit},
	{"state of a run", testRunState},
	{"checkpoints of steps", testCheckpoints},
	{"crashes", testRecordCrash},
	{"concurrency limits", testConcurrencyLimit},
	{"answers", testAnswers},
	{"child runs", testChildRuns},
	{"errors of child runs", testChildRunErrors},
	{"changes of runs", testRunChanges},
	{"events", testEventsAfter},
	{"notifications", testNotifications},
	{"triggers", testTriggers},
	{"subscriptions", testSubscriptions},
	{"calls for apps", testAppCalls},
	{"firing", testFire},
	{"firing in batches", testFireBatch},
	{"trigger keys", testTriggerKeys},
	{"pending events", testPendingEvents},
	{"webhook triggers", testHooks},
	{"races", testRaces},
	{"queue", testQueue},
	{"backlog", testBacklog},
	{"service clock", testServiceClock},
	{"nodes", testNodes},
	{"outbox", testOutbox},
	{"webhooks", testWebhooks},
	{"deliveries", testDeliveries},
	{"log of deliveries", testDeliveryLog},
	{"redelivery", testRedelivery},
	{"purge of deliveries", testPurgeDeliveries},
	{"events", testEvents},
	{"secrets", testSecrets},
	{"variables", testVariables},
	{"tenants and names", testNamedTenants},
	{"connections", testConnections},
	{"OAuth apps", testOAuthApps},
	{"own integrations", testOwnIntegrations},
	{"data tables", testDataTables},
	{"rows of tables", testTableRows},
	{"filters of rows", testTableFilters},
	{"keys between runs", testStateKeys},
	{"operations of steps", testOperations},
	{"files", testFiles},
	{"file holders", testFileHolders},
	{"resumable uploads", testUploads},
	{"consents", testConsents},
	{"audit", testAudit},
	{"audit chain", testAuditChain},
	{"idempotency", testIdempotency},
	{"usage", testUsage},
	{"tokens", testTokens},
	{"limits", testLimits},
	{"tenants", testTenants},
	{"paging", testPaging},
	{"values", testValues},
	{"accounts", testAccounts},
	{"export and import", testImport},
}

// Run runs the whole suite. Each call of open returns a store on a new database
// with the schema and no rows, and closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T, notify store.Notify) *store.DB) {
	for _, area := range areas {
		t.Run(area.name, func(t *testing.T) {
			t.Parallel()
			area.test(t, newHarness(t, open))
		})
	}
}

// harness is a store with access to its tables and its notifications.
type harness struct {
	*store.DB
	rows     database.Driver
	notified *recorder
	open     func(t *testing.T, notify store.Notify) *store.DB
}

func newHarness(t *testing.T, open func(t *testing.T, notify store.Notify) *store.DB) *harness {
	t.Helper()
	notified := &recorder{}
	s := open(t, notified.notify())
	driver := driverOf(s)
	rows := *driver
	*driver = retriedDriver{rows}
	return &harness{DB: s, rows: rows, notified: notified, open: open}
}

// driverOf returns the driver of a store, because no method shows the rows of the
// queue, events and deliveries.
func driverOf(s *store.DB) *database.Driver {
	return (*database.Driver)(reflect.ValueOf(s).Elem().FieldByName("driver").Addr().UnsafePointer())
}

func collect[T any](t *testing.T, w *harness, statement string, args []any, scan func(database.Row) (T, error)) []T {
	t.Helper()
	out := []T{}
	err := w.rows.Read(t.Context(), func(c database.Conn) error {
		return c.Query(statement, args, func(r database.Row) error {
			item, err := scan(r)
			out = append(out, item)
			return err
		})
	})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return out
}

// count returns the result of a query for one number.
func (w *harness) count(t *testing.T, statement string, args ...any) int {
	t.Helper()
	return collect(t, w, statement, args, func(r database.Row) (n int, err error) {
		err = r.Scan(&n)
		return n, err
	})[0]
}

// exec changes rows directly, without the store.
func (w *harness) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	err := w.rows.Write(t.Context(), func(c database.Conn) error {
		_, err := c.Exec(statement, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// queued is a row of the queue.
type queued struct {
	Epoch     int64
	Node      *string
	WakeAt    *time.Time
	Executing *string
}

// queue reads the row of a run in the queue. It returns nil if there is none.
func (w *harness) queue(t *testing.T, runID string) *queued {
	t.Helper()
	found := collect(t, w, `SELECT epoch, node, wake_at, executing FROM run_queue WHERE run_id = $1`, []any{runID},
		func(r database.Row) (q queued, err error) {
			err = r.Scan(&q.Epoch, &q.Node, &q.WakeAt, &q.Executing)
			return q, err
		})
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

// events counts the events of a run of the given type.
func (w *harness) events(t *testing.T, runID string, kind string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM events WHERE run_id = $1 AND type = $2`, runID, kind)
}

// eventOf returns the id of the event of the given type about a run.
func (w *harness) eventOf(t *testing.T, runID string, kind event.Type) string {
	t.Helper()
	return collect(t, w, `SELECT id FROM events WHERE run_id = $1 AND type = $2`, []any{runID, string(kind)}, func(r database.Row) (id string, err error) {
		err = r.Scan(&id)
		return id, err
	})[0]
}

// endings counts the end events of a run.
func (w *harness) endings(t *testing.T, runID string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM events WHERE run_id = $1 AND type <> 'run.started'`, runID)
}

// Commit commits a decision without operations and reports whether the lease was held.
func (w *harness) Commit(ctx context.Context, lease run.Lease, r run.Run, d run.Decision) (bool, error) {
	committed, err := w.Leases.Commit(ctx, lease, r, d)
	return committed.Held, err
}
