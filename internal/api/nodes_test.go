package api_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

func TestNodes(t *testing.T) {
	const members = "data next_cursor"
	runScenarios(t, []scenario{
		{
			name: "a single service is the only node, and waiting runs belong to no node",
			setup: func(w *testWorkspace) {
				w.workflow("wf", waitStep)
				w.runUntilWaiting("run", "wf")
			},
			request: "GET /v1/nodes", status: 200, members: members,
			contains: `{"data": [{"id": "~node_[0-9a-z]{26}", "role": "serve", "version": "~.+", "expires_at": null, "runs": 0, "this": true}], "next_cursor": null}`,
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.items()[0], "id name version role started_at seen_at expires_at runs this")
				host, err := os.Hostname()
				if got := a.items()[0]["name"]; err == nil && got != host {
					w.t.Errorf("the name is %v, want %s", got, host)
				}
			},
		},
		{name: "nodes are for admins", request: "GET /v1/nodes", scope: "read", status: 403, code: "insufficient_scope", message: "admin"},
		{name: "a page of one holds it", request: "GET /v1/nodes?limit=1", status: 200, contains: `{"data": [{"this": true}], "next_cursor": null}`},
		{name: "a limit of 0 is rejected", request: "GET /v1/nodes?limit=0", status: 400, code: "invalid_request", message: "limit"},
		{name: "a made-up cursor is rejected", request: "GET /v1/nodes?cursor=x", status: 400, code: "invalid_cursor"},
		{name: "an unknown parameter is rejected", request: "GET /v1/nodes?role=serve", status: 400, code: "invalid_request", message: "role", lenient: true},
	})
}

// A run on a node is counted for its own workspace only.
func TestNodeRunCounts(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	t.Cleanup(receiver.Close)
	t.Cleanup(release)
	s := newServer(t, func(c *config.Serve) {
		var loopback config.Network
		if err := loopback.UnmarshalText([]byte("127.0.0.0/8")); err != nil {
			t.Fatal(err)
		}
		c.EgressAllow = []config.Network{loopback}
	})
	w, other := s.newTestWorkspace(t), s.newTestWorkspace(t)
	w.workflow("wf", `{"id": "a", "uses": "http.request", "with": {"url": "`+receiver.URL+`"}}`)
	for range 3 {
		w.startRun("run", "wf", "")
	}
	number := func(w *testWorkspace) string { return w.call("GET", "/v1/nodes", "").wantStatus(200).column("runs")[0] }
	eventually(t, "three runs are held", func() bool { return number(w) == "3" })
	if got := number(other); got != "0" {
		t.Errorf("another workspace sees %s", got)
	}
	before := w.call("GET", "/v1/nodes", "").wantStatus(200).items()[0]
	release()
	eventually(t, "no run is held", func() bool { return number(w) == "0" })
	after := w.call("GET", "/v1/nodes", "").wantStatus(200).items()[0]
	if before["id"] != after["id"] || before["started_at"] != after["started_at"] || before["seen_at"].(string) > after["seen_at"].(string) {
		t.Errorf("before %v, after %v", before, after)
	}
	s.restart(t)
	if again := w.call("GET", "/v1/nodes", "").wantStatus(200).items(); len(again) != 1 || again[0]["id"] == before["id"] {
		t.Errorf("after a restart: %v", again)
	}
}
