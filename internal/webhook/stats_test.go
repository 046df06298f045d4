package webhook_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/webhook"
)

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		good, bad := o.hook("ws_1", "wh_1", "https://good.example/hook"), o.hook("ws_1", "wh_2", "https://bad.example/hook")
		for range 3 {
			o.send(good, "run_1")
		}
		o.send(bad, "run_1")
		s, stop := launch(t, o, receivers(func(_ context.Context, r egress.Request) (*egress.Response, error) {
			time.Sleep(2 * time.Second)
			if strings.Contains(r.URL, "bad") {
				return nil, &egress.Error{Code: egress.ConnectionFailed, Message: "no connection"}
			}
			return &egress.Response{Status: http.StatusOK, Header: http.Header{}}, nil
		}))
		time.Sleep(time.Second)
		synctest.Wait()
		// Deliveries of one run are sent one after the other.
		if stats := s.Stats(); stats.InFlight != 2 || stats.Queued != 2 || stats.Duration.Total() != 0 {
			t.Errorf("while the first are in flight: %+v", stats)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := map[string]int64{"delivered": 1, "failed": 1, "exhausted": 0}
		if diff := cmp.Diff(want, s.Stats().Attempts); diff != "" {
			t.Errorf("after the first (-want +got):\n%s", diff)
		}
		time.Sleep(30 * 24 * time.Hour)
		synctest.Wait()
		stop()
		stats := s.Stats()
		want = map[string]int64{"delivered": 3, "failed": int64(webhook.MaxAttempts - 1), "exhausted": 1}
		if diff := cmp.Diff(want, stats.Attempts); diff != "" {
			t.Errorf("at the end (-want +got):\n%s", diff)
		}
		if n := uint64(3 + webhook.MaxAttempts); stats.InFlight != 0 || stats.Queued != 0 || stats.Duration.Total() != n || stats.Duration.Sum != 2*float64(n) {
			t.Errorf("at the end: %+v", stats)
		}
	})
}
