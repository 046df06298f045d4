package cluster_test

import (
	"context"
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

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

const (
	tenants = 3
	// patience is how long a client tries to get an answer of success.
	patience = 45 * time.Second
	// longestAnswer is how long an answer may take, whatever is wrong.
	longestAnswer = 30 * time.Second
)

// load are clients that have runs of many kinds executed, in several
// workspaces and through any node, and the ledger of what they were told.
type load struct {
	c         *cluster
	t         *testing.T
	sink      *sink.Sink
	receivers []*sink.Receiver
	tenants   []*tenant
	clients   int
	least     int  // runs, for the test to mean anything
	slow      bool // the database is: writes may take longer than they have

	stop  chan struct{}
	group sync.WaitGroup

	mu      sync.Mutex
	serial  int
	others  int // runs that a test started itself
	runs    map[string]*execution
	counts  counts
	slowest time.Duration // answer
	// slowestAmid is that of the answers that a fault came in between.
	slowestAmid time.Duration
}

// counts are operations, and requests, of which an operation may take several.
type counts struct {
	operations, succeeded int
	requests, unavailable int
	amid                  int // requests that were answered, and during which something was wrong
	lost                  int
	replays               int
}

// tenant is a workspace with a workflow of each kind.
type tenant struct {
	key       string
	workspace string
	workflows map[string]string
}

// execution is a run that was acknowledged.
type execution struct {
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
	Steps []struct {
		StepID  string          `json:"step_id"`
		Status  string          `json:"status"`
		Attempt int             `json:"attempt"`
		Output  json.RawMessage `json:"output"`
	} `json:"steps"`
}

func newLoad(c *cluster, clients int) *load {
	c.t.Helper()
	l := &load{c: c, t: c.t, sink: sink.New(c.t), clients: clients, least: 30, runs: map[string]*execution{}, stop: make(chan struct{})}
	for range tenants {
		l.tenants = append(l.tenants, l.newTenant())
	}
	return l
}

func (l *load) newTenant() *tenant {
	l.t.Helper()
	var made struct {
		ID     string `json:"id"`
		APIKey string `json:"api_key"`
	}
	l.c.nodes[0].Expect(l.t, http.StatusCreated, "POST", "/v1/workspaces",
		map[string]any{"name": "tenant", "plan": "enterprise", "requests_per_minute": 1_000_000}).Decode(l.t, &made)
	own := l.c.nodes[0].With(made.APIKey)
	hooks := sink.NewReceiver(l.t)
	hooks.Subscribe(own, "/all", "run.started", "run.succeeded", "run.failed", "run.cancelled")
	l.receivers = append(l.receivers, hooks)
	w := &tenant{key: made.APIKey, workspace: made.ID, workflows: map[string]string{}}
	call := func(id string) map[string]any { return l.calls(id, 20) }
	set := func(id string, n string) map[string]any {
		return map[string]any{"id": id, "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": n}}}
	}
	w.workflows["calls"] = define(l.t, own, call("one"), call("two"), call("three"))
	w.workflows["pure"] = define(l.t, own, set("one", "${{ trigger.payload.n }}"), set("two", "${{ steps.one.output.n + 1 }}"), set("three", "${{ steps.two.output.n + 1 }}"))
	w.workflows["waits"] = define(l.t, own, call("one"), map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "1500ms"}}, call("three"))
	w.workflows["parallel"] = define(l.t, own, call("one"),
		map[string]any{"id": "all", "foreach": "1..3", "parallel": 3, "steps": []any{call("each")}}, call("three"))
	child := define(l.t, own, call("inner"))
	w.workflows["family"] = define(l.t, own, call("one"), map[string]any{"id": "child", "uses": "flow.run", "with": map[string]any{"workflow_id": child}}, call("three"))
	w.workflows["asks"] = define(l.t, own, call("one"), map[string]any{"id": "ask", "uses": "flow.approval", "with": map[string]any{"message": "go on?"}}, call("three"))
	w.workflows["slow"] = define(l.t, own, l.calls("one", 400), l.calls("two", 400), l.calls("three", 20))
	return w
}

// calls is a step that calls the sink, which takes some milliseconds.
func (l *load) calls(id string, ms int) map[string]any {
	return map[string]any{"id": id, "uses": "http.request", "with": map[string]any{
		"url": fmt.Sprintf("%s/%s?ms=%d", l.sink.URL, id, ms), "method": "POST", "body": "${{ trigger.payload }}",
	}}
}

// define makes an active workflow of steps.
func define(t testing.TB, c *harness.Client, steps ...map[string]any) string {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "defined"}).Decode(t, &made)
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active", "steps": steps})
	return made.ID
}

