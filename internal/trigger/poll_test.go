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
	"github.com/stepmill/stepmill/internal/workflow"
)

// outside is the server that polls ask.
type outside struct {
	mu    sync.Mutex
	asked []egress.Request
	at    []time.Time
	// answer says what a request is answered with.
	answer func(ctx context.Context, r egress.Request) (status int, body string, err error)
}

func (o *outside) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	o.mu.Lock()
	o.asked, o.at = append(o.asked, r), append(o.at, time.Now())
	answer := o.answer
	o.mu.Unlock()
	status, body, err := answer(ctx, r)
	if err != nil {
		return nil, err
	}
	return &egress.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
}

// says makes the server answer the same from now on.
func (o *outside) says(status int, body string) {
	o.does(func(context.Context, egress.Request) (int, string, error) { return status, body, nil })
}

func (o *outside) does(answer func(ctx context.Context, r egress.Request) (int, string, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

// first is the first request.
func (o *outside) first() egress.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[0]
}

// times are when the server was asked, as the time that has passed.
func (o *outside) times() []time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []time.Duration
	for _, at := range o.at {
		out = append(out, at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Round(time.Second))
	}
	return out
}

func (o *outside) urls() []string {
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

// list writes items with the ids of a range.
func listOf(from, to int) string {
	var items []string
	for n := from; n <= to; n++ {
		items = append(items, fmt.Sprintf(`{"id": %d}`, n))
	}
	return `{"items": [` + strings.Join(items, ",") + `]}`
}

// ids are those of the items that the runs of a workflow were started for.
func (w *world) ids(workflowID string) []int {
	w.t.Helper()
	out := []int{}
	for _, r := range w.started(workflowID) {
		var payload struct{ ID int }
		w.must(json.Unmarshal(r.Trigger.Payload, &payload))
		out = append(out, payload.ID)
	}
	slices.Sort(out)
	return out
}

func numbers(from, to int) []int {
	out := []int{}
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// A run for each new item; what is there at first is taken as seen.
func TestPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 3 { // processes
			w.start()
		}
		w.outside.says(200, listOf(1, 3))
		made := w.workflow(workflow.Active, poll(byID))
		time.Sleep(90 * time.Second)
		same(t, "runs", w.ids(made.ID), []int{})
		same(t, "asked", w.outside.times(), []time.Duration{0, time.Minute})

		w.outside.says(200, listOf(2, 5))
		time.Sleep(time.Minute)
		same(t, "runs", w.ids(made.ID), numbers(4, 5))
		first := w.started(made.ID)[0]
		same(t, "trigger", first.Trigger.Type+" "+first.Trigger.ID, "poll p")
		same(t, "version", first.WorkflowVersion, made.Version)

		// What was gone and comes back is not new.
		w.outside.says(200, listOf(1, 6))
		time.Sleep(time.Minute)
		same(t, "runs", w.ids(made.ID), numbers(4, 6))

		// Also not after a restart, in which other items came.
		w.halt()
		w.outside.says(200, listOf(1, 8))
		time.Sleep(time.Hour)
		w.start()
		time.Sleep(90 * time.Second)
		same(t, "runs", w.ids(made.ID), numbers(4, 8))
		kept := w.trigger(made.ID)
		if kept.FiredAt == nil || kept.NextAt == nil || kept.Error != nil || kept.Idle != nil {
			t.Errorf("the trigger is %+v", kept)
		}
		if got, err := w.store.Run(t.Context(), w.actor.Workspace.ID, kept.RunID); err != nil || got == nil {
			t.Errorf("the last run: %v, %v", got, err)
		}
	})
}

