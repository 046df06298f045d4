package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

// sharing makes a workflow that asks, with the concurrency given.
func (w *world) sharing(name, concurrency string) {
	w.t.Helper()
	w.workflow(name, askStep)
	w.patch(name, `{"settings": {"concurrency": `+concurrency+`}}`)
}

func (w *world) approve(run string) {
	w.t.Helper()
	w.call("POST", "/v1/runs/$"+run+"/steps/ask/resume", `{"approved": true}`).want(200)
}

// heldBack comes back once a run says that it waits for another one.
func (w *world) heldBack(run, reason string) {
	w.t.Helper()
	wantContains(w.t, w.call("GET", "/v1/runs/$"+run, "").json(),
		fmt.Sprintf(`{"status": "running", "steps": [], "waiting_for": {"reason": %q, "step_id": null, "until": null}}`, reason))
}

func TestConcurrencyDrops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sharing("wf", `{"key": "${{ trigger.payload.customer }}", "limit": 2, "on_limit": "drop"}`)
	w.run("first", "wf", `{"payload": {"customer": "Ada"}}`)
	w.run("second", "wf", `{"payload": {"customer": "Ada"}}`)
	w.run("other", "wf", `{"payload": {"customer": "Bo"}}`)
	w.run("none", "wf", ``)
	refused := w.call("POST", "/v1/workflows/$wf/runs", `{"payload": {"customer": "Ada"}}`).want(409, "concurrency_limit")
	scenario{says: `concurrency key "Ada"`}.checkError(w, refused)
	if got := len(w.call("GET", "/v1/workflows/$wf/runs", "").items()); got != 4 {
		t.Errorf("there are %d runs", got)
	}
	// A place that is free again is given to the next.
	w.waits("first", "ask")
	w.approve("first")
	w.ends("first", "succeeded")
	w.run("third", "wf", `{"payload": {"customer": "Ada"}}`)
	w.call("POST", "/v1/workflows/$wf/runs", `{"payload": {"customer": "Ada"}}`).want(409, "concurrency_limit")
	w.call("POST", "/v1/runs/$third/cancel", "").want(200)
	// A retry needs a place too.
	w.run("fourth", "wf", `{"payload": {"customer": "Ada"}}`)
	w.call("POST", "/v1/runs/$third/retry", "").want(409, "concurrency_limit")
	w.call("POST", "/v1/runs/$fourth/cancel", "").want(200)
	w.call("POST", "/v1/runs/$third/retry", "").want(201)
}

func TestConcurrencyQueues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sharing("wf", `{}`)
	const reason = "waits until another run of this workflow has ended"
	for _, name := range []string{"first", "second", "third", "fourth"} {
		begun := w.run(name, "wf", "")
		if waits, _ := begun.object()["waiting_for"].(map[string]any); name != "first" && waits["reason"] != reason {
			t.Errorf("the start of the %s does not say that it waits: %s", name, begun.body)
		}
	}
	w.waits("first", "ask")
	for _, name := range []string{"second", "third", "fourth"} {
		w.heldBack(name, reason)
	}
	// The place passes on at an end, at a cancel, and in the order of starts.
	w.approve("first")
	w.ends("first", "succeeded")
	w.waits("second", "ask")
	w.heldBack("third", reason)
	// One that waits for its place can be cancelled, which frees none.
	w.call("POST", "/v1/runs/$third/cancel", "").want(200)
	w.heldBack("fourth", reason)
	w.call("POST", "/v1/runs/$second/cancel", "").want(200)
	w.waits("fourth", "ask")
	w.approve("fourth")
	w.ends("fourth", "succeeded")
}

// A key is worked out for each run; the empty one is a key too.
func TestConcurrencyKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sharing("wf", `{"key": "${{ trigger.payload.k }}"}`)
	keys := []string{`{}`, `{"k": "a"}`, `{"k": 1}`, `{"k": true}`}
	for i, payload := range keys {
		w.run(fmt.Sprintf("one%d", i), "wf", `{"payload": `+payload+`}`)
		w.run(fmt.Sprintf("two%d", i), "wf", `{"payload": `+payload+`}`)
	}
	for i := range keys {
		w.waits(fmt.Sprintf("one%d", i), "ask")
		got := w.call("GET", fmt.Sprintf("/v1/runs/$two%d", i), "").object()
		wantContains(t, got["waiting_for"], `{"reason": "~waits until another run of this workflow.*", "step_id": null}`)
	}
	wantContains(t, w.call("GET", "/v1/runs/$two1", "").json(), `{"waiting_for": {"reason": "~.*with the concurrency key \"a\" has ended"}}`)
	w.sharing("bad", `{"key": "${{ trigger.payload.k + 1 }}"}`)
	w.call("POST", "/v1/workflows/$bad/runs", `{"payload": {"k": {}}}`).want(400, "invalid_request")
	w.sharing("long", `{"key": "${{ trigger.payload.k }}"}`)
	long := make([]byte, 501)
	for i := range long {
		long[i] = 'x'
	}
	w.call("POST", "/v1/workflows/$long/runs", fmt.Sprintf(`{"payload": {"k": %q}}`, long)).want(400, "invalid_request")
}

