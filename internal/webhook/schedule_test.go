package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/test/lane"
)

// planned is the documented delay after each failed attempt.
var planned = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

func TestNextDelay(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(planned, webhook.Delays); diff != "" {
		t.Fatalf("the schedule (-want +got):\n%s", diff)
	}
	lane.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(-1, 20).Draw(t, "attempt")
		overloaded := rapid.Bool().Draw(t, "overloaded")
		asked := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "asked"))
		if rapid.Bool().Draw(t, "nothing asked") {
			asked = 0
		}
		delay, again := webhook.NextDelay(attempt, overloaded, asked)
		if want := attempt >= 1 && attempt <= len(planned); again != want {
			t.Fatalf("there is another attempt: %t, want %t", again, want)
		}
		if !again {
			return
		}
		base := planned[attempt-1]
		least, most := base*8/10, base*12/10
		if asked > 0 {
			least = min(max(asked, base), 2*base)
			most = least
		}
		if overloaded && most < 72*time.Second {
			least, most = max(least, time.Minute), 72*time.Second
		}
		if delay < least || delay > most {
			t.Fatalf("the delay is %v, want %v to %v", delay, least, most)
		}
	})
}

// An endpoint that is down gets ten attempts over about 75 hours.
func TestRetrySchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		d := o.send(o.hook("ws_1", "wh_1", "https://one.example/hook"), "run_1")
		s, stop := launch(t, o, always(http.StatusInternalServerError))
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		stop()
		if d.status != webhook.Exhausted || d.nextAt != nil || len(d.attempts) != 10 {
			t.Fatalf("the delivery is %s after %d attempts, want exhausted after 10", d.status, len(d.attempts))
		}
		checkSchedule(t, d)
		if total := d.attempts[9].At.Sub(d.attempts[0].At); total < 60*time.Hour || total > 91*time.Hour {
			t.Errorf("all attempts took %v, want about 75 h", total)
		}
		if got := s.Held(); got != (webhook.Held{}) {
			t.Errorf("in memory is %+v, want nothing", got)
		}
	})
}

// checkSchedule compares the times of the attempts with the documented schedule.
func checkSchedule(t *testing.T, d *delivery) {
	t.Helper()
	for i, a := range d.attempts {
		if a.Number != i+1 {
			t.Errorf("attempt %d has the number %d", i+1, a.Number)
		}
		if i == 0 {
			continue
		}
		gap, base := a.At.Sub(d.attempts[i-1].At), planned[i-1]
		if gap < base*8/10-time.Millisecond || gap > base*12/10+time.Millisecond {
			t.Errorf("attempt %d came %v after the one before, want %v ± 20 %%", i+1, gap, base)
		}
	}
}

// A receiver that is down for three days gets what it missed, with the same bytes as
// in the first attempt.
func TestDownForThreeDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := clock.Now().Add(72 * time.Hour)
		o := newOutbox()
		d := o.send(o.hook("ws_1", "wh_1", "https://one.example/hook"), "run_1")
		seen := map[string]int{}
		_, stop := launch(t, o, receivers(func(_ context.Context, r egress.Request) (*egress.Response, error) {
			seen[r.Header.Get("Webhook-Id")+" "+r.Header.Get("X-Service-Delivery")+" "+string(r.Body)]++
			if clock.Now().Before(up) {
				return nil, &egress.Error{Code: egress.ConnectionFailed, Message: "connection refused"}
			}
			return &egress.Response{Status: http.StatusNoContent}, nil
		}))
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		stop()
		// Depending on the jitter, the last attempt may come before the receiver is up.
		late := !d.attempts[len(d.attempts)-1].At.Before(up)
		if want := map[bool]webhook.Status{true: webhook.Delivered, false: webhook.Exhausted}[late]; d.status != want {
			t.Errorf("the delivery is %s, want %s", d.status, want)
		}
		checkSchedule(t, d)
		if diff := cmp.Diff(map[string]int{d.event.ID + " " + d.DeliveryID + " " + string(d.event.Body): len(d.attempts)}, seen); diff != "" {
			t.Errorf("what was sent (-want +got):\n%s", diff)
		}
	})
}

