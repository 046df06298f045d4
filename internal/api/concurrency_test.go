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

// workflowWithConcurrency creates a workflow that waits for a decision, with
// the given concurrency settings.
func (w *testWorkspace) workflowWithConcurrency(name, concurrency string) {
	w.t.Helper()
	w.workflow(name, askStep)
	w.patch(name, `{"settings": {"concurrency": `+concurrency+`}}`)
}

func (w *testWorkspace) approve(run string) {
	w.t.Helper()
	w.call("POST", "/v1/runs/$"+run+"/steps/ask/resume", `{"approved": true}`).wantStatus(200)
}

// waitForReason returns when a run waits for another one.
func (w *testWorkspace) waitForReason(run, reason string) {
	w.t.Helper()
	wantContains(w.t, w.call("GET", "/v1/runs/$"+run, "").json(),
		fmt.Sprintf(`{"status": "running", "steps": [], "waiting_for": {"reason": %q, "step_id": null, "until": null}}`, reason))
}

func TestConcurrencyDrop(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflowWithConcurrency("wf", `{"key": "${{ trigger.payload.customer }}", "limit": 2, "on_limit": "drop"}`)
	w.startRun("first", "wf", `{"payload": {"customer": "Ada"}}`)
	w.startRun("second", "wf", `{"payload": {"customer": "Ada"}}`)
	w.startRun("other", "wf", `{"payload": {"customer": "Bo"}}`)
	w.startRun("none", "wf", ``)
	rejected := w.call("POST", "/v1/workflows/$wf/runs", `{"payload": {"customer": "Ada"}}`).wantStatus(409, "concurrency_limit")
	scenario{message: `concurrency limit of 2 for key "Ada"`}.checkError(w, rejected)
	if got := len(w.call("GET", "/v1/workflows/$wf/runs", "").items()); got != 4 {
		t.Errorf("there are %d runs", got)
	}
	// A released slot goes to the next run.
	w.waitForStep("first", "ask")
	w.approve("first")
	w.waitForStatus("first", "succeeded")
	w.startRun("third", "wf", `{"payload": {"customer": "Ada"}}`)
	w.call("POST", "/v1/workflows/$wf/runs", `{"payload": {"customer": "Ada"}}`).wantStatus(409, "concurrency_limit")
	w.call("POST", "/v1/runs/$third/cancel", "").wantStatus(200)
	// A retry needs a slot too.
	w.startRun("fourth", "wf", `{"payload": {"customer": "Ada"}}`)
	w.call("POST", "/v1/runs/$third/retry", "").wantStatus(409, "concurrency_limit")
	w.call("POST", "/v1/runs/$fourth/cancel", "").wantStatus(200)
	w.call("POST", "/v1/runs/$third/retry", "").wantStatus(201)
}

func TestConcurrencyQueue(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflowWithConcurrency("wf", `{}`)
	const reason = "queued: the concurrency limit of the workflow is reached"
	for _, name := range []string{"first", "second", "third", "fourth"} {
		started := w.startRun(name, "wf", "")
		if waits, _ := started.object()["waiting_for"].(map[string]any); name != "first" && waits["reason"] != reason {
			t.Errorf("the start of the %s does not say that it waits: %s", name, started.body)
		}
	}
	w.waitForStep("first", "ask")
	for _, name := range []string{"second", "third", "fourth"} {
		w.waitForReason(name, reason)
	}
	// The slot is released at an end and at a cancel, and acquired in the order
	// of starts.
	w.approve("first")
	w.waitForStatus("first", "succeeded")
	w.waitForStep("second", "ask")
	w.waitForReason("third", reason)
	// A throttled run can be cancelled, which releases no slot.
	w.call("POST", "/v1/runs/$third/cancel", "").wantStatus(200)
	w.waitForReason("fourth", reason)
	w.call("POST", "/v1/runs/$second/cancel", "").wantStatus(200)
	w.waitForStep("fourth", "ask")
	w.approve("fourth")
	w.waitForStatus("fourth", "succeeded")
}

