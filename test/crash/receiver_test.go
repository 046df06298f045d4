package crash_test

import (
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// receiver receives deliveries and starts runs that cause them.
type receiver struct {
	*sink.Receiver
	t *testing.T
}

func newReceiver(t *testing.T) *receiver { return &receiver{sink.NewReceiver(t), t} }

// awaitNone waits until the count is zero.
func awaitNone(t *testing.T, dir, what, query string) {
	t.Helper()
	if left := harness.AwaitZero(func() int { return number(t, dir, query) }); left > 0 {
		t.Fatalf("%d %s, unchanged for %v", left, what, timeout)
	}
}

func awaitDelivered(t *testing.T, s *harness.Server) {
	t.Helper()
	awaitNone(t, s.Dir, "runs have not ended", "SELECT count(*) FROM run_queue")
	awaitNone(t, s.Dir, "deliveries are pending", "SELECT count(*) FROM deliveries WHERE status = 'pending'")
}

// checkDeliveries compares the received deliveries with the tables.
func (r *receiver) checkDeliveries(dir string) {
	r.t.Helper()
	sink.CheckDeliveries(r.t, openTables(r.t, dir), r.Receiver)
}

// path returns a unique URL path.
func path(n int) string { return fmt.Sprintf("/hook/%d", n) }
