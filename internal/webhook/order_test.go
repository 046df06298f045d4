package webhook_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/test/lane"
)

// ledger is a client that records when each request began and ended, and how many
// were in flight.
type ledger struct {
	mu      sync.Mutex
	next    func(r egress.Request) (time.Duration, int) // how long, and the status
	calls   map[string][]call                           // by the ids of deliveries
	flying  map[string]int                              // by URL
	total   int
	most    int // of all
	mostOne int // of one URL
	bodies  map[string]string
	changed bool // a delivery was sent with two bodies
}

type call struct{ begun, ended time.Time }

func newLedger(next func(r egress.Request) (time.Duration, int)) *ledger {
	return &ledger{next: next, calls: map[string][]call{}, flying: map[string]int{}, bodies: map[string]string{}}
}

func (l *ledger) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	id := r.Header.Get("X-Service-Delivery")
	l.mu.Lock()
	length, status := l.next(r)
	begun := clock.Now()
	l.total++
	l.flying[r.URL]++
	l.most, l.mostOne = max(l.most, l.total), max(l.mostOne, l.flying[r.URL])
	if was, again := l.bodies[id]; again && was != string(r.Body) {
		l.changed = true
	}
	l.bodies[id] = string(r.Body)
	l.mu.Unlock()
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	l.flying[r.URL]--
	l.calls[id] = append(l.calls[id], call{begun, clock.Now()})
	if ctx.Err() != nil {
		return nil, &egress.Error{Code: egress.Cancelled, Message: "cancelled"}
	}
	return &egress.Response{Status: status}, nil
}

// inversions returns the first attempts that did not wait for the previous one to
// end.
func (l *ledger) inversions(o *fakeOutbox) []string {
	var out []string
	last := map[[2]string]time.Time{}
	for _, d := range o.deliveries {
		calls := l.calls[d.DeliveryID]
		if d.RunID == "" || len(calls) == 0 {
			continue
		}
		key := [2]string{d.WebhookID, d.RunID}
		if calls[0].begun.Before(last[key]) {
			out = append(out, d.DeliveryID)
		}
		last[key] = calls[0].ended
	}
	return out
}

