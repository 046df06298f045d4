package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

const (
	clients = 3
	// hookLimit and keyLimit are below the limits of the plan.
	hookLimit = 120
	keyLimit  = 120
)

// load is a group of clients of successive servers on one data directory, and the ledger
// of their responses.
type load struct {
	t       *testing.T
	ledger  *ledger
	clients []*client
	// once is the workflow whose runs are all started with an Idempotency-Key.
	once *workflow
}

// client sends requests about its own workflows.
type client struct {
	load   *load
	number int
	random *rand.Rand
	serial int
	own    []*workflow
	runs   []*execution
	keyed  []request // acknowledged, with a key
	// unanswered has requests with a key, to be repeated until they get a response.
	unanswered []request

	api   *harness.Client
	onAck func() // called at each acknowledgement
}

// request is a request with callbacks for its outcomes.
type request struct {
	method, path string
	body         any
	key          string
	// onSuccess records the response in the ledger.
	onSuccess func(harness.Response)
	// onLost is called if there was no response; nil for requests with a key.
	onLost func()
	// otherStatus is another valid status, for which onOther is called.
	otherStatus int
	onOther     func()
}

func newLoad(t *testing.T, seed uint64) *load {
	l := &load{t: t, ledger: &ledger{}}
	for i := range clients {
		l.clients = append(l.clients, &client{load: l, number: i, random: harness.Random(seed, i)})
	}
	return l
}

// prepare makes what all clients share: a webhook for all events, and the workflow for
// starts with a key.
func (l *load) prepare(s *harness.Server) (webhookID string) {
	l.t.Helper()
	var hook struct{ ID string }
	s.Expect(l.t, 201, "POST", "/v1/webhooks", map[string]any{
		"url": "http://127.0.0.1:1/all", "events": []string{"run.started", "run.succeeded", "run.failed", "run.cancelled"},
	}).Decode(l.t, &hook)
	does := chain{{"add", 7}, {"times", 3}}
	id := createWorkflow(l.t, s.Client, "once", does)
	l.once = &workflow{id: id, name: "once", version: 2, versions: map[int]chain{1: {}, 2: does}}
	l.ledger.addWorkflow(l.once)
	return hook.ID
}

// run starts the clients, which stop when the server no longer responds. The channel is
// closed at the first acknowledgement.
func (l *load) run(s *harness.Server) (first <-chan struct{}, wait func()) {
	acknowledged := make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	for _, c := range l.clients {
		c.api = harness.NewClient(s.URL, s.Key)
		c.onAck = func() { once.Do(func() { close(acknowledged) }) }
		group.Go(c.run)
	}
	return acknowledged, group.Wait
}

// awaitFirst waits for the first acknowledgement of a round.
func awaitFirst(t *testing.T, first <-chan struct{}) {
	t.Helper()
	select {
	case <-first:
	case <-time.After(timeout):
		t.Fatal("nothing was acknowledged")
	}
}

// awaitRandomMoment waits for a random time after the first acknowledgement of a round,
// and until clients have got a number of responses.
func (l *load) awaitRandomMoment(t *testing.T, first <-chan struct{}, random *rand.Rand) {
	t.Helper()
	enough := l.answered() + minResponses
	awaitFirst(t, first)
	time.Sleep(minDelay + time.Duration(random.Int64N(int64(maxDelay-minDelay))))
	harness.Eventually(t, "clients have got enough responses", func() bool { return l.answered() >= enough })
}

// minRuns is the minimum number of runs of a load.
const minRuns = 50

// awaitEnough waits until there were enough requests for a meaningful test: a minimum of
// runs, and at least one request of each other kind.
func (l *load) awaitEnough(t *testing.T, minRuns int) {
	t.Helper()
	harness.Eventually(t, "clients have sent enough requests", func() bool {
		workflows, runs, webhooks, keys := l.ledger.sizes()
		var n counts
		l.ledger.count(func(counts *counts) { n = *counts })
		return runs >= minRuns && min(workflows, webhooks, keys, n.cancels, n.replays) > 0
	})
}

func (l *load) answered() (n int) {
	l.ledger.count(func(counts *counts) { n = counts.answered })
	return n
}

// run repeats the requests without a response and then sends new ones.
func (c *client) run() {
	if !c.catchUp() {
		return
	}
	for c.next() {
	}
}

// catchUp finds out the outcome of the requests that the last server did not respond to.
// It returns false if this server does not respond either.
func (c *client) catchUp() bool {
	again := c.unanswered
	c.unanswered = nil
	for i, o := range again {
		c.load.ledger.count(func(n *counts) { n.repeated++ })
		if !c.send(o) {
			c.unanswered = append(c.unanswered, again[i+1:]...)
			return false
		}
	}
	for _, w := range c.own {
		if w.uncertain != nil && !c.resolve(w) {
			return false
		}
	}
	return true
}

// resolve finds out whether a change without a response has taken effect.
func (c *client) resolve(w *workflow) bool {
	return c.send(request{method: "GET", path: "/v1/workflows/" + w.id, onSuccess: func(a harness.Response) {
		var now workflowBody
		c.decode(a, &now)
		switch now.Version {
		case w.version:
		case w.version + 1:
			w.version++
			w.versions[w.version] = w.uncertain
		default:
			c.load.t.Errorf("workflow %s has version %d after an unacknowledged change of version %d", w.id, now.Version, w.version)
		}
		w.uncertain = nil
	}, onLost: func() {}})
}

func (c *client) decode(a harness.Response, into any) {
	if err := json.Unmarshal(a.Body, into); err != nil {
		c.load.t.Errorf("client %d: %v: %s", c.number, err, a.Body)
	}
}

// send sends a request. It returns false if there was no response, because the server has
// exited.
func (c *client) send(o request) bool {
	var headers []string
	if o.key != "" {
		headers = []string{"Idempotency-Key", o.key}
	}
	response, err := c.api.DoUntilAvailable(c.load.t.Context(), o.method, o.path, o.body, headers...)
	c.load.ledger.count(func(n *counts) {
		n.attempts++
		if err == nil {
			n.answered++
		} else {
			n.lost++
		}
	})
	switch {
	case err != nil && o.key != "":
		c.unanswered = append(c.unanswered, o)
		return false
	case err != nil:
		o.onLost()
		return false
	case response.Status == o.otherStatus:
		o.onOther()
	case response.Status < 200 || response.Status > 299:
		c.load.t.Errorf("client %d: %s %s: status %d: %s", c.number, o.method, o.path, response.Status, response.Body)
	default:
		c.countReplay(response)
		o.onSuccess(response)
	}
	c.onAck()
	return true
}

func (c *client) countReplay(response harness.Response) {
	if response.Header.Get("Idempotent-Replayed") == "true" {
		c.load.ledger.count(func(n *counts) { n.replays++ })
	}
}

// name returns a unique name.
func (c *client) name(kind string) string {
	c.serial++
	return fmt.Sprintf("%s-%d-%d", kind, c.number, c.serial)
}

// maybeKey returns an idempotency key for half of the requests.
func (c *client) maybeKey() string {
	if c.random.IntN(2) == 0 {
		return ""
	}
	return c.name("key")
}

// pauseUpTo pauses now and then, so that the load varies.
func (c *client) pauseUpTo(length time.Duration) {
	if c.random.IntN(8) == 0 {
		time.Sleep(time.Duration(c.random.Int64N(int64(length))))
	}
}
