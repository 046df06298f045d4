package clusterload_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// A node is asked to stop during a long call. Its waiting run continues on a worker,
// which knows the public URL for links.
func TestWorkerTakesOverFromDrainingNode(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	// A node that gets no CPU time may give up the call before it has released the run.
	for attempt := 1; !stopDuringCall(t); attempt++ {
		if attempt == 3 {
			t.Error("each time the node kept its waiting run as long as the call")
			break
		}
	}
}

// stopDuringCall stops a node during a call and checks that its waiting run continues
// elsewhere. It reports whether the node released the run while the call was in flight.
func stopDuringCall(t *testing.T) (released bool) {
	t.Helper()
	sent := make(chan string, 10)
	recipient := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent <- string(body)
	}))
	t.Cleanup(recipient.Close)
	target := sink.New(t)
	c := startCluster(t, 1)
	node := c.nodes[0]
	slow := flow.Define(t, node.Client, flow.HTTP("hang", target.URL+"/hang?hang"))
	asks := flow.Define(t, node.Client,
		flow.Wait("wait", "4s"),
		map[string]any{"id": "tell", "uses": "http.request", "with": map[string]any{"url": recipient.URL, "method": "POST", "body": "${{ links.ask.page }}"}},
		map[string]any{"id": "ask", "uses": "flow.approval", "needs": []string{"tell"}})
	hangs := startRun(t, node.Client, slow)
	harness.Eventually(t, "the call is in flight", func() bool { return len(target.CallsOf(hangs.ID)) > 0 })
	c.addWorker()
	waits := startRun(t, node.Client, asks)
	id := c.texts(`SELECT node FROM run_queue WHERE run_id = $1`, hangs.ID)[0]
	has := func() bool {
		return c.number(`SELECT count(*) FROM run_queue WHERE run_id = $1 AND node = $2`, waits.ID, id) > 0
	}
	harness.Eventually(t, "the run waits on its node", func() bool {
		return len(sent) > 0 || c.number(`SELECT count(*) FROM run_queue WHERE run_id = $1 AND node IS NOT NULL AND NOT slot`, waits.ID) == 1
	})
	if len(sent) > 0 {
		t.Log("inconclusive: the wait ended before the node was asked to stop")
	}
	node.Signal(t, syscall.SIGTERM)
	harness.Eventually(t, "the run leaves the node", func() bool { return !has() })
	released = !target.Dropped(hangs.ID) // the node still waits for the call
	var link string
	harness.Eventually(t, "the run continues", func() bool {
		select {
		case link = <-sent:
			return true
		default:
			return false
		}
	})
	if !strings.HasPrefix(link, node.URL+"/") {
		t.Errorf("link is %s, want one to %s", link, node.URL)
	}
	target.Release()
	if exit := node.Wait(t); exit.Code != 0 {
		t.Errorf("exit code %d, want 0", exit.Code)
	}
	return released
}

// Steps reach neither a node nor the database, even if the operator allows their
// addresses.
func TestStepsCannotReachNodesOrDatabase(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	target := sink.New(t)
	c := startCluster(t, 2, "--metrics-listen=127.0.0.1:0")
	api := c.nodes[0].Client
	database, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	if r := awaitRun(t, api, startRun(t, api, flow.Define(t, api, flow.HTTP("one", target.URL+"/x"))).ID); r.Status != "succeeded" {
		t.Fatalf("the sink cannot be reached: %+v", r.Error)
	}
	addresses := []string{database.Host, strings.TrimPrefix(c.nodes[0].URL, "http://"), strings.TrimPrefix(c.nodes[1].URL, "http://")}
	addresses = append(addresses, strings.Fields(strings.Join(c.texts(`SELECT listens FROM nodes`), " "))...)
	if len(addresses) != 7 {
		t.Fatalf("nodes listen on %v, want 4 addresses", addresses[3:])
	}
	for _, address := range addresses {
		id := flow.Define(t, api, flow.HTTP("one", "http://"+address+"/readyz"))
		// Heartbeats carry the addresses of the other nodes.
		harness.Eventually(t, "steps are denied "+address, func() bool {
			r := awaitRun(t, api, startRun(t, api, id).ID)
			return r.Status == "failed" && strings.Contains(r.Error.Code+r.Error.Message, "egress_denied")
		})
	}
}
