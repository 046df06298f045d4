package trigger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"log/slog"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	polling "github.com/stepmill/stepmill/internal/trigger/poll"
	"github.com/stepmill/stepmill/internal/workflow"
)

// fakeAPI is the server that polls call.
type fakeAPI struct {
	mu    sync.Mutex
	asked []egress.Request
	at    []time.Time
	// handler returns the response to a request.
	handler func(ctx context.Context, r egress.Request) (status int, body string, err error)
}

func (o *fakeAPI) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	o.mu.Lock()
	o.asked, o.at = append(o.asked, r), append(o.at, time.Now())
	handler := o.handler
	o.mu.Unlock()
	status, body, err := handler(ctx, r)
	if err != nil {
		return nil, err
	}
	return &egress.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
}

func (o *fakeAPI) Stream(context.Context, egress.Request) (*egress.Stream, error) {
	return nil, &egress.Error{Code: egress.InvalidRequest, Message: "polls do not stream"}
}

// respond sets the response to all following requests.
func (o *fakeAPI) respond(status int, body string) {
	o.handle(func(context.Context, egress.Request) (int, string, error) { return status, body, nil })
}

func (o *fakeAPI) handle(handler func(ctx context.Context, r egress.Request) (int, string, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handler = handler
}

// firstRequest returns the first request.
func (o *fakeAPI) firstRequest() egress.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[0]
}

// requestTimes returns when requests were made, relative to the start.
func (o *fakeAPI) requestTimes() []time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []time.Duration
	for _, at := range o.at {
		out = append(out, at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Round(time.Second))
	}
	return out
}

func (o *fakeAPI) urls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, r := range o.asked {
		out = append(out, r.URL)
	}
	return out
}

func poll(members string) string {
	return `[{"id": "p", "type": "poll", "every": "1m", ` + members + `}]`
}

const byID = `"request": {"url": "https://shop.example/orders"}, "items": "response.body.items", "key": "item.id"`

// itemList returns JSON items with the ids of a range.
func itemList(from, to int) string {
	var items []string
	for n := from; n <= to; n++ {
		items = append(items, fmt.Sprintf(`{"id": %d}`, n))
	}
	return `{"items": [` + strings.Join(items, ",") + `]}`
}

// startedItems returns the ids of the items that started runs.
func (w *testEnv) startedItems(workflowID string) []int {
	w.t.Helper()
	out := []int{}
	for _, r := range w.startedRuns(workflowID) {
		var payload struct{ ID int }
		w.must(json.Unmarshal(r.Trigger.Payload, &payload))
		out = append(out, payload.ID)
	}
	slices.Sort(out)
	return out
}

func intRange(from, to int) []int {
	out := []int{}
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// Each new item starts a run; the items of the first response count as seen.
func TestPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		for range 3 { // nodes
			w.startNode()
		}
		w.api.respond(200, itemList(1, 3))
		made := w.workflow(workflow.Active, poll(byID))
		time.Sleep(90 * time.Second)
		wantEqual(t, "runs", w.startedItems(made.ID), []int{})
		wantEqual(t, "asked", w.api.requestTimes(), []time.Duration{0, time.Minute})

		w.api.respond(200, itemList(2, 5))
		time.Sleep(time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 5))
		first := w.startedRuns(made.ID)[0]
		wantEqual(t, "trigger", first.Trigger.Type+" "+first.Trigger.ID, "poll p")
		wantEqual(t, "version", first.WorkflowVersion, made.Version)

		// An item that disappears and comes back is not new.
		w.api.respond(200, itemList(1, 6))
		time.Sleep(time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 6))

		// Not even after a restart, during which other items appeared.
		w.stopNodes()
		w.api.respond(200, itemList(1, 8))
		time.Sleep(time.Hour)
		w.startNode()
		time.Sleep(90 * time.Second)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 8))
		stored := w.trigger(made.ID)
		if stored.FiredAt == nil || stored.NextAt == nil || stored.Error != nil || stored.NotFired != nil {
			t.Errorf("the trigger is %+v", stored)
		}
		if got, err := w.store.Runs.Run(t.Context(), w.actor.Workspace.ID, stored.RunID); err != nil || got == nil {
			t.Errorf("the last run: %v, %v", got, err)
		}
	})
}