// The request goes on where the last answer said.
func TestPollWithACursor(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"alone": "", "and a key": `, "key": "item.id"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start()
				w.outside.says(200, `{"items": [{"id": 1}], "next": "a b"}`)
				made := w.workflow(workflow.Active, poll(`"request": {"url": "https://shop.example/orders", "query": {"since": "${{ cursor }}"}},
					"items": "response.body.items", "cursor": "response.body.next"`+more))
				time.Sleep(30 * time.Second)
				w.outside.says(200, `{"items": [{"id": 2}, {"id": 3}], "next": 17}`)
				time.Sleep(time.Minute)
				w.outside.says(200, `{"items": []}`)
				time.Sleep(time.Minute)
				w.outside.says(200, `{"items": [{"id": 4}], "next": 18}`)
				time.Sleep(time.Minute)
				same(t, "runs", w.ids(made.ID), numbers(2, 4))
				same(t, "asked", w.outside.urls(), []string{
					"https://shop.example/orders", "https://shop.example/orders?since=a+b", "https://shop.example/orders?since=17", "https://shop.example/orders?since=17",
				})
			})
		})
	}
}

// Items that are no objects are wrapped.
func TestPollOfPlainItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.outside.says(200, `["a"]`)
		made := w.workflow(workflow.Active, poll(`"request": {"url": "https://shop.example/tags"}, "items": "response.body", "key": "item"`))
		time.Sleep(30 * time.Second)
		w.outside.says(200, `["b", "a", "b"]`)
		time.Sleep(time.Minute)
		runs := w.started(made.ID)
		if len(runs) != 1 || string(runs[0].Trigger.Payload) != `{"value":"b"}` {
			t.Errorf("runs: %+v", runs)
		}
	})
}

// What goes wrong is told, and tried again later and later.
func TestPollsThatFail(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, members, body string
		status              int
		code, says          string
	}{
		{"a bad status", byID, `{}`, 503, "http_error", "https://shop.example/orders answered 503"},
		{"no list", byID, `{"items": 7}`, 200, trigger.CodeExpression, "items: "},
		{"no key", byID, `{"items": [{"id": 1}, {"name": "x"}]}`, 200, trigger.CodeExpression, "key: item 1 has none"},
		{"a key that fails", strings.Replace(byID, "item.id", "item.id + 1", 1), `{"items": [{"id": "x"}]}`, 200, trigger.CodeExpression, "key: "},
		{"too many items", byID, listOf(1, 10_001), 200, trigger.CodeItems, "10001 items"},
		{"a request that does not fit", `"request": {"url": "https://shop.example", "method": "${{ 1 + 1 }}"}, "items": "response.body", "key": "item"`, `[]`, 200, "invalid_input", "request/method"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.outside.says(200, `{"items": []}`)
				made := w.workflow(workflow.Active, poll(tc.members))
				w.start()
				if tc.code == "http_error" || tc.code == trigger.CodeItems { // it worked once
					time.Sleep(30 * time.Second)
				}
				w.outside.says(tc.status, tc.body)
				time.Sleep(2 * time.Hour)
				kept := w.trigger(made.ID)
				if kept.Error == nil || kept.Error.Code != tc.code || !strings.Contains(kept.Error.Message, tc.says) {
					t.Fatalf("it says %+v, want %s: %s", kept.Error, tc.code, tc.says)
				}
				if wait := time.Until(*kept.NextAt); wait > time.Hour || kept.Failures < 7 || kept.Failures > 9 {
					t.Errorf("after %d failures it asks again in %s", kept.Failures, wait)
				}
				same(t, "runs", len(w.started(made.ID)), 0)
				w.outside.says(200, `{"items": []}`)
				if tc.code == "invalid_input" {
					return
				}
				time.Sleep(2 * time.Hour)
				same(t, "failures", w.trigger(made.ID).Failures, 0)
				time.Sleep(time.Until(*w.trigger(made.ID).NextAt) + 30*time.Second) // to between two of them
				before := len(w.outside.times())
				time.Sleep(10 * time.Minute)
				same(t, "asked in ten minutes", len(w.outside.times())-before, 10)
			})
		})
	}
}

// A server that does not answer holds up nobody else.
func TestAPollThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.outside.does(func(ctx context.Context, r egress.Request) (int, string, error) {
			if strings.Contains(r.URL, "slow") {
				<-ctx.Done()
				return 0, "", &egress.Error{Code: "timed_out", Message: "it took too long", Retryable: true}
			}
			return 200, `{"items": []}`, nil
		})
		slow := w.workflow(workflow.Active, poll(strings.Replace(byID, "orders", "slow", 1)))
		w.workflow(workflow.Active, poll(byID))
		time.Sleep(5*time.Minute + time.Second)
		kept := w.trigger(slow.ID)
		if kept.Error == nil || kept.Error.Code != "timed_out" {
			t.Errorf("it says %+v", kept.Error)
		}
		quick := 0
		for _, url := range w.outside.urls() {
			if strings.HasSuffix(url, "orders") {
				quick++
			}
		}
		same(t, "others asked", quick, 6)
	})
}

func TestSecretsOfAPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const value = "s3cret/value+1"
		w := newWorld(t)
		_, _, err := w.values.PutSecret(t.Context(), w.actor, "token", value)
		w.must(err)
		w.start()
		w.outside.says(200, `{"items": []}`)
		made := w.workflow(workflow.Active, poll(`"request": {"url": "https://shop.example/${{ secrets.token }}", "headers": {"authorization": "Bearer ${{ secrets.token }}"}},
			"items": "response.body.items", "key": "item.id"`))
		time.Sleep(30 * time.Second)
		same(t, "header", w.outside.first().Header.Get("Authorization"), "Bearer "+value)
		w.outside.says(200, `{"items": [{"id": 1, "echo": "`+value+`"}]}`)
		time.Sleep(time.Minute)
		if payload := string(w.started(made.ID)[0].Trigger.Payload); strings.Contains(payload, value) || !strings.Contains(payload, "***") {
			t.Errorf("the payload is %s", payload)
		}
		w.outside.says(500, "")
		time.Sleep(time.Minute)
		kept := w.trigger(made.ID)
		if kept.Error == nil || strings.Contains(kept.Error.Message, "s3cret") || !strings.Contains(kept.Error.Message, "***") {
			t.Errorf("it says %+v", kept.Error)
		}
		w.must(w.values.DeleteSecret(t.Context(), w.actor, "token"))
		time.Sleep(5 * time.Minute)
		if kept := w.trigger(made.ID); kept.Error == nil || kept.Error.Code != run.CodeSecretMissing {
			t.Errorf("it says %+v", kept.Error)
		}
	})
}

// Items are not lost when there is no room for their runs, and told when the
// settings refuse them.
func TestItemsThatStartNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.outside.says(200, listOf(1, 1))
		made := w.workflow(workflow.Active, poll(byID))
		single := w.workflow(workflow.Active, poll(byID), `{"concurrency": {"on_limit": "drop", "limit": 2}}`)
		time.Sleep(30 * time.Second)

		w.full.Store(true)
		w.outside.says(200, listOf(1, 5))
		time.Sleep(10 * time.Minute)
		kept := w.trigger(made.ID)
		if kept.Idle == nil || kept.Idle.Code != "run_queue_full" {
			t.Errorf("it says %+v", kept.Idle)
		}
		same(t, "runs", len(w.started(made.ID)), 0)
		w.full.Store(false)
		time.Sleep(2 * time.Minute)
		same(t, "runs", w.ids(made.ID), numbers(2, 5))

		same(t, "runs", len(w.ids(single.ID)), 2)
		kept = w.trigger(single.ID)
		if kept.Idle == nil || kept.Idle.Code != "concurrency_limit" || !strings.HasPrefix(kept.Idle.Message, "2 of 4 items started nothing") {
			t.Errorf("it says %+v", kept.Idle)
		}
		same(t, "last run", kept.RunID, w.started(single.ID)[1].ID)
		w.outside.says(200, listOf(1, 6))
		time.Sleep(time.Minute)
		kept = w.trigger(single.ID)
		if kept.Idle == nil || kept.Idle.Code != "concurrency_limit" || len(w.ids(single.ID)) != 2 {
			t.Errorf("it says %+v", kept.Idle)
		}
		same(t, "runs", w.ids(made.ID), numbers(2, 6))
	})
}

// shaky starts batches and loses some of the answers.
type shaky struct {
	trigger.Batches
	calls atomic.Int64
}

func (s *shaky) FireAll(ctx context.Context, b run.Batch) ([]string, error) {
	n := s.calls.Add(1)
	if n%3 == 0 {
		return nil, errors.New("the disk is gone")
	}
	started, err := s.Batches.FireAll(ctx, b)
	if n%3 == 1 {
		err = errors.Join(err, errors.New("the answer was lost"))
	}
	return started, err
}

// Many new items start their runs in parts, each once, whatever fails.
func TestManyItems(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]string{
		"by key": byID,
		"by cursor": `"request": {"url": "https://shop.example/orders?since=${{ cursor ?? 0 }}"}, "items": "response.body.items",
			"cursor": "response.body.items[-1].id"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.outside.says(200, listOf(1, 1))
				made := w.workflow(workflow.Active, poll(members))
				runs := &shaky{Batches: w.runs}
				ctx, stop := context.WithCancel(t.Context())
				var done sync.WaitGroup
				p := trigger.NewPoller(w.store, w.plans, runs, w.values, w.catalog, slog.New(slog.DiscardHandler))
				done.Go(func() { _ = p.Run(ctx) })
				time.Sleep(30 * time.Second)
				w.outside.does(func(_ context.Context, r egress.Request) (int, string, error) {
					since := 0
					if _, text, found := strings.Cut(r.URL, "since="); found {
						_, _ = fmt.Sscan(text, &since)
					}
					return 200, listOf(since+1, 251), nil
				})
				time.Sleep(2 * time.Hour)
				same(t, "runs", w.ids(made.ID), numbers(2, 251))
				stop()
				done.Wait()
			})
		})
	}
}

func TestEditsOfAPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.outside.says(200, listOf(1, 3))
		made := w.workflow(workflow.Active, poll(byID))
		time.Sleep(30 * time.Second)

		// Another interval: what was seen stays seen.
		w.outside.says(200, listOf(1, 4))
		w.update(made.ID, w.patch(strings.Replace(poll(byID), "1m", "2m", 1)))
		time.Sleep(3 * time.Minute)
		same(t, "runs", w.ids(made.ID), numbers(4, 4))

		// Another question: its first answer is taken as seen.
		w.outside.says(200, listOf(1, 9))
		w.update(made.ID, w.patch(poll(strings.Replace(byID, "orders", "parcels", 1))))
		time.Sleep(3 * time.Minute)
		same(t, "runs", w.ids(made.ID), numbers(4, 4))

		// After a pause as well.
		time.Sleep(10 * time.Second) // not while it asks
		w.setState(made.ID, workflow.Paused)
		asked := len(w.outside.times())
		time.Sleep(time.Hour)
		same(t, "asked during the pause", len(w.outside.times()), asked)
		w.outside.says(200, listOf(1, 12))
		w.setState(made.ID, workflow.Active)
		time.Sleep(3 * time.Minute)
		same(t, "runs", w.ids(made.ID), numbers(4, 4))
		w.outside.says(200, listOf(1, 13))
		time.Sleep(2 * time.Minute)
		same(t, "runs", w.ids(made.ID), []int{4, 13})
	})
}

// A stop does not lose a poll: the next process asks at once.
func TestAPollThatIsCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.outside.says(200, listOf(1, 1))
		made := w.workflow(workflow.Active, poll(byID))
		w.start()
		time.Sleep(30 * time.Second)
		w.outside.does(func(ctx context.Context, _ egress.Request) (int, string, error) {
			<-ctx.Done()
			return 0, "", &egress.Error{Code: "timed_out", Message: "gone"}
		})
		time.Sleep(40 * time.Second)
		w.halt()
		w.outside.says(200, listOf(1, 2))
		w.start()
		time.Sleep(time.Second)
		same(t, "runs", w.ids(made.ID), numbers(2, 2))
		if kept := w.trigger(made.ID); kept.Error != nil {
			t.Errorf("it says %+v", kept.Error)
		}
	})
}
