package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/test/lane"
)

// Endpoints that use their whole timeout do not delay the others.
func TestSlowEndpointsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	for _, tarpits := range []int{1, 40} {
		t.Run(fmt.Sprint(tarpits), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox()
				l := newLedger(func(r egress.Request) (time.Duration, int) {
					if strings.Contains(r.URL, "slow") {
						return 14 * time.Second, 200
					}
					return 20 * time.Millisecond, 200
				})
				var good, slow []*hook
				for i := range tarpits {
					slow = append(slow, o.hook("ws_1", fmt.Sprintf("wh_slow_%d", i), fmt.Sprintf("https://slow%d.example/", i)))
				}
				for i := range 20 {
					good = append(good, o.hook("ws_1", fmt.Sprintf("wh_good_%d", i), fmt.Sprintf("https://good%d.example/", i)))
				}
				s, stop := launch(t, o, l)
				// Let the sender learn which endpoints are slow.
				for _, h := range slow {
					for range 50 {
						o.send(h, "")
					}
				}
				s.Wake()
				time.Sleep(time.Minute)
				var measured []*delivery
				for n := range 300 {
					o.send(slow[n%len(slow)], "")
					for _, h := range good {
						measured = append(measured, o.send(h, fmt.Sprint("run_", n)))
					}
					s.Wake()
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(time.Second)
				stop()
				if got := p99(measured, l); got > 200*time.Millisecond {
					t.Errorf("99 %% of the deliveries to good endpoints took up to %v", got)
				}
			})
		})
	}
}

// After ten consecutive failures an endpoint gets one probe per delay of the
// schedule until one succeeds.
func TestFailingEndpointIsProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		for range 1000 {
			o.send(h, "")
		}
		var mu sync.Mutex
		var sent []time.Time
		var up atomic.Bool
		s, stop := launch(t, o, receivers(func(ctx context.Context, r egress.Request) (*egress.Response, error) {
			mu.Lock()
			sent = append(sent, clock.Now())
			mu.Unlock()
			if !up.Load() {
				return taking(time.Second, 500)(ctx, r)
			}
			return &egress.Response{Status: 200}, nil
		}))
		requests := func() []time.Time {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(sent)
		}
		time.Sleep(20 * time.Hour) // the probes after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h
		synctest.Wait()
		first, until := 0, requests()
		for first < len(until) && until[first].Sub(until[0]) < 4*time.Second {
			first++
		}
		if first < 10 || first > 10+webhook.PerEndpoint-1 {
			t.Fatalf("%d requests before it was paused, want 10 and those in flight", first)
		}
		probes := until[first:]
		if len(probes) != 6 {
			t.Fatalf("%d probes in 20 h, want 6: %v", len(probes), probes)
		}
		for i := range probes[1:] {
			// Measured from the end of a probe, which takes a second.
			if gap := probes[i+1].Sub(probes[i]) - time.Second; gap < planned[i+1] || gap > planned[i+1]+time.Second {
				t.Errorf("probe %d came after %v, want %v", i+2, gap, planned[i+1])
			}
		}
		up.Store(true)
		o.send(h, "")
		s.Wake()
		synctest.Wait()
		if len(requests()) != first+6 {
			t.Error("what is new was sent while the endpoint was left alone")
		}
		time.Sleep(14 * time.Hour) // the next probe is 14 h after the last
		stop()
		if got := o.statuses(); got[webhook.Delivered] != 1001 {
			t.Errorf("the deliveries are %v, want all delivered after a probe succeeded", got)
		}
	})
}

// A success that arrives after the endpoint was paused resumes it immediately.
func TestLateSuccessResumesTheEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		late := o.send(h, "")
		for range 18 { // so few do not tell that the host is sick
			o.send(h, "")
		}
		var sent atomic.Int64
		_, stop := launch(t, o, receivers(func(ctx context.Context, r egress.Request) (*egress.Response, error) {
			if r.Header.Get("X-Service-Delivery") == late.DeliveryID {
				return taking(3*time.Second, 200)(ctx, r)
			}
			if sent.Add(1) <= 10 {
				return &egress.Response{Status: 500}, nil
			}
			return &egress.Response{Status: 200}, nil
		}))
		time.Sleep(3500 * time.Millisecond) // the first probe would be after 5 s
		stop()
		if got := o.statuses(); got[webhook.Delivered] != 9 {
			t.Errorf("the deliveries are %v, want all but 10 delivered", got)
		}
	})
}

