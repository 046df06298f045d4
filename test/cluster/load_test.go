package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

const tenants = 3

// load is a group of clients that start runs of many kinds in several workspaces
// through all nodes, and the record of the responses they got.
type load struct {
	c         *cluster
	t         *testing.T
	sink      *sink.Sink
	receivers []*sink.Receiver
	tenants   []*tenant
	clients   int
	minRuns   int    // how many runs make a test meaningful
	hanging   string // a workflow of the first tenant whose only call hangs

	stop  chan struct{}
	group sync.WaitGroup

	mu        sync.Mutex
	serial    int
	extraRuns int // runs that the test itself started
	runs      map[string]*acknowledgedRun
	counts    counts
	slowest   time.Duration // of all responses
}

// counts has the counters of a load.
type counts struct {
	ended                 int // runs whose end a client has seen
	requests, unavailable int
	lost                  int // requests without a response
	replays               int
}

// tenant is a workspace with a workflow of each kind.
type tenant struct {
	key       string
	workflows map[string]string
}

// acknowledgedRun is a run whose start was acknowledged.
type acknowledgedRun struct {
	id, order, kind string
	tenant          *tenant
	final           []byte
}

type runBody struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Error  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Steps []stepBody `json:"steps"`
}

type stepBody struct {
	StepID  string          `json:"step_id"`
	Status  string          `json:"status"`
	Attempt int             `json:"attempt"`
	Output  json.RawMessage `json:"output"`
}

func newLoad(c *cluster) *load {
	c.t.Helper()
	l := &load{c: c, t: c.t, sink: sink.New(c.t), clients: lane.Pick(6, 12), minRuns: lane.Pick(20, 100), runs: map[string]*acknowledgedRun{}, stop: make(chan struct{})}
	for range tenants {
		l.tenants = append(l.tenants, l.newTenant())
	}
	l.hanging = flow.Define(c.t, c.nodes[0].With(l.tenants[0].key), flow.HTTP("hangs", l.sink.URL+"/hangs?hang"))
	return l
}

func (l *load) newTenant() *tenant {
	l.t.Helper()
	own := flow.NewWorkspace(l.t, l.c.nodes[0].Client, "enterprise")
	hooks := sink.NewReceiver(l.t)
	hooks.Subscribe(own, "/all", "run.started", "run.succeeded", "run.failed", "run.cancelled")
	l.receivers = append(l.receivers, hooks)
	w := &tenant{key: own.Key, workflows: map[string]string{}}
	call := func(id string) map[string]any { return l.calls(id, 20) }
	w.workflows["calls"] = flow.Define(l.t, own, call("one"), call("two"), call("three"))
	w.workflows["pure"] = flow.Define(l.t, own, flow.Set("one", "${{ trigger.payload.n }}"), flow.Set("two", "${{ steps.one.output.n + 1 }}"), flow.Set("three", "${{ steps.two.output.n + 1 }}"))
	w.workflows["waits"] = flow.Define(l.t, own, call("one"), flow.Wait("wait", "1500ms"), call("three"))
	w.workflows["parallel"] = flow.Define(l.t, own, call("one"),
		map[string]any{"id": "all", "foreach": "1..3", "parallel": 3, "steps": []any{call("each")}}, call("three"))
	child := flow.Define(l.t, own, call("inner"))
	w.workflows["family"] = flow.Define(l.t, own, call("one"), map[string]any{"id": "child", "uses": "flow.run", "with": map[string]any{"workflow_id": child}}, call("three"))
	w.workflows["asks"] = flow.Define(l.t, own, call("one"), map[string]any{"id": "ask", "uses": "flow.approval", "with": map[string]any{"message": "go on?"}}, call("three"))
	w.workflows["slow"] = flow.Define(l.t, own, l.calls("one", 400), l.calls("two", 400), l.calls("three", 20))
	return w
}