// Whatever the latencies and failures, first attempts for one run and one webhook
// keep their order, the limits hold, every delivery finishes, and nothing is left in
// memory.
func TestFirstAttemptsKeepTheirOrder(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		hooks := rapid.IntRange(1, lane.Pick(10, 30)).Draw(rt, "webhooks")
		runs := rapid.IntRange(1, 20).Draw(rt, "runs")
		events := rapid.IntRange(1, lane.Pick(100, 300)).Draw(rt, "events")
		failing := rapid.SampledFrom([]float64{0, 0.05, 0.5, 0.95}).Draw(rt, "failing")
		slowest := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 15 * time.Second}).Draw(rt, "slowest")
		hosts := rapid.IntRange(1, 5).Draw(rt, "hosts")
		synctest.Test(t, func(t *testing.T) {
			random, luck := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
			o := newOutbox()
			l := newLedger(func(egress.Request) (time.Duration, int) {
				status := 200
				if luck.Float64() < failing {
					status = 500
				}
				return time.Duration(luck.Int64N(int64(slowest))), status
			})
			s, stop := launch(t, o, l)
			var all []*hook
			for i := range hooks {
				all = append(all, o.hook("ws_1", fmt.Sprintf("wh_%d", i), fmt.Sprintf("https://host%d.example/%d", i%hosts, i)))
			}
			for range events {
				run := ""
				if random.IntN(4) > 0 {
					run = fmt.Sprintf("run_%d", random.IntN(runs))
				}
				o.send(all[random.IntN(hooks)], run)
				s.Wake()
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
				}
			}
			for days := 0; o.statuses()[webhook.Pending] > 0 && days < 60; days++ {
				time.Sleep(24 * time.Hour)
			}
			time.Sleep(24*time.Hour + 2*webhook.Memory) // the longest that an endpoint is left alone
			synctest.Wait()
			stop()
			checkEnded(t, o, l)
			if got := l.inversions(o); len(got) > 0 {
				t.Errorf("first attempts out of order: %v", got)
			}
			if got := s.Held(); got != (webhook.Held{}) {
				t.Errorf("in memory is %+v, want nothing", got)
			}
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// checkEnded compares what was sent with what was recorded: nothing is lost, and
// nothing is sent without being recorded.
func checkEnded(t *testing.T, o *fakeOutbox, l *ledger) {
	t.Helper()
	for _, d := range o.deliveries {
		if d.status == webhook.Pending {
			t.Errorf("%s is still pending after %d attempts", d.DeliveryID, len(d.attempts))
		}
		// A delivery in flight when its webhook was disabled was sent but not recorded.
		if sent := len(l.calls[d.DeliveryID]); sent != len(d.attempts) && d.status != webhook.Dropped {
			t.Errorf("%s was sent %d times, recorded are %d attempts", d.DeliveryID, sent, len(d.attempts))
		}
		if n := len(d.attempts); d.status == webhook.Delivered && (n == 0 || d.attempts[n-1].Status != 200) ||
			d.status == webhook.Exhausted && n != webhook.MaxAttempts || n > webhook.MaxAttempts {
			t.Errorf("%s is %s after %d attempts", d.DeliveryID, d.status, n)
		}
	}
	if l.most > webhook.PerNode || l.mostOne > webhook.PerEndpoint {
		t.Errorf("%d requests in flight, %d to one endpoint", l.most, l.mostOne)
	}
	if l.changed {
		t.Error("a delivery was sent with another body than before")
	}
}

// A temporary failure of the outbox loses and duplicates nothing.
func TestOutboxFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		h := o.hook("ws_1", "wh_1", "https://one.example/hook")
		l := newLedger(func(egress.Request) (time.Duration, int) { return time.Second, 200 })
		for range 40 {
			o.send(h, "")
		}
		s, stop := launch(t, o, l)
		for _, length := range []time.Duration{1500 * time.Millisecond, 7 * time.Second, time.Minute} {
			o.setBroken(true)
			time.Sleep(length)
			o.setBroken(false)
			time.Sleep(2500 * time.Millisecond)
		}
		time.Sleep(2 * webhook.Memory)
		synctest.Wait()
		stop()
		checkEnded(t, o, l)
		if got := o.statuses(); got[webhook.Delivered] != 40 {
			t.Errorf("the deliveries are %v, want all delivered", got)
		}
		if got := s.Held(); got != (webhook.Held{}) {
			t.Errorf("in memory is %+v, want nothing", got)
		}
	})
}

// A sender that is stopped gives requests in flight some time to finish; the next
// one sends the rest.
func TestShutdownGrace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		length time.Duration
		again  int
	}{{time.Second, 0}, {12 * time.Second, webhook.PerEndpoint}} {
		t.Run(test.length.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox()
				h := o.hook("ws_1", "wh_1", "https://one.example/hook")
				for range 20 {
					o.send(h, "")
				}
				l := newLedger(func(egress.Request) (time.Duration, int) { return test.length, 200 })
				_, stop := launch(t, o, l)
				time.Sleep(test.length / 2)
				begun := time.Now()
				stop()
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("it took %v to stop", took)
				}
				_, stop = launch(t, o, l)
				time.Sleep(5 * time.Minute)
				stop()
				if got := o.statuses(); got[webhook.Delivered] != 20 {
					t.Errorf("the deliveries are %v, want all delivered", got)
				}
				twice := 0
				for _, calls := range l.calls {
					twice += len(calls) - 1
				}
				if twice != test.again {
					t.Errorf("%d deliveries were sent twice, want %d", twice, test.again)
				}
			})
		})
	}
}

func (o *fakeOutbox) setBroken(broken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = broken
}

// p99 returns the 99th percentile of the time from due to sent.
func p99(deliveries []*delivery, l *ledger) time.Duration {
	var waits []time.Duration
	for _, d := range deliveries {
		if calls := l.calls[d.DeliveryID]; len(calls) > 0 {
			waits = append(waits, calls[0].ended.Sub(d.event.At))
		} else {
			waits = append(waits, 1<<62)
		}
	}
	slices.Sort(waits)
	return waits[len(waits)*99/100]
}
