package webhook_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/webhook"
)

// checkDisabled checks the reason and the single audit entry.
func checkDisabled(t *testing.T, o *fakeOutbox, h *hook, reason string) {
	t.Helper()
	if h.disabled != reason {
		t.Errorf("the webhook is disabled because of %q, want %q", h.disabled, reason)
	}
	if len(o.entries) != 1 {
		t.Fatalf("%d audit entries, want 1", len(o.entries))
	}
	got := o.entries[0]
	want := audit.Entry{WorkspaceID: h.workspace, ActorType: audit.ActorSystem, Action: "webhook.disabled", TargetType: "webhook", TargetID: h.id}
	want.ID, want.At = got.ID, got.At
	if diff := cmp.Diff(want, got); diff != "" || got.ID == "" {
		t.Errorf("audit entry (-want +got):\n%s", diff)
	}
}

// After a 410 nothing more is sent, not even deliveries already in memory.
func TestGoneDisablesTheWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		for range 3 * webhook.Enough {
			o.send(h, "run_1") // one at a time
		}
		sent := 0
		s, stop := launch(t, o, receivers(func(context.Context, egress.Request) (*egress.Response, error) {
			sent++
			return &egress.Response{Status: http.StatusGone}, nil
		}))
		time.Sleep(2 * webhook.Memory)
		synctest.Wait()
		stop()
		if sent != 1 {
			t.Errorf("%d requests, want 1", sent)
		}
		checkDisabled(t, o, h, "the endpoint returned 410 Gone")
		if got := o.statuses(); got[webhook.Dropped] != 3*webhook.Enough {
			t.Errorf("the deliveries are %v, want all dropped", got)
		}
		if got := s.Held(); got != (webhook.Held{}) {
			t.Errorf("in memory is %+v, want nothing", got)
		}
	})
}

// Pending deliveries of a deleted webhook are not sent, not even those already in
// memory.
func TestDeletionStopsDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		for range webhook.Enough {
			o.send(h, "")
		}
		var sent atomic.Int64
		_, stop := launch(t, o, receivers(func(ctx context.Context, r egress.Request) (*egress.Response, error) {
			sent.Add(1)
			return taking(10*time.Second, 200)(ctx, r)
		}))
		time.Sleep(5 * time.Second)
		o.drop(h)
		time.Sleep(time.Hour)
		stop()
		if got := sent.Load(); got != webhook.PerEndpoint {
			t.Errorf("%d requests, want only the %d that were in flight", got, webhook.PerEndpoint)
		}
	})
}

// An endpoint whose attempts all fail for five days is disabled, once.
func TestFiveDaysOfFailuresDisableTheWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		begun := clock.Now()
		var disabledAt time.Time
		s, stop := launch(t, o, always(http.StatusBadGateway))
		for hour := range 24 * 7 {
			if o.reason(h) == "" {
				o.send(h, "")
				s.Wake()
			} else if disabledAt.IsZero() {
				disabledAt = begun.Add(time.Duration(hour) * time.Hour)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
		}
		stop()
		checkDisabled(t, o, h, "all attempts failed for 5 days")
		if after := disabledAt.Sub(begun); after < 5*24*time.Hour || after > 6*24*time.Hour+time.Hour {
			t.Errorf("it was disabled after %v, want 5 to 6 days", after)
		}
		if got := o.statuses(); got[webhook.Pending] != 0 || got[webhook.Dropped] == 0 {
			t.Errorf("the deliveries are %v, want none pending", got)
		}
	})
}

// A few failures over several days do not disable a webhook, and one success resets
// the count.
func TestFewFailuresDoNotDisable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := clock.Now()
		good := begun.Add(4 * 24 * time.Hour)
		o := newOutbox()
		h, once := o.hook("ws_1", "wh_1", "https://one.example/hook"), o.hook("ws_1", "wh_2", "https://two.example/hook")
		o.send(once, "")
		var failures atomic.Int64
		s, stop := launch(t, o, receivers(func(_ context.Context, r egress.Request) (*egress.Response, error) {
			if strings.Contains(r.URL, "one") && !clock.Now().Before(good) && clock.Now().Before(good.Add(24*time.Hour)) {
				return &egress.Response{Status: 200}, nil
			}
			failures.Add(1)
			return &egress.Response{Status: 500}, nil
		}))
		for range 24 * 8 { // four days of failures, one of successes, three of failures
			o.send(h, "")
			s.Wake()
			time.Sleep(time.Hour)
		}
		stop()
		if h.disabled != "" || once.disabled != "" || len(o.entries) != 0 {
			t.Errorf("disabled because of %q and %q", h.disabled, once.disabled)
		}
		if got := failures.Load(); got < 40 {
			t.Errorf("only %d failures: too few to mean anything", got)
		}
	})
}

// For a day after a rotation, the header that can hold two signatures has both. The
// other header immediately has the one of the new secret.
func TestRotationSignsWithBothSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const before, after = testSecret, "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		var last egress.Request
		var at time.Time
		s, stop := launch(t, o, receivers(func(_ context.Context, r egress.Request) (*egress.Response, error) {
			last, at = r, clock.Now()
			return &egress.Response{Status: 200}, nil
		}))
		check := func(when string, service string, standard ...string) {
			t.Helper()
			d := o.send(h, "")
			s.Wake()
			synctest.Wait()
			if got, want := last.Header.Get("X-Service-Signature"), webhook.SignService(service, d.event.Body); got != want {
				t.Errorf("%s X-Service-Signature is %s, want %s", when, got, want)
			}
			var want []string
			for _, secret := range standard {
				want = append(want, webhook.SignStandard(secret, d.event.ID, at, d.event.Body))
			}
			if got := last.Header.Get("Webhook-Signature"); got != strings.Join(want, " ") {
				t.Errorf("%s webhook-signature is %s, want %s", when, got, want)
			}
		}
		check("before", before, before)
		until := clock.Now().Add(24 * time.Hour)
		o.mu.Lock()
		h.secret, h.oldSecret, h.oldUntil = after, before, &until
		o.mu.Unlock()
		check("at once", after, after, before)
		time.Sleep(24*time.Hour - time.Millisecond)
		check("until the last moment", after, after, before)
		time.Sleep(time.Millisecond)
		check("after a day", after, after)
		stop()
	})
}