// calls returns a step whose call to the sink takes some milliseconds.
func (l *load) calls(id string, ms int) map[string]any {
	return flow.HTTP(id, fmt.Sprintf("%s/%s?ms=%d", l.sink.URL, id, ms))
}

// startClients starts the clients.
func (l *load) startClients() {
	l.t.Cleanup(l.group.Wait) // if the test fails, the clients stop on their own
	for i := range l.clients {
		random := harness.Random(l.c.seed, 100+i)
		l.group.Go(func() {
			for !l.t.Failed() {
				select {
				case <-l.stop:
					return
				default:
				}
				tenant := l.tenants[random.IntN(tenants)]
				kinds := slices.Sorted(maps.Keys(tenant.workflows))
				l.execute(random, tenant, kinds[random.IntN(len(kinds))])
			}
		})
	}
}

// awaitMore waits until that many more runs have ended.
func (l *load) awaitMore(runs int) {
	l.t.Helper()
	l.mu.Lock()
	goal := l.counts.ended + runs
	l.mu.Unlock()
	l.awaitEnded(goal)
}

// awaitEnded waits until that many runs have ended.
func (l *load) awaitEnded(runs int) {
	l.t.Helper()
	left := harness.AwaitZero(func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.t.Failed() { // the clients have stopped
			return 0
		}
		return runs - l.counts.ended
	})
	if left > 0 {
		l.t.Errorf("no run has ended for %v; %d of %d are left", harness.Timeout, left, runs)
	}
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// unavailable returns how many requests got a 503 so far.
func (l *load) unavailable() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.unavailable
}

// await waits for a minimum number of calls that match.
func (l *load) await(what string, minimum int, match func(*sink.Call) bool) (found []sink.Call) {
	l.t.Helper()
	harness.Eventually(l.t, what, func() bool {
		found = l.sink.Calls(match)
		return len(found) >= minimum
	})
	return found
}

// stopClients stops the clients once there were enough runs.
func (l *load) stopClients() {
	l.t.Helper()
	l.awaitEnded(l.minRuns)
	close(l.stop)
	l.group.Wait()
}

// execute starts a run and polls it until it has ended.
func (l *load) execute(random *rand.Rand, of *tenant, kind string) *acknowledgedRun {
	e := l.start(random, of, kind)
	if e == nil {
		return nil
	}
	resumed := kind != "asks"
	for deadline := time.Now().Add(harness.Timeout); ; time.Sleep(60 * time.Millisecond) {
		response, ok := l.send(random, of, "GET", "/v1/runs/"+e.id, nil)
		if !ok {
			return e
		}
		var now runBody
		response.Decode(l.t, &now)
		switch {
		case now.Status != "running":
			l.mu.Lock()
			l.counts.ended++
			l.mu.Unlock()
			return e
		case !resumed && strings.Contains(string(response.Body), `"waiting_for":{`) && slices.ContainsFunc(now.Steps, waitsForApproval):
			_, resumed = l.send(random, of, "POST", "/v1/runs/"+e.id+"/steps/ask/resume", map[string]any{"approved": true})
		case time.Now().After(deadline):
			l.t.Errorf("run %s (%s) has not ended: %s", e.id, kind, response.Body)
			return e
		}
	}
}

func waitsForApproval(s stepBody) bool {
	return s.StepID == "ask" && s.Status == "waiting"
}

// start starts a run and retries until it gets a response.
func (l *load) start(random *rand.Rand, of *tenant, kind string) *acknowledgedRun {
	return l.startWithKey(of, kind, func(path string, body any, headers ...string) (harness.Response, bool) {
		return l.send(random, of, "POST", path, body, headers...)
	})
}

// startOn starts a run on a healthy node.
func (l *load) startOn(m *member, of *tenant, kind string) *acknowledgedRun {
	l.t.Helper()
	return l.startWithKey(of, kind, func(path string, body any, headers ...string) (harness.Response, bool) {
		return l.sendTo(m.Client, of, http.StatusCreated, "POST", path, body, headers...), true
	})
}

