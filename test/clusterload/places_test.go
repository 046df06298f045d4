package clusterload_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// A node is told to stop while a call of its takes long. What waits on it goes on
// elsewhere meanwhile: on a worker, which knows where links lead to.
func TestLinksOnAWorkerWhileItsNodeDrains(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	told := make(chan string, 10)
	people := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- string(body)
	}))
	t.Cleanup(people.Close)
	outside := newSink(t)
	c := start(t, 1)
	node := c.nodes[0]
	slow := define(t, node.Client, calls("hang", outside.URL+"/hang?ms=15000"))
	asks := define(t, node.Client,
		map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "3s"}},
		map[string]any{"id": "tell", "uses": "http.request", "with": map[string]any{"url": people.URL, "method": "POST", "body": "${{ links.ask.page }}"}},
		map[string]any{"id": "ask", "uses": "flow.approval", "needs": []string{"tell"}})
	hangs := begin(t, node.Client, slow)
	within(t, 10*time.Second, "the call is under way", func() bool { return len(outside.of(hangs.ID)) == 1 })
	c.worker()
	waits := begin(t, node.Client, asks)
	within(t, 10*time.Second, "the run waits on its node", func() bool {
		return c.number(`SELECT count(*) FROM run_queue WHERE run_id = $1 AND node IS NOT NULL AND NOT slot`, waits.ID) == 1
	})
	node.Signal(t, syscall.SIGTERM)
	select {
	case link := <-told:
		if !strings.HasPrefix(link, node.URL+"/") {
			t.Errorf("the link is %s, and the service was at %s", link, node.URL)
		}
	case <-node.Gone():
		t.Error("the run waited until its node was gone")
	}
	outside.release()
	if exit := node.Wait(t, 40*time.Second); exit.Code != 0 {
		t.Errorf("the node ended with %d", exit.Code)
	}
}

// No step reaches a node, not even another one, or the database, whatever the
// operator has opened.
func TestStepsReachNoNode(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	outside := newSink(t)
	c := start(t, 2, "--metrics-listen=127.0.0.1:0")
	api := c.nodes[0].Client
	database, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	if r := ended(t, api, begin(t, api, define(t, api, calls("one", outside.URL+"/x"))).ID, 20*time.Second); r.Status != "succeeded" {
		t.Fatalf("what is outside cannot be reached: %+v", r.Error)
	}
	places := []string{database.Host, strings.TrimPrefix(c.nodes[0].URL, "http://"), strings.TrimPrefix(c.nodes[1].URL, "http://")}
	places = append(places, strings.Fields(strings.Join(c.texts(`SELECT listens FROM nodes`), " "))...)
	if len(places) != 7 {
		t.Fatalf("the nodes say that they listen on %v", places[3:])
	}
	time.Sleep(3 * time.Second) // with their next heartbeats the nodes know each other
	for _, place := range places {
		r := ended(t, api, begin(t, api, define(t, api, calls("one", "http://"+place+"/readyz"))).ID, 20*time.Second)
		if r.Status != "failed" || !strings.Contains(r.Error.Code+r.Error.Message, "egress_denied") {
			t.Errorf("%s is reached: %s %+v", place, r.Status, r.Error)
		}
	}
}