// begin lets every client work until the load ends.
func (l *load) begin() {
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

// end lets the clients come to an end.
func (l *load) end() {
	close(l.stop)
	l.group.Wait()
}

// execute starts a run and follows it to its end.
func (l *load) execute(random *rand.Rand, of *tenant, kind string) *execution {
	e := l.start(random, of, kind)
	if e == nil {
		return nil
	}
	answered := kind != "asks"
	for deadline := time.Now().Add(settleTime + patience); ; time.Sleep(60 * time.Millisecond) {
		answer, ok := l.ask(random, of, "GET", "/v1/runs/"+e.id, nil)
		if !ok {
			return e
		}
		var now runBody
		answer.Decode(l.t, &now)
		switch {
		case now.Status != "running":
			return e
		case !answered && strings.Contains(string(answer.Body), `"waiting_for":{"reason":`) && slices.ContainsFunc(now.Steps, isAsking):
			_, answered = l.ask(random, of, "POST", "/v1/runs/"+e.id+"/steps/ask/resume", map[string]any{"approved": true})
		case time.Now().After(deadline):
			l.t.Errorf("run %s (%s) does not end: %s", e.id, kind, answer.Body)
			return e
		}
	}
}

func isAsking(s struct {
	StepID  string          `json:"step_id"`
	Status  string          `json:"status"`
	Attempt int             `json:"attempt"`
	Output  json.RawMessage `json:"output"`
}) bool {
	return s.StepID == "ask" && s.Status == "waiting"
}

// start starts a run as often as it takes to be told which it is.
func (l *load) start(random *rand.Rand, of *tenant, kind string) *execution {
	return l.order(of, kind, func(path string, body any, headers ...string) (harness.Answer, bool) {
		return l.ask(random, of, "POST", path, body, headers...)
	})
}

// startOn starts a run on a node, with which nothing is wrong.
func (l *load) startOn(m *member, of *tenant, kind string) *execution {
	l.t.Helper()
	return l.order(of, kind, func(path string, body any, headers ...string) (harness.Answer, bool) {
		return m.With(of.key).Expect(l.t, http.StatusCreated, "POST", path, body, headers...), true
	})
}

// order has a run started, with a key, and notes which it is.
func (l *load) order(of *tenant, kind string, ask func(path string, body any, headers ...string) (harness.Answer, bool)) *execution {
	l.t.Helper()
	l.mu.Lock()
	l.serial++
	order := fmt.Sprintf("order-%d", l.serial)
	l.mu.Unlock()
	answer, ok := ask("/v1/workflows/"+of.workflows[kind]+"/runs", map[string]any{"payload": map[string]any{"n": 1}}, "Idempotency-Key", order)
	if !ok {
		return nil
	}
	var made runBody
	answer.Decode(l.t, &made)
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer.Header.Get("Idempotent-Replayed") == "true" {
		l.counts.replays++
	}
	if other := l.runs[made.ID]; other != nil {
		l.t.Errorf("the orders %s and %s got the same run %s", other.order, order, made.ID)
	}
	e := &execution{id: made.ID, order: order, kind: kind, tenant: of}
	l.runs[e.id] = e
	return e
}

// ask sends a request to nodes, one after the other, until one answers with
// success. A request that is repeated is one whose repetition has no effect.
func (l *load) ask(random *rand.Rand, of *tenant, method, path string, body any, headers ...string) (harness.Answer, bool) {
	began := time.Now()
	for time.Since(began) < patience {
		c := l.c.nodes[random.IntN(len(l.c.nodes))].client()
		if c == nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		answer, err := l.request(c.With(of.key), method, path, body, headers)
		switch {
		case err != nil:
		case answer.Status < 300, repeatedAnswer(answer):
			l.operation(true)
			return answer, true
		case answer.Status != http.StatusServiceUnavailable && answer.Status != http.StatusConflict:
			l.t.Errorf("%s %s: %d %s", method, path, answer.Status, answer.Body)
			l.operation(false)
			return answer, false
		}
		select {
		case <-l.t.Context().Done():
			return answer, false
		case <-time.After(time.Duration(50+random.IntN(200)) * time.Millisecond):
		}
	}
	l.operation(false)
	l.t.Logf("%s %s: nobody answered with success for %v", method, path, patience)
	return harness.Answer{}, false
}

// repeatedAnswer tells that a step was answered by the same request before.
func repeatedAnswer(a harness.Answer) bool {
	return a.Status == http.StatusConflict && strings.Contains(string(a.Body), "step_not_waiting")
}

func (l *load) operation(succeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.operations++
	if succeeded {
		l.counts.succeeded++
	}
}

// request sends one request, and holds its answer against what is promised of
// answers in times of need.
func (l *load) request(c *harness.Client, method, path string, body any, headers []string) (harness.Answer, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), longestAnswer)
	defer cancel()
	began := time.Now()
	answer, err := c.Do(ctx, method, path, body, headers...)
	took := time.Since(began)
	amid := l.c.faultBetween(began, began.Add(took))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.requests++
	switch {
	case err != nil:
		l.counts.lost++
		return answer, err
	case answer.Status == http.StatusServiceUnavailable:
		l.counts.unavailable++
		if answer.Header.Get("Retry-After") == "" {
			l.t.Errorf("%s %s: 503 without Retry-After: %s", method, path, answer.Body)
		}
	}
	l.slowest = max(l.slowest, took)
	if amid {
		l.counts.amid++
		l.slowestAmid = max(l.slowestAmid, took)
	}
	return answer, nil
}
