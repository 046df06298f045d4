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
	// hookLimit and keyLimit stay below what the plan allows.
	hookLimit = 120
	keyLimit  = 120
)

// load is a group of clients that work on one data directory over the lives of
// several servers, and the ledger of what they were told.
type load struct {
	t       *testing.T
	ledger  *ledger
	clients []*client
	// once is the workflow whose runs are all started with an Idempotency-Key.
	once *workflow
}

// client works alone on workflows of its own.
type client struct {
	load   *load
	number int
	random *rand.Rand
	serial int
	own    []*workflow
	runs   []*execution
	keyed  []order // acknowledged, with a key
	// unanswered are orders with a key, to be repeated until they are answered.
	unanswered []order

	api  *harness.Client
	work func() // called at each acknowledgement
}

// order is a request with what its acknowledgement means.
type order struct {
	method, path string
	body         any
	key          string
	// done takes the answer of success into the ledger.
	done func(harness.Answer)
	// lost is told that there was no answer; nil for orders with a key.
	lost func()
	// also is another status that is fine, with what it means.
	also   int
	alsoDo func()
}

func newLoad(t *testing.T, seed uint64) *load {
	l := &load{t: t, ledger: &ledger{}}
	for i := range clients {
		l.clients = append(l.clients, &client{load: l, number: i, random: harness.Random(seed, i)})
	}
	return l
}

// prepare makes what all clients share: a webhook that wants everything and
// the workflow for starts that must happen once.
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

// run lets every client work until the server does not answer any more. The
// channel is closed at the first acknowledgement.
func (l *load) run(s *harness.Server) (first <-chan struct{}, wait func()) {
	acknowledged := make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	for _, c := range l.clients {
		c.api = harness.NewClient(s.URL, s.Key)
		c.work = func() { once.Do(func() { close(acknowledged) }) }
		group.Go(c.run)
	}
	return acknowledged, group.Wait
}

// awaitFirst waits for the first acknowledgement of a round.
func awaitFirst(t *testing.T, first <-chan struct{}) {
	t.Helper()
	select {
	case <-first:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was acknowledged")
	}
}

// awaitMoment waits for a moment to do something to a server in a round: a random
// while after its first acknowledgement, and not before clients have got some
// answers, however slow the machine is.
func (l *load) awaitMoment(t *testing.T, first <-chan struct{}, random *rand.Rand) {
	t.Helper()
	enough := l.answered() + leastAnswers
	awaitFirst(t, first)
	time.Sleep(soonest + time.Duration(random.Int64N(int64(latest-soonest))))
	for end := time.Now().Add(10 * time.Second); l.answered() < enough && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (l *load) answered() (n int) {
	l.ledger.count(func(counts *counts) { n = counts.answered })
	return n
}

// run repeats what was not answered, then works on.
func (c *client) run() {
	if !c.catchUp() {
		return
	}
	for c.next() {
	}
}

// catchUp learns what became of the orders that the last server did not
// answer. It answers false when this server does not answer either.
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
		if w.unsure != nil && !c.resolve(w) {
			return false
		}
	}
	return true
}

// resolve finds out whether a change that was not answered has happened.
func (c *client) resolve(w *workflow) bool {
	return c.send(order{method: "GET", path: "/v1/workflows/" + w.id, done: func(a harness.Answer) {
		var now workflowBody
		c.decode(a, &now)
		switch now.Version {
		case w.version:
		case w.version + 1:
			w.version++
			w.versions[w.version] = w.unsure
		default:
			c.load.t.Errorf("workflow %s has version %d after a lost change of version %d", w.id, now.Version, w.version)
		}
		w.unsure = nil
	}, lost: func() {}})
}

func (c *client) decode(a harness.Answer, into any) {
	if err := json.Unmarshal(a.Body, into); err != nil {
		c.load.t.Errorf("client %d: %v: %s", c.number, err, a.Body)
	}
}

// send sends an order. It answers false when there was no answer: the server
// is gone.
func (c *client) send(o order) bool {
	var headers []string
	if o.key != "" {
		headers = []string{"Idempotency-Key", o.key}
	}
	answer, err := c.api.Do(c.load.t.Context(), o.method, o.path, o.body, headers...)
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
		o.lost()
		return false
	case answer.Status == o.also:
		o.alsoDo()
	case answer.Status < 200 || answer.Status > 299:
		c.load.t.Errorf("client %d: %s %s: status %d: %s", c.number, o.method, o.path, answer.Status, answer.Body)
	default:
		c.countReplay(answer)
		o.done(answer)
	}
	c.work()
	return true
}

func (c *client) countReplay(answer harness.Answer) {
	if answer.Header.Get("Idempotent-Replayed") == "true" {
		c.load.ledger.count(func(n *counts) { n.replays++ })
	}
}

// name makes a name that nothing else has.
func (c *client) name(kind string) string {
	c.serial++
	return fmt.Sprintf("%s-%d-%d", kind, c.number, c.serial)
}

// maybeKey gives half of the orders an Idempotency-Key.
func (c *client) maybeKey() string {
	if c.random.IntN(2) == 0 {
		return ""
	}
	return c.name("key")
}

// restUpTo lets a client breathe now and then, so that the load has a rhythm
// of its own.
func (c *client) restUpTo(length time.Duration) {
	if c.random.IntN(8) == 0 {
		time.Sleep(time.Duration(c.random.Int64N(int64(length))))
	}
}