// mustRepeat reports whether a request has to be sent again because the database is
// unavailable, or because the attempt before is still in progress.
func mustRepeat(response harness.Response) bool {
	code := flow.ErrorCode(response)
	return code == "unavailable" || code == "idempotency_in_progress"
}

// sendTo sends an idempotent request to a healthy node, which responds with the status
// or, if the database is slow, with a 503 first.
func (l *load) sendTo(c *harness.Client, of *tenant, status int, method, path string, body any, headers ...string) (response harness.Response) {
	l.t.Helper()
	harness.Eventually(l.t, method+" "+path+" takes effect", func() bool {
		var err error
		if response, err = c.With(of.key).Do(l.t.Context(), method, path, body, headers...); err != nil {
			l.t.Fatalf("%s %s: %v", method, path, err)
		}
		return !mustRepeat(response)
	})
	if response.Status != status {
		l.t.Fatalf("%s %s: status %d, want %d\n%s", method, path, response.Status, status, response.Body)
	}
	return response
}

// startWithKey starts a run with an idempotency key and records it.
func (l *load) startWithKey(of *tenant, kind string, send func(path string, body any, headers ...string) (harness.Response, bool)) *acknowledgedRun {
	l.t.Helper()
	l.mu.Lock()
	l.serial++
	order := fmt.Sprintf("order-%d", l.serial)
	l.mu.Unlock()
	response, ok := send("/v1/workflows/"+of.workflows[kind]+"/runs", map[string]any{"payload": map[string]any{"n": 1}}, "Idempotency-Key", order)
	if !ok {
		return nil
	}
	var made runBody
	response.Decode(l.t, &made)
	l.mu.Lock()
	defer l.mu.Unlock()
	if response.Header.Get("Idempotent-Replayed") == "true" {
		l.counts.replays++
	}
	if other := l.runs[made.ID]; other != nil {
		l.t.Errorf("the idempotency keys %s and %s got the same run %s", other.order, order, made.ID)
	}
	e := &acknowledgedRun{id: made.ID, order: order, kind: kind, tenant: of}
	l.runs[e.id] = e
	return e
}

// send sends an idempotent request to one node after the other until one of them
// responds with success.
func (l *load) send(random *rand.Rand, of *tenant, method, path string, body any, headers ...string) (harness.Response, bool) {
	for deadline := time.Now().Add(harness.Timeout); time.Now().Before(deadline) && !l.t.Failed(); {
		c := l.c.nodes[random.IntN(len(l.c.nodes))].client()
		if c == nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		response, err := l.request(c.With(of.key), method, path, body, headers)
		switch {
		case err != nil:
		case response.Status < 300, alreadyResumed(response):
			return response, true
		case !mustRepeat(response):
			l.t.Errorf("%s %s: %d %s", method, path, response.Status, response.Body)
			return response, false
		}
		select {
		case <-l.t.Context().Done():
			return response, false
		case <-time.After(time.Duration(50+random.IntN(200)) * time.Millisecond):
		}
	}
	if !l.t.Failed() {
		l.t.Errorf("%s %s: no node responded with success", method, path)
	}
	return harness.Response{}, false
}

// alreadyResumed reports whether an earlier attempt of the request resumed the step.
func alreadyResumed(a harness.Response) bool {
	return flow.ErrorCode(a) == "step_not_waiting"
}

// request sends one request and counts its response.
func (l *load) request(c *harness.Client, method, path string, body any, headers []string) (harness.Response, error) {
	started := time.Now()
	response, err := c.Do(l.t.Context(), method, path, body, headers...)
	took := time.Since(started)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.requests++
	if err != nil {
		l.counts.lost++
		return response, err
	}
	if response.Status == http.StatusServiceUnavailable {
		l.counts.unavailable++
		if response.Header.Get("Retry-After") == "" {
			l.t.Errorf("%s %s: 503 without Retry-After: %s", method, path, response.Body)
		}
	}
	l.slowest = max(l.slowest, took)
	return response, nil
}
