// Package storetest owns what every database has to do under the store: the
// conformance suite that the tests of a driver run. It knows what the methods of
// the store promise and the names of the tables, and nothing of any database.
package storetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/store"
)

// Run runs the whole suite. Each call of open makes a store on a database of its
// own that holds the schema and no rows, and closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T, notify store.Notify) *store.Store) {
	for _, area := range []struct {
		name string
		test func(*testing.T, *world)
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
		{"activities", testActivities},
		{"lists of runs", testRuns},
		{"lists of all runs", testAllRuns},
		{"lists of steps", testSteps},
		{"logs", testLogs},
		{"cancellation", testCancel},
		{"activation", testActivate},
		{"commits", testCommit},
		{"what a run keeps", testKept},
		{"crashes", testBlame},
		{"shared places", testShare},
		{"answers", testAnswers},
		{"runs below runs", testBelow},
		{"families of runs", testFamily},
		{"changes of runs", testRunChanges},
		{"events", testEventsAfter},
		{"news", testNews},
		{"triggers", testTriggers},
		{"firing", testFire},
		{"firing together", testFireAll},
		{"keys of calls", testDedupe},
		{"occasions", testOccasions},
		{"hooks", testHooks},
		{"races", testRaces},
		{"queue", testQueue},
		{"backlog", testBacklog},
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
		{"tenants of names", testNamedTenants},
		{"audit", testAudit},
		{"idempotency", testIdempotency},
		{"usage", testUsage},
		{"tokens", testTokens},
		{"limits", testLimits},
		{"tenants", testTenants},
		{"paging", testPaging},
		{"values", testValues},
		{"people", testPeople},
		{"moving", testMove},
	} {
		t.Run(area.name, func(t *testing.T) {
			t.Parallel()
			area.test(t, newWorld(t, open))
		})
	}
}

// world is a store with a view of its tables and of what it told.
type world struct {
	*store.Store
	rows store.Driver
	told *ear
	open func(t *testing.T, notify store.Notify) *store.Store
}

func newWorld(t *testing.T, open func(t *testing.T, notify store.Notify) *store.Store) *world {
	t.Helper()
	told := &ear{}
	s := open(t, told.notify())
	driver := driverOf(s)
	rows := *driver
	*driver = rehearsed{rows}
	return &world{Store: s, rows: rows, told: told, open: open}
}

// driverOf is the driver of a store: no method shows the queue, events and
// deliveries as they are stored.
func driverOf(s *store.Store) *store.Driver {
	return (*store.Driver)(reflect.ValueOf(s).Elem().FieldByName("driver").Addr().UnsafePointer())
}

func collect[T any](t *testing.T, w *world, statement string, args []any, scan func(store.Row) (T, error)) []T {
	t.Helper()
	out := []T{}
	err := w.rows.Read(t.Context(), func(c store.Conn) error {
		return c.Query(statement, args, func(r store.Row) error {
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

// count answers a query for one number.
func (w *world) count(t *testing.T, statement string, args ...any) int {
	t.Helper()
	return collect(t, w, statement, args, func(r store.Row) (n int, err error) {
		err = r.Scan(&n)
		return n, err
	})[0]
}

// exec changes rows behind the back of the store.
func (w *world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	err := w.rows.Write(t.Context(), func(c store.Conn) error {
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

// queue reads the row of a run in the queue; nil when it has none.
func (w *world) queue(t *testing.T, runID string) *queued {
	t.Helper()
	found := collect(t, w, `SELECT epoch, node, wake_at, executing FROM run_queue WHERE run_id = $1`, []any{runID},
		func(r store.Row) (q queued, err error) {
			err = r.Scan(&q.Epoch, &q.Node, &q.WakeAt, &q.Executing)
			return q, err
		})
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

// events counts the events of a run of the given type.
func (w *world) events(t *testing.T, runID string, kind string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM events WHERE run_id = $1 AND type = $2`, runID, kind)
}

// eventOf is the id of the event of a kind that tells of a run.
func (w *world) eventOf(t *testing.T, runID string, kind event.Type) string {
	t.Helper()
	return collect(t, w, `SELECT id FROM events WHERE run_id = $1 AND type = $2`, []any{runID, string(kind)}, func(r store.Row) (id string, err error) {
		err = r.Scan(&id)
		return id, err
	})[0]
}

// endings counts the events that tell of the end of a run.
func (w *world) endings(t *testing.T, runID string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM events WHERE run_id = $1 AND type <> 'run.started'`, runID)
}