// All endpoints of one workspace on a failing host share ten requests per second.
// Other hosts and workspaces are not affected.
func TestFailingHostIsThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		var mu sync.Mutex
		at := map[string][]time.Time{} // by workspace and host
		s, stop := launch(t, o, receivers(func(_ context.Context, r egress.Request) (*egress.Response, error) {
			host, _, _ := strings.Cut(strings.TrimPrefix(r.URL, "https://"), "/")
			mu.Lock()
			at[r.Workspace+" "+host] = append(at[r.Workspace+" "+host], clock.Now())
			mu.Unlock()
			if r.Workspace == "ws_bad" && host == "victim.example" {
				return &egress.Response{Status: http.StatusServiceUnavailable}, nil
			}
			return &egress.Response{Status: 200}, nil
		}))
		var others []*hook
		for i := range 600 {
			o.send(o.hook("ws_bad", fmt.Sprintf("wh_%d", i), fmt.Sprintf("https://victim.example/%d", i)), "")
		}
		others = append(others, o.hook("ws_good", "wh_other_workspace", "https://victim.example/hook"),
			o.hook("ws_bad", "wh_other_host", "https://fine.example/hook"))
		time.Sleep(2 * time.Second)
		var measured []*delivery
		for n := range 300 {
			for _, h := range others {
				measured = append(measured, o.send(h, fmt.Sprint("run_", n)))
			}
			s.Wake()
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		inWindow := 0
		bad := at["ws_bad victim.example"]
		for _, moment := range bad {
			if since := moment.Sub(bad[0]); since >= 2*time.Second && since < 32*time.Second {
				inWindow++
			}
		}
		if inWindow < 270 || inWindow > 330 {
			t.Errorf("%d requests to the failing host in 30 s, want 300 ± 10 %%", inWindow)
		}
		for _, d := range measured {
			if d.status != webhook.Delivered || d.attempts[0].At.Sub(d.event.At) > time.Second {
				t.Fatalf("%s to %s is %s", d.DeliveryID, d.URL, d.status)
			}
		}
	})
}

// A slow endpoint with a long backlog uses little memory and does not block later
// deliveries to others.
func TestBacklogOfASlowEndpoint(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		slow, other := o.hook("ws_1", "wh_slow", "https://slow.example/"), o.hook("ws_1", "wh_other", "https://other.example/")
		for range 100_000 {
			o.send(slow, "")
		}
		behind := o.send(other, "")
		s, stop := launch(t, o, receivers(func(ctx context.Context, r egress.Request) (*egress.Response, error) {
			if strings.Contains(r.URL, "slow") {
				return taking(14*time.Second, 200)(ctx, r)
			}
			return &egress.Response{Status: 200}, nil
		}))
		time.Sleep(time.Second)
		synctest.Wait()
		if o.status(behind) != webhook.Delivered {
			t.Error("the other endpoint waits for the slow one")
		}
		if got := held(s); got.Queued > webhook.Enough || got.Known > webhook.Enough+webhook.PerEndpoint {
			t.Errorf("in memory is %+v", got)
		}
		late := o.send(other, "")
		s.Wake()
		time.Sleep(time.Second)
		synctest.Wait()
		if o.status(late) != webhook.Delivered {
			t.Error("the other endpoint waits for the slow one")
		}
		time.Sleep(10 * time.Minute) // 42 times 4, so its part in memory is used up
		synctest.Wait()
		if got := o.statuses()[webhook.Delivered]; got < 150 || got > 180 {
			t.Errorf("%d were delivered, want about 170", got)
		}
		stop()
		if o.longest > 500 {
			t.Errorf("%d deliveries were read at once", o.longest)
		}
	})
}

// Many endpoints with backlogs do not fill the memory either, and are served
// without a pause.
func TestBacklogsOfManyEndpoints(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	for _, test := range []struct{ hooks, each, seconds int }{
		{1, 1000, 250},   // four at a time
		{120, 150, 282},  // 64 at a time
		{120, 100, 188},  // no more of any than is kept in memory, but more of all
		{1000, 10, 157},  // many with little
		{11_000, 1, 172}, // more than can be kept in memory, with one each
	} {
		t.Run(fmt.Sprintf("%d of %d", test.each, test.hooks), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox()
				for i := range test.hooks {
					h := o.hook("ws_1", fmt.Sprintf("wh_%d", i), fmt.Sprintf("https://host%d.example/", i))
					for range test.each {
						o.send(h, "")
					}
				}
				s, stop := launch(t, o, taking(time.Second, 200))
				time.Sleep(time.Millisecond)
				for range 4 {
					if got := held(s); got.Queued > webhook.MostQueued+500 || got.Flying != min(webhook.PerNode, webhook.PerEndpoint*test.hooks) {
						t.Errorf("in memory is %+v", got)
					}
					time.Sleep(10 * time.Second)
				}
				time.Sleep(time.Duration(test.seconds+test.seconds/8-40) * time.Second) // turns are not exactly fair
				stop()
				if got := o.statuses(); got[webhook.Delivered] != test.hooks*test.each {
					t.Errorf("the deliveries are %v, want all delivered after %d s", got, test.seconds)
				}
			})
		})
	}
}

// A delivery that becomes due while its endpoint has a queue is sent right after it.
func TestDeliveryDuringABacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		for range 10 {
			o.send(h, "")
		}
		s, stop := launch(t, o, taking(time.Second, 200))
		time.Sleep(1500 * time.Millisecond)
		late := o.send(h, "")
		s.Wake()
		time.Sleep(2 * time.Second)
		stop()
		if late.status != webhook.Delivered || late.attempts[0].At.Sub(late.event.At) > time.Second {
			t.Errorf("it is %s: %+v", late.status, late.attempts)
		}
	})
}
