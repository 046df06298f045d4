package clusterload_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/sink"
)

// startPooled starts nodes behind a PgBouncer that pools by transaction. With
// listening they have a direct connection for LISTEN.
func startPooled(t *testing.T, nodes int, listening bool, args ...string) *cluster {
	t.Helper()
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	bouncer := postgres.StartBouncer(t, postgres.BouncerOptions{Server: server, PoolSize: 20})
	c := newInstalledCluster(t, append(args, "--database-pooled")...)
	name := c.url[strings.LastIndex(c.url, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	c.nodeURL = bouncer.URL(name)
	if listening {
		c.args = append(c.args, "--database-listen-url="+c.url)
	}
	for range nodes {
		c.addNode()
	}
	return c
}

// Runs are cancelled, resumed, followed and awaited on a node other than the one
// that executes them, whether nodes get notifications or poll.
func TestOperationsAcrossNodes(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]func(t *testing.T) *cluster{
		"notifications": func(t *testing.T) *cluster { return startCluster(t, 2) },
		"polling":       func(t *testing.T) *cluster { return startPooled(t, 2, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Seed(t)
			c, target := nodes(t), sink.New(t)
			for range lane.Pick(1, 4) {
				testCancel(t, c, target)
				testResume(t, c, target)
				testFollow(t, c)
				testWait(t, c)
			}
			c.awaitIdle()
		})
	}
}

// testCancel cancels a run on another node. The running step is interrupted and the
// next one does not start.
func testCancel(t *testing.T, c *cluster, target *sink.Sink) {
	t.Helper()
	id := flow.Define(t, c.nodes[0].Client, flow.HTTP("hang", target.URL+"/hang?hang"), flow.HTTP("after", target.URL+"/after"))
	for range 2 {
		r := startRun(t, c.nodes[0].Client, id).ID
		harness.Eventually(t, "the call is in flight", func() bool { return len(target.CallsOf(r)) > 0 })
		var now run
		requested := time.Now()
		expect(t, c.nodes[1].Client, 200, "POST", "/v1/runs/"+r+"/cancel", nil).Decode(t, &now)
		if now.Status != "cancelled" {
			t.Errorf("status after the cancel is %s, want cancelled", now.Status)
		}
		harness.Eventually(t, "the call is dropped", func() bool { return target.Dropped(r) })
		t.Logf("the call of a cancelled run was dropped after %s", ms(time.Since(requested)))
		if n := len(target.CallsOf(r)); n != 1 {
			t.Errorf("got %d calls of a cancelled run, want 1", n)
		}
	}
}

// testResume resumes approvals on another node: one without a timeout, and one whose
// timeout is so short that the run stays on its node. Both runs continue.
func testResume(t *testing.T, c *cluster, target *sink.Sink) {
	t.Helper()
	for _, with := range []map[string]any{{}, {"timeout": "9s"}} {
		id := flow.Define(t, c.nodes[0].Client, flow.HTTP("before", target.URL+"/x"),
			map[string]any{"id": "ask", "uses": "flow.approval", "with": with}, flow.HTTP("after", target.URL+"/x"))
		for attempt := 1; !resumeOnOtherNode(t, c, id); attempt++ {
			if attempt == 5 {
				t.Log("inconclusive: each approval timed out before it was resumed")
				break
			}
		}
	}
}

// resumeOnOtherNode starts a run and resumes its approval on the other node. It
// reports whether it did so before the approval timed out.
func resumeOnOtherNode(t *testing.T, c *cluster, workflow string) bool {
	t.Helper()
	r := startRun(t, c.nodes[0].Client, workflow).ID
	harness.Eventually(t, "the run waits or has ended", func() bool {
		now := string(expect(t, c.nodes[1].Client, 200, "GET", "/v1/runs/"+r, nil).Body)
		return strings.Contains(now, `"waiting"`) || !strings.Contains(now, `"running"`)
	})
	requested := time.Now()
	response, err := do(t, c.nodes[1].Client, "POST", "/v1/runs/"+r+"/steps/ask/resume", map[string]any{"approved": true})
	if err == nil && flow.ErrorCode(response) == "step_not_waiting" {
		return false
	}
	if err != nil || response.Status != http.StatusOK {
		t.Fatalf("resume: %d %s %v", response.Status, response.Body, err)
	}
	if end := awaitRun(t, c.nodes[1].Client, r); end.Status != "succeeded" {
		t.Errorf("run is %s, want succeeded", end.Status)
	}
	t.Logf("the run ended %s after it was resumed", ms(time.Since(requested)))
	return true
}

// testFollow follows the events of a workspace and the steps of a run on another
// node.
func testFollow(t *testing.T, c *cluster) {
	t.Helper()
	gate := sink.New(t)
	id := flow.Define(t, c.nodes[0].Client, flow.HTTP("one", gate.URL+"/x?hang"), flow.HTTP("two", gate.URL+"/x"))
	events := openStream(t, c.nodes[1].Client, "/v1/events/stream")
	defer events.close()
	r := startRun(t, c.nodes[0].Client, id).ID
	steps := openStream(t, c.nodes[1].Client, "/v1/runs/"+r+"/events")
	defer steps.close()
	steps.await(t, "step", "")
	gate.Release()
	steps.await(t, "end", "")
	events.await(t, "run.succeeded", r)
	if steps.count("step") < 2 {
		t.Errorf("the stream has %d step events, want at least 2", steps.count("step"))
	}
}

// testWait starts runs on both nodes with requests that wait for the end of the run.
func testWait(t *testing.T, c *cluster) {
	t.Helper()
	id := flow.Define(t, c.nodes[0].Client, flow.Wait("wait", "1s"), flow.Set("two", 1))
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			began := time.Now()
			response, err := do(t, c.nodes[i%2].Client, "POST", "/v1/workflows/"+id+"/runs", nil, "Prefer", "wait=60")
			if err == nil && response.Status == 201 && time.Since(began) >= time.Minute {
				t.Log("inconclusive: the run took longer than a request may wait")
				return
			}
			if err != nil || response.Status != 200 || !strings.Contains(string(response.Body), `"succeeded"`) {
				t.Errorf("start with Prefer: wait returned %d %s (%v)", response.Status, response.Body, err)
			}
		})
	}
	group.Wait()
}

// stream collects the events of a stream.
type stream struct {
	mu       sync.Mutex
	received []harness.Event
	close    func()
}

func openStream(t *testing.T, c *harness.Client, path string) *stream {
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
		for e := range harness.ReadEvents(response.Body) {
			s.mu.Lock()
			s.received = append(s.received, e)
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *stream) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.received {
		if e.Name == name {
			n++
		}
	}
	return n
}

// await waits for an event whose data contains a text.
func (s *stream) await(t *testing.T, name, about string) {
	t.Helper()
	harness.Eventually(t, "the event "+name+" arrives", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.received {
			if e.Name == name && strings.Contains(e.Data, about) {
				return true
			}
		}
		return false
	})
}