// The request continues from the last cursor.
func TestPollCursor(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"alone": "", "and a key": `, "key": "item.id"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t)
				w.startNode()
				w.api.respond(200, `{"items": [{"id": 1}], "next": "a b"}`)
				made := w.workflow(workflow.Active, poll(`"request": {"url": "https://shop.example/orders", "query": {"since": "${{ cursor }}"}},
					"items": "response.body.items", "cursor": "response.body.next"`+more))
				time.Sleep(30 * time.Second)
				w.api.respond(200, `{"items": [{"id": 2}, {"id": 3}], "next": 17}`)
				time.Sleep(time.Minute)
				w.api.respond(200, `{"items": []}`)
				time.Sleep(time.Minute)
				w.api.respond(200, `{"items": [{"id": 4}], "next": 18}`)
				time.Sleep(time.Minute)
				wantEqual(t, "runs", w.startedItems(made.ID), intRange(2, 4))
				wantEqual(t, "asked", w.api.urls(), []string{
					"https://shop.example/orders", "https://shop.example/orders?since=a+b", "https://shop.example/orders?since=17", "https://shop.example/orders?since=17",
				})
			})
		})
	}
}

// Items that are not objects are wrapped.
// A poll reads all pages before it compares the items.
func TestPollPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		w.api.respond(200, `{"items": []}`)
		made := w.workflow(workflow.Active, poll(`"items": "response.items", "key": "item.id", "request": {
			"url": "https://shop.example/orders", "paginate": {"style": "page", "items": "body.items"}}`))
		time.Sleep(30 * time.Second)
		w.api.handle(func(_ context.Context, r egress.Request) (int, string, error) {
			body, ok := map[string]string{"page=1": itemList(1, 2), "page=2": itemList(3, 4)}[strings.TrimPrefix(r.URL, "https://shop.example/orders?")]
			if !ok {
				body = `{"items": []}`
			}
			return 200, body, nil
		})
		time.Sleep(time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(1, 4))
		wantEqual(t, "asked", w.api.urls()[1:], []string{
			"https://shop.example/orders?page=1", "https://shop.example/orders?page=2", "https://shop.example/orders?page=3",
		})
	})
}

func TestPollWrapsPlainItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		w.api.respond(200, `["a"]`)
		made := w.workflow(workflow.Active, poll(`"request": {"url": "https://shop.example/tags"}, "items": "response.body", "key": "item"`))
		time.Sleep(30 * time.Second)
		w.api.respond(200, `["b", "a", "b"]`)
		time.Sleep(time.Minute)
		runs := w.startedRuns(made.ID)
		if len(runs) != 1 || string(runs[0].Trigger.Payload) != `{"value":"b"}` {
			t.Errorf("runs: %+v", runs)
		}
	})
}

// Failures are recorded and retried with backoff.
func TestPollFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, members, body string
		status              int
		code, says          string
	}{
		{"a bad status", byID, `{}`, 503, "http_error", "https://shop.example/orders returned 503"},
		{"no list", byID, `{"items": 7}`, 200, polling.CodeExpression, "items: "},
		{"no key", byID, `{"items": [{"id": 1}, {"name": "x"}]}`, 200, polling.CodeExpression, "key: item 1 has no key"},
		{"a key that fails", strings.Replace(byID, "item.id", "item.id + 1", 1), `{"items": [{"id": "x"}]}`, 200, polling.CodeExpression, "key: "},
		{"too many items", byID, itemList(1, 10_001), 200, polling.CodeTooManyItems, "10001 items"},
		{"a request that does not fit", `"request": {"url": "https://shop.example", "method": "${{ 1 + 1 }}"}, "items": "response.body", "key": "item"`, `[]`, 200, "invalid_input", "request/method"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t)
				w.api.respond(200, `{"items": []}`)
				made := w.workflow(workflow.Active, poll(tc.members))
				w.startNode()
				if tc.code == "http_error" || tc.code == polling.CodeTooManyItems { // a successful poll first
					time.Sleep(30 * time.Second)
				}
				w.api.respond(tc.status, tc.body)
				time.Sleep(2 * time.Hour)
				stored := w.trigger(made.ID)
				if stored.Error == nil || stored.Error.Code != tc.code || !strings.Contains(stored.Error.Message, tc.says) {
					t.Fatalf("it says %+v, want %s: %s", stored.Error, tc.code, tc.says)
				}
				if wait := time.Until(*stored.NextAt); wait > time.Hour || stored.Failures < 7 || stored.Failures > 9 {
					t.Errorf("after %d failures it asks again in %s", stored.Failures, wait)
				}
				wantEqual(t, "runs", len(w.startedRuns(made.ID)), 0)
				w.api.respond(200, `{"items": []}`)
				if tc.code == "invalid_input" {
					return
				}
				time.Sleep(2 * time.Hour)
				wantEqual(t, "failures", w.trigger(made.ID).Failures, 0)
				time.Sleep(time.Until(*w.trigger(made.ID).NextAt) + 30*time.Second) // move between two polls
				before := len(w.api.requestTimes())
				time.Sleep(10 * time.Minute)
				wantEqual(t, "asked in ten minutes", len(w.api.requestTimes())-before, 10)
			})
		})
	}
}

// A server that does not respond delays no other poll.
func TestHangingPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		w.api.handle(func(ctx context.Context, r egress.Request) (int, string, error) {
			if strings.Contains(r.URL, "slow") {
				<-ctx.Done()
				return 0, "", &egress.Error{Code: "timed_out", Message: "it took too long", Retryable: true}
			}
			return 200, `{"items": []}`, nil
		})
		slow := w.workflow(workflow.Active, poll(strings.Replace(byID, "orders", "slow", 1)))
		w.workflow(workflow.Active, poll(byID))
		time.Sleep(5*time.Minute + time.Second)
		stored := w.trigger(slow.ID)
		if stored.Error == nil || stored.Error.Code != "timed_out" {
			t.Errorf("it says %+v", stored.Error)
		}
		quick := 0
		for _, url := range w.api.urls() {
			if strings.HasSuffix(url, "orders") {
				quick++
			}
		}
		wantEqual(t, "others asked", quick, 6)
	})
}

func TestPollSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const value = "s3cret/value+1"
		w := newTestEnv(t)
		_, _, err := w.values.Secrets.Put(t.Context(), w.actor, "token", value)
		w.must(err)
		w.startNode()
		w.api.respond(200, `{"items": []}`)
		made := w.workflow(workflow.Active, poll(`"request": {"url": "https://shop.example/${{ secrets.token }}", "headers": {"authorization": "Bearer ${{ secrets.token }}"}},
			"items": "map(response.body.items, {id: #.id, echo: #.echo, letters: split(#.echo, '')})", "key": "item.id"`))
		time.Sleep(30 * time.Second)
		wantEqual(t, "header", w.api.firstRequest().Header.Get("Authorization"), "Bearer "+value)
		w.api.respond(200, `{"items": [{"id": 1, "echo": "`+value+`"}]}`)
		time.Sleep(time.Minute)
		if payload := string(w.startedRuns(made.ID)[0].Trigger.Payload); strings.Contains(payload, value) || strings.Contains(payload, `"s"`) || !strings.Contains(payload, "***") {
			t.Errorf("the payload is %s", payload)
		}
		w.api.respond(500, "")
		time.Sleep(time.Minute)
		stored := w.trigger(made.ID)
		if stored.Error == nil || strings.Contains(stored.Error.Message, "s3cret") || !strings.Contains(stored.Error.Message, "***") {
			t.Errorf("it says %+v", stored.Error)
		}
		w.must(w.values.Secrets.Delete(t.Context(), w.actor, "token"))
		time.Sleep(5 * time.Minute)
		if stored := w.trigger(made.ID); stored.Error == nil || stored.Error.Code != run.CodeSecretMissing {
			t.Errorf("it says %+v", stored.Error)
		}
	})
}

// Items are not lost while the queue is full. If the settings reject their
// runs, that is recorded.
func TestPollItemsNotFired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		w.api.respond(200, itemList(1, 1))
		made := w.workflow(workflow.Active, poll(byID))
		single := w.workflow(workflow.Active, poll(byID), `{"concurrency": {"on_limit": "drop", "limit": 2}}`)
		time.Sleep(30 * time.Second)

		w.queueFull.Store(true)
		w.api.respond(200, itemList(1, 5))
		time.Sleep(10 * time.Minute)
		stored := w.trigger(made.ID)
		if stored.NotFired == nil || stored.NotFired.Code != "run_queue_full" {
			t.Errorf("it says %+v", stored.NotFired)
		}
		wantEqual(t, "runs", len(w.startedRuns(made.ID)), 0)
		w.queueFull.Store(false)
		time.Sleep(2 * time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(2, 5))

		wantEqual(t, "runs", len(w.startedItems(single.ID)), 2)
		stored = w.trigger(single.ID)
		if stored.NotFired == nil || stored.NotFired.Code != "concurrency_limit" || !strings.HasPrefix(stored.NotFired.Message, "2 of 4 items started no run") {
			t.Errorf("it says %+v", stored.NotFired)
		}
		wantEqual(t, "last run", stored.RunID, w.startedRuns(single.ID)[1].ID)
		w.api.respond(200, itemList(1, 6))
		time.Sleep(time.Minute)
		stored = w.trigger(single.ID)
		if stored.NotFired == nil || stored.NotFired.Code != "concurrency_limit" || len(w.startedItems(single.ID)) != 2 {
			t.Errorf("it says %+v", stored.NotFired)
		}
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(2, 6))
	})
}

// flakyBatches starts batches and sometimes loses the result.
type flakyBatches struct {
	*run.Service
	calls atomic.Int64
}

func (s *flakyBatches) FireAll(ctx context.Context, b run.Batch) ([]string, error) {
	n := s.calls.Add(1)
	if n%3 == 0 {
		return nil, errors.New("the disk is gone")
	}
	started, err := s.Service.FireAll(ctx, b)
	if n%3 == 1 {
		err = errors.Join(err, errors.New("the answer was lost"))
	}
	return started, err
}

// Many new items start their runs in chunks, each once, despite failures.
func TestPollChunks(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]string{
		"by key": byID,
		"by cursor": `"request": {"url": "https://shop.example/orders?since=${{ cursor ?? 0 }}"}, "items": "response.body.items",
			"cursor": "response.body.items[-1].id"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t)
				w.api.respond(200, itemList(1, 1))
				made := w.workflow(workflow.Active, poll(members))
				runs := &flakyBatches{Service: w.runs}
				ctx, stop := context.WithCancel(t.Context())
				var done sync.WaitGroup
				p := polling.Type().Firer(trigger.Deps{
					Store: w.store.Triggers, Programs: w.programs, Runs: runs, Values: w.values, Actions: w.catalog, Log: slog.New(slog.DiscardHandler),
				})
				done.Go(func() { _ = p.Run(ctx) })
				time.Sleep(30 * time.Second)
				w.api.handle(func(_ context.Context, r egress.Request) (int, string, error) {
					since := 0
					if _, text, found := strings.Cut(r.URL, "since="); found {
						_, _ = fmt.Sscan(text, &since)
					}
					return 200, itemList(since+1, 251), nil
				})
				time.Sleep(2 * time.Hour)
				wantEqual(t, "runs", w.startedItems(made.ID), intRange(2, 251))
				stop()
				done.Wait()
			})
		})
	}
}

func TestEditPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		w.api.respond(200, itemList(1, 3))
		made := w.workflow(workflow.Active, poll(byID))
		time.Sleep(30 * time.Second)

		// A new interval keeps the seen items.
		w.api.respond(200, itemList(1, 4))
		w.update(made.ID, w.patch(strings.Replace(poll(byID), "1m", "2m", 1)))
		time.Sleep(3 * time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 4))

		// After a new request, the items of its first response count as seen.
		w.api.respond(200, itemList(1, 9))
		w.update(made.ID, w.patch(poll(strings.Replace(byID, "orders", "parcels", 1))))
		time.Sleep(3 * time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 4))

		// The same after a pause.
		time.Sleep(10 * time.Second) // not during a request
		w.setState(made.ID, workflow.Paused)
		polls := len(w.api.requestTimes())
		time.Sleep(time.Hour)
		wantEqual(t, "asked during the pause", len(w.api.requestTimes()), polls)
		w.api.respond(200, itemList(1, 12))
		w.setState(made.ID, workflow.Active)
		time.Sleep(3 * time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 4))
		w.api.respond(200, itemList(1, 13))
		time.Sleep(2 * time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), []int{4, 13})
	})
}

// A shutdown does not lose a poll: the next node polls immediately.
func TestPollInterruptedByShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.api.respond(200, itemList(1, 1))
		made := w.workflow(workflow.Active, poll(byID))
		w.startNode()
		time.Sleep(30 * time.Second)
		w.api.handle(func(ctx context.Context, _ egress.Request) (int, string, error) {
			<-ctx.Done()
			return 0, "", &egress.Error{Code: "timed_out", Message: "gone"}
		})
		time.Sleep(40 * time.Second)
		w.stopNodes()
		w.api.respond(200, itemList(1, 2))
		w.startNode()
		time.Sleep(time.Second)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(2, 2))
		if stored := w.trigger(made.ID); stored.Error != nil {
			t.Errorf("it says %+v", stored.Error)
		}
	})
}
