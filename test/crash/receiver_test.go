package crash_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// receiver takes deliveries, and has clients that cause some.
type receiver struct {
	*sink.Receiver
	t *testing.T
}

func newReceiver(t *testing.T) *receiver { return &receiver{sink.NewReceiver(t), t} }

// awaitNothing waits until no row is counted any more.
func awaitNothing(t *testing.T, dir, what, query string) {
	t.Helper()
	db := openTables(t, dir)
	for deadline := time.Now().Add(settleTime); ; {
		left := number(t, db, query)
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %s after %v", left, what, settleTime)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func awaitDelivered(t *testing.T, s *harness.Server) {
	t.Helper()
	awaitNothing(t, s.Dir, "runs have not ended", "SELECT count(*) FROM run_queue")
	awaitNothing(t, s.Dir, "deliveries are pending", "SELECT count(*) FROM deliveries WHERE status = 'pending'")
}

// checkDeliveries holds what has arrived against the tables: every delivery has
// arrived, with the bytes of its event each time.
func (r *receiver) checkDeliveries(dir string) {
	r.t.Helper()
	db := openTables(r.t, dir)
	rows, err := db.QueryContext(r.t.Context(), `SELECT d.id, d.status, e.id, e.type, e.body FROM deliveries d JOIN events e ON e.id = d.event_id`)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, state, eventID, kind, body string
		if err := rows.Scan(&id, &state, &eventID, &kind, &body); err != nil {
			r.t.Fatal(err)
		}
		letters := r.Letters(id)
		if len(letters) == 0 || state != "delivered" {
			r.t.Errorf("%s has arrived %d times and is %s", id, len(letters), state)
		}
		for _, l := range letters {
			if l != (sink.Letter{Path: l.Path, Event: kind, WebhookID: eventID, Body: body}) {
				r.t.Errorf("%s arrived as %+v, its event is %s %s %s", id, l, eventID, kind, body)
			}
		}
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
}

// path is a URL path that nothing else has.
func path(n int) string { return fmt.Sprintf("/hook/%d", n) }