// The response of an endpoint decides when it is tried again.
func TestResponseDecidesTheDelay(t *testing.T) {
	t.Parallel()
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	timedOut := &egress.Error{Code: egress.TimedOut, Message: "it did not answer in time"}
	refused := &egress.Error{Code: egress.ConnectionFailed, Message: "connection refused"}
	for _, test := range []struct {
		name        string
		answer      *egress.Response
		err         error
		least, most time.Duration // of the first delay
		says        string
	}{
		{"500", &egress.Response{Status: 500}, nil, 4 * time.Second, 6 * time.Second, "the endpoint returned 500 Internal Server Error"},
		{"302", &egress.Response{Status: 302, Header: header("Location", "/other")}, nil, 4 * time.Second, 6 * time.Second, "the endpoint returned 302 Found"},
		{"304", &egress.Response{Status: 304}, nil, 4 * time.Second, 6 * time.Second, "the endpoint returned 304 Not Modified"},
		{"599", &egress.Response{Status: 599}, nil, 4 * time.Second, 6 * time.Second, "the endpoint returned 599"},
		{"503 in 7 s", &egress.Response{Status: 503, Header: header("Retry-After", "7")}, nil, 7 * time.Second, 7 * time.Second, ""},
		{"503 in 1 s", &egress.Response{Status: 503, Header: header("Retry-After", "1")}, nil, 5 * time.Second, 5 * time.Second, ""},
		{"503 in a year", &egress.Response{Status: 503, Header: header("Retry-After", "31536000")}, nil, 10 * time.Second, 10 * time.Second, ""},
		{"503 in words", &egress.Response{Status: 503, Header: header("Retry-After", "later")}, nil, 4 * time.Second, 6 * time.Second, ""},
		{"429", &egress.Response{Status: 429}, nil, time.Minute, 72 * time.Second, "the endpoint returned 429 Too Many Requests"},
		{"429 in 7 s", &egress.Response{Status: 429, Header: header("Retry-After", "7")}, nil, time.Minute, 72 * time.Second, ""},
		{"time-out", nil, timedOut, time.Minute, 72 * time.Second, "it did not answer in time"},
		{"refused", nil, refused, 4 * time.Second, 6 * time.Second, "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox()
				d := o.send(o.hook("ws_1", "wh_1", "https://one.example/hook"), "run_1")
				sent := 0
				_, stop := launch(t, o, receivers(func(context.Context, egress.Request) (*egress.Response, error) {
					if sent++; sent > 1 {
						return &egress.Response{Status: 204}, nil
					}
					return test.answer, test.err
				}))
				time.Sleep(time.Hour)
				synctest.Wait()
				stop()
				if d.status != webhook.Delivered || len(d.attempts) != 2 {
					t.Fatalf("the delivery is %s after %d attempts, want delivered after 2", d.status, len(d.attempts))
				}
				if got := d.attempts[1].At.Sub(d.attempts[0].At); got < test.least || got > test.most+time.Millisecond {
					t.Errorf("the second attempt came after %v, want %v to %v", got, test.least, test.most)
				}
				if !strings.HasPrefix(d.attempts[0].Error, test.says) || d.attempts[0].Error == "" {
					t.Errorf("the first attempt says %q, want %q", d.attempts[0].Error, test.says)
				}
				if last := d.attempts[1]; last.Status != 204 || last.Error != "" {
					t.Errorf("the second attempt is %+v", last)
				}
			})
		})
	}
}

func TestEvery2xxIsASuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 204, 299} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox()
				d := o.send(o.hook("ws_1", "wh_1", "https://one.example/hook"), "run_1")
				_, stop := launch(t, o, always(status))
				time.Sleep(time.Hour)
				stop()
				if d.status != webhook.Delivered || len(d.attempts) != 1 || d.attempts[0].Status != status {
					t.Errorf("the delivery is %s after %+v", d.status, d.attempts)
				}
			})
		})
	}
}