// The key is evaluated for each run; the empty one is a key too.
func TestConcurrencyKeys(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflowWithConcurrency("wf", `{"key": "${{ trigger.payload.k }}"}`)
	keys := []string{`{}`, `{"k": "a"}`, `{"k": 1}`, `{"k": true}`}
	for i, payload := range keys {
		w.startRun(fmt.Sprintf("one%d", i), "wf", `{"payload": `+payload+`}`)
		w.startRun(fmt.Sprintf("two%d", i), "wf", `{"payload": `+payload+`}`)
	}
	for i := range keys {
		w.waitForStep(fmt.Sprintf("one%d", i), "ask")
		got := w.call("GET", fmt.Sprintf("/v1/runs/$two%d", i), "").object()
		wantContains(t, got["waiting_for"], `{"reason": "~queued: the concurrency limit of the workflow.*", "step_id": null}`)
	}
	wantContains(t, w.call("GET", "/v1/runs/$two1", "").json(), `{"waiting_for": {"reason": "~.*for key \"a\" is reached"}}`)
	w.workflowWithConcurrency("bad", `{"key": "${{ trigger.payload.k + 1 }}"}`)
	w.call("POST", "/v1/workflows/$bad/runs", `{"payload": {"k": {}}}`).wantStatus(400, "invalid_request")
	w.workflowWithConcurrency("long", `{"key": "${{ trigger.payload.k }}"}`)
	long := make([]byte, 501)
	for i := range long {
		long[i] = 'x'
	}
	w.call("POST", "/v1/workflows/$long/runs", fmt.Sprintf(`{"payload": {"k": %q}}`, long)).wantStatus(400, "invalid_request")
}

func TestConcurrencyCancelOldest(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflowWithConcurrency("wf", `{"limit": 2, "on_limit": "cancel_running"}`)
	w.runUntilWaiting("first", "wf")
	w.runUntilWaiting("second", "wf")
	w.startRun("third", "wf", "")
	wantContains(t, w.waitForStatus("first", "cancelled").json(), `{"error": null, "steps": [{"step_id": "ask", "status": "cancelled"}]}`)
	w.waitForStep("second", "ask")
	w.waitForStep("third", "ask")
	if got := len(w.eventBodies("run.cancelled")); got != 1 {
		t.Errorf("there are %d events run.cancelled", got)
	}
	wantContains(t, w.eventBodies("run.cancelled")[0], w.expand(`{"data": {"run_id": "$first", "status": "cancelled"}}`))
}

// blockedServer starts a server that does not respond until unblock is called.
func blockedServer(t *testing.T) (url string, unblock func()) {
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

// allowLoopback lets steps send requests to this machine.
func allowLoopback(c *config.Serve) {
	c.EgressAllow = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
}

// On a plan with 5 concurrent and 1,000 queued runs, the 1,006th start is
// rejected, even if all come at once.
func TestRunQueueFull(t *testing.T) {
	t.Parallel()
	const under, queued, extra, clients = 5, 1000, 64, 64
	s := newServer(t, allowLoopback)
	w := s.newTestWorkspaceWith(t, `{"name": "Small", "plan": "free"}`)
	s.query(t, `UPDATE workspaces SET requests_per_minute = 1000000 WHERE id = ?`, w.id)
	s.restart(t)
	url, let := blockedServer(t)
	w.workflow("slow", fmt.Sprintf(`{"id": "get", "uses": "http.request", "with": {"url": %q}}`, url))
	w.workflow("quick", setStep)
	for i := range under {
		name := fmt.Sprintf("slow%d", i)
		w.startRun(name, "slow", "")
		eventually(t, "the call is made", func() bool {
			return len(s.query(t, `SELECT 1 FROM run_queue WHERE run_id = ? AND executing = 'get'`, w.names[name])) == 1
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
					_ = json.Unmarshal(a.body, &body) // already checked against the document
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
		t.Errorf("responses by status: %v", statuses)
	}
	if got := s.query(t, `SELECT count(*) FROM run_queue WHERE workspace_id = ?`, w.id)[0][0]; got != fmt.Sprint(under+queued) {
		t.Errorf("%s rows are in the queue", got)
	}
	wantContains(t, w.call("GET", "/v1/runs/"+last, "").json(),
		`{"status": "running", "steps": [], "waiting_for": {"reason": "queued: the concurrency limit is reached", "step_id": null, "until": null}}`)
	let()
	eventually(t, "all runs end", func() bool {
		return s.query(t, `SELECT count(*) FROM run_queue WHERE workspace_id = ?`, w.id)[0][0] == "0"
	})
	w.startRun("again", "quick", "")
	w.waitForStatus("again", "succeeded")
}

// Waits survive a restart: for a decision, for the end of another run, for a
// slot.
func TestWaitsSurviveRestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	w.workflowWithConcurrency("child", `{}`)
	w.workflow("wf", subStep)
	w.startRun("first", "wf", "")
	w.waitForStep("first", "sub")
	w.startRun("second", "wf", "")
	w.waitForStep("second", "sub")
	below := w.call("GET", "/v1/workflows/$child/runs", "").column("id")
	if len(below) != 2 {
		t.Fatalf("the runs below are %v", below)
	}
	w.names["late"], w.names["early"] = below[0], below[1]
	s.restart(t)
	w.waitForReason("late", "queued: the concurrency limit of the workflow is reached")
	for _, name := range []string{"early", "late"} {
		w.waitForStep(name, "ask")
		s.restart(t)
		w.approve(name)
		w.waitForStatus(name, "succeeded")
	}
	w.waitForStatus("first", "succeeded")
	w.waitForStatus("second", "succeeded")
}
