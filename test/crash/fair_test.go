package crash_test

import (
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// One workspace has more hanging runs than the process has slots. It leaves some free,
// so the runs of another workspace do not wait for them.
func TestHangingRunsDoNotBlockOtherWorkspaces(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	limit := 224 // seven eighths of 256
	if harness.OnPostgres() {
		limit = 192 // three quarters
	}
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress, longLease)
	other := flow.NewWorkspace(t, s.Client, "free")
	hangs := flow.Define(t, s.Client, flow.HTTP("hangs", target.URL+"/hang?hang", "timeout", "15m"))
	quick := flow.Define(t, other, flow.Set("a", 1))
	for range 300 {
		s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+hangs+"/runs", nil)
	}
	harness.Eventually(t, "the workspace has all slots that it can have", func() bool { return target.InFlight("/hang") == limit })
	for range 3 {
		if end := execute(t, other, quick); end.Status != succeeded {
			t.Errorf("the run of another workspace is %s: %+v", end.Status, end.Error)
		}
	}
	if now, most := target.InFlight("/hang"), target.Peak("/hang"); now != limit || most != limit {
		t.Errorf("%d hanging runs are in flight, at most %d were; want %d", now, most, limit)
	}
	target.Release()
	s.Stop(t)
}