func TestConcurrencyCancelsTheOldest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sharing("wf", `{"limit": 2, "on_limit": "cancel_running"}`)
	w.waiting("first", "wf")
	w.waiting("second", "wf")
	w.run("third", "wf", "")
	wantContains(t, w.ends("first", "cancelled").json(), `{"error": null, "steps": [{"step_id": "ask", "status": "cancelled"}]}`)
	w.waits("second", "ask")
	w.waits("third", "ask")
	if got := len(w.eventBodies("run.cancelled")); got != 1 {
		t.Errorf("there are %d events run.cancelled", got)
	}
	wantContains(t, w.eventBodies("run.cancelled")[0], w.fill(`{"data": {"run_id": "$first", "status": "cancelled"}}`))
}

// blocked is a server that answers nobody until it is told to.
func blocked(t *testing.T) (url string, let func()) {
	t.Helper()
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(open)
	return s.URL, open
}

// loopback lets steps reach this machine.
func loopback(c *config.Serve) {
	c.EgressAllow = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
}

// On a plan with 5 runs at a time and 1,000 in the queue, the 1,006th start is
// refused, also when all come at once.
func TestRunQueueFull(t *testing.T) {
	t.Parallel()
	const under, queued, extra, clients = 5, 1000, 64, 64
	s := newServer(t, loopback)
	w := s.newWorldOn(t, `{"name": "Small", "plan": "free"}`)
	s.rows(t, `UPDATE workspaces SET requests_per_minute = 1000000 WHERE id = ?`, w.id)
	s.restart(t)
	url, let := blocked(t)
	w.workflow("slow", fmt.Sprintf(`{"id": "get", "uses": "http.request", "with": {"url": %q}}`, url))
	w.workflow("quick", setStep)
	for i := range under {
		name := fmt.Sprintf("slow%d", i)
		w.run(name, "slow", "")
		eventually(t, "the call is made", func() bool {
			return len(s.rows(t, `SELECT 1 FROM run_queue WHERE run_id = ? AND executing = 'get'`, w.names[name])) == 1
		})
	}
	var (
		group    sync.WaitGroup
		mu       sync.Mutex
		statuses = map[int]int{}
		jobs     = make(chan struct{}, queued+extra)
		last     string
	)
	for range queued + extra {
		jobs <- struct{}{}
	}
	close(jobs)
	for range clients {
		group.Go(func() {
			for range jobs {
				a := w.call("POST", "/v1/workflows/$quick/runs", "")
				mu.Lock()
				statuses[a.status]++
				if a.status == http.StatusCreated {
					var body struct{ ID string }
					_ = json.Unmarshal(a.body, &body) // held against the contract already
					last = max(last, body.ID)
				} else if a.code() != "run_queue_full" || a.header.Get("Retry-After") != "1" {
					t.Errorf("got %d %s", a.status, a.body)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if statuses[http.StatusCreated] != queued || statuses[http.StatusTooManyRequests] != extra {
		t.Errorf("answers by status: %v", statuses)
	}
	if got := s.rows(t, `SELECT count(*) FROM run_queue WHERE workspace_id = ?`, w.id)[0][0]; got != fmt.Sprint(under+queued) {
		t.Errorf("%s rows are in the queue", got)
	}
	wantContains(t, w.call("GET", "/v1/runs/"+last, "").json(),
		`{"status": "running", "steps": [], "waiting_for": {"reason": "waits in the queue: as many runs as may be are under way", "step_id": null, "until": null}}`)
	let()
	eventually(t, "all runs end", func() bool {
		return s.rows(t, `SELECT count(*) FROM run_queue WHERE workspace_id = ?`, w.id)[0][0] == "0"
	})
	w.run("again", "quick", "")
	w.ends("again", "succeeded")
}

// What runs wait for is not forgotten by a restart: an answer, the end of
// another run, a place.
func TestWaitsSurviveARestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newWorld(t)
	w.sharing("child", `{}`)
	w.workflow("wf", subStep)
	w.run("first", "wf", "")
	w.waits("first", "sub")
	w.run("second", "wf", "")
	w.waits("second", "sub")
	below := w.call("GET", "/v1/workflows/$child/runs", "").column("id")
	if len(below) != 2 {
		t.Fatalf("the runs below are %v", below)
	}
	w.names["late"], w.names["early"] = below[0], below[1]
	s.restart(t)
	w.heldBack("late", "waits until another run of this workflow has ended")
	for _, name := range []string{"early", "late"} {
		w.waits(name, "ask")
		s.restart(t)
		w.approve(name)
		w.ends(name, "succeeded")
	}
	w.ends("first", "succeeded")
	w.ends("second", "succeeded")
}
