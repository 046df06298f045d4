package clusterload_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

// ways are those in which nodes hear of each other, with how long an
// interruption of a step takes at most when it is asked for on another node.
var ways = []struct {
	name string
	// cluster starts two nodes.
	cluster func(t *testing.T) *cluster
	cancel  time.Duration
	follow  time.Duration
}{
	{"listening", func(t *testing.T) *cluster { return start(t, 2, "--node-lease=10s") }, time.Second, time.Second},
	{"looking", func(t *testing.T) *cluster { return pooled(t, 2, false, "--node-lease=10s") }, 3500 * time.Millisecond, 3 * time.Second},
}

// pooled starts nodes behind a PgBouncer that lends connections for a
// transaction; with listening they have another way to the database for that.
func pooled(t *testing.T, nodes int, listening bool, args ...string) *cluster {
	t.Helper()
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	bouncer := postgres.StartBouncer(t, postgres.BouncerOptions{Server: server, PoolSize: 20})
	c := empty(t, append(args, "--database-pooled")...)
	name := c.url[strings.LastIndex(c.url, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	c.reach = bouncer.URL(name)
	if listening {
		c.args = append(c.args, "--database-listen-url="+c.url)
	}
	for range nodes {
		c.add()
	}
	return c
}

// A run is cancelled on another node than the one that executes it. The step
// that is under way is interrupted soon.
func TestCancelReachesAnotherNode(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			outside := newSink(t)
			c := way.cluster(t)
			id := define(t, c.nodes[0].Client, calls("hang", outside.URL+"/hang?hang"), calls("after", outside.URL+"/after"))
			var slowest time.Duration
			for range 8 {
				r := begin(t, c.nodes[0].Client, id).ID
				within(t, 10*time.Second, "the call is under way", func() bool { return len(outside.of(r)) == 1 })
				var now run
				asked := time.Now()
				c.nodes[1].Expect(t, 200, "POST", "/v1/runs/"+r+"/cancel", nil).Decode(t, &now)
				if now.Status != "cancelled" {
					t.Errorf("the cancel was answered with %s", now.Status)
				}
				var at time.Time
				within(t, 10*time.Second, "the call is given up", func() (ok bool) { at, ok = outside.gaveUp(r); return ok })
				slowest = max(slowest, at.Sub(asked))
				if n := len(outside.of(r)); n != 1 {
					t.Errorf("%d calls after a cancel", n)
				}
			}
			t.Logf("the slowest interruption took %s", ms(slowest))
			if slowest > way.cancel*patience/2 {
				t.Errorf("an interruption took %v, more than %v", slowest, way.cancel)
			}
			c.settle()
		})
	}
}

// A run waits for an answer; it is given on the other node. It goes on.
func TestAnswerOnAnotherNode(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			outside := newSink(t)
			c := way.cluster(t)
			ask := map[string]any{"id": "ask", "uses": "flow.approval"}
			short := map[string]any{"id": "ask", "uses": "flow.approval", "with": map[string]any{"timeout": "8s"}}
			var slowest time.Duration
			for _, step := range []map[string]any{ask, short} {
				id := define(t, c.nodes[0].Client, calls("before", outside.URL+"/x"), step, calls("after", outside.URL+"/x"))
				for range 4 {
					r := begin(t, c.nodes[0].Client, id).ID
					within(t, 10*time.Second, "it waits", func() bool {
						answer := c.nodes[1].Expect(t, 200, "GET", "/v1/runs/"+r, nil)
						return strings.Contains(string(answer.Body), `"waiting"`)
					})
					asked := time.Now()
					c.nodes[1].Expect(t, 200, "POST", "/v1/runs/"+r+"/steps/ask/resume", map[string]any{"approved": true})
					if end := ended(t, c.nodes[1].Client, r, 20*time.Second); end.Status != "succeeded" {
						t.Errorf("the run is %s", end.Status)
					}
					slowest = max(slowest, time.Since(asked))
				}
			}
			t.Logf("the slowest run had ended %s after its answer", ms(slowest))
			if slowest > way.cancel*patience/2 {
				t.Errorf("a run went on only %v after its answer", slowest)
			}
			c.settle()
		})
	}
}

// A run is executed on one node, and waited for and followed on another.
func TestFollowOnAnotherNode(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			outside := newSink(t)
			c := way.cluster(t)
			id := define(t, c.nodes[0].Client, calls("one", outside.URL+"/x?ms=700"), calls("two", outside.URL+"/x?ms=700"))
			var slowest time.Duration
			for range 3 {
				events := listen(t, c.nodes[1].Client, "/v1/events/stream")
				r := begin(t, c.nodes[0].Client, id).ID
				steps := listen(t, c.nodes[1].Client, "/v1/runs/"+r+"/events")
				end := steps.await(t, "end", "")
				over := ended(t, c.nodes[1].Client, r, 10*time.Second)
				slowest = max(slowest, end.Sub(*over.FinishedAt))
				slowest = max(slowest, events.await(t, "run.succeeded", r).Sub(*over.FinishedAt))
				if steps.count("step") < 2 {
					t.Errorf("a follower heard of %d changes of steps", steps.count("step"))
				}
				events.close()
				steps.close()
			}
			t.Logf("the slowest news came %s after the end of its run", ms(slowest))
			if slowest > way.follow*patience/2 {
				t.Errorf("a follower learned of the end of a run %v after it", slowest)
			}
			waitsFor(t, c, way.follow)
		})
	}
}

// waitsFor starts runs that are executed on another node than the one that is
// asked to wait: the one that answers has no places left.
func waitsFor(t *testing.T, c *cluster, soon time.Duration) {
	t.Helper()
	parent := define(t, c.nodes[0].Client, map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "1500ms"}}, sets("two"))
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			begun := time.Now()
			answer, err := c.nodes[i%2].Do(t.Context(), "POST", "/v1/workflows/"+parent+"/runs", nil, "Prefer", "wait=20")
			took := time.Since(begun)
			if err != nil || answer.Status != 200 || !strings.Contains(string(answer.Body), `"succeeded"`) || took > 1500*time.Millisecond+soon*patience {
				t.Errorf("a request that waits was answered after %v with %d %s (%v)", took, answer.Status, answer.Body, err)
			}
		})
	}
	group.Wait()
}

// stream is what somebody follows.
type stream struct {
	mu    sync.Mutex
	heard []heard
	close func()
}

type heard struct {
	name, data string
	at         time.Time
}

func listen(t *testing.T, c *harness.Client, path string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	response, err := c.Open(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d", path, response.StatusCode)
	}
	s := &stream{close: cancel}
	t.Cleanup(cancel)
	go func() {
		defer response.Body.Close()
		var h heard
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				h.name = value
			case "data":
				h.data = value
			case "":
				h.at = time.Now()
				s.mu.Lock()
				s.heard = append(s.heard, h)
				s.mu.Unlock()
				h = heard{}
			}
		}
	}()
	return s
}

func (s *stream) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, h := range s.heard {
		if h.name == name {
			n++
		}
	}
	return n
}

// await waits for news and tells when it came.
func (s *stream) await(t *testing.T, name, about string) (at time.Time) {
	t.Helper()
	within(t, 20*time.Second, name+" was heard", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, h := range s.heard {
			if h.name == name && strings.Contains(h.data, about) {
				at = h.at
				return true
			}
		}
		return false
	})
	return at
}
