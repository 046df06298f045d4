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
			name: "a service by itself is the only node, and runs that wait are in nobody's hands",
			given: func(w *world) {
				w.workflow("wf", waitStep)
				w.waiting("run", "wf")
			},
			call: "GET /v1/nodes", status: 200, keys: members,
			answer: `{"data": [{"id": "~node_[0-9a-z]{26}", "role": "serve", "version": "~.+", "expires_at": null, "runs": 0, "this": true}], "next_cursor": null}`,
			then: func(w *world, a *answer) {
				wantKeys(w.t, a.items()[0], "id name version role started_at seen_at expires_at runs this")
				host, err := os.Hostname()
				if got := a.items()[0]["name"]; err == nil && got != host {
					w.t.Errorf("the name is %v, want %s", got, host)
				}
			},
		},
		{name: "nodes are for admins", call: "GET /v1/nodes", as: "read", status: 403, code: "insufficient_scope", says: "admin"},
		{name: "a page of one holds it", call: "GET /v1/nodes?limit=1", status: 200, answer: `{"data": [{"this": true}], "next_cursor": null}`},
		{name: "a limit of 0 is refused", call: "GET /v1/nodes?limit=0", status: 400, code: "invalid_request", says: "limit"},
		{name: "a made-up cursor is refused", call: "GET /v1/nodes?cursor=x", status: 400, code: "invalid_cursor"},
		{name: "what is not known is refused", call: "GET /v1/nodes?role=serve", status: 400, code: "invalid_request", says: "role", loose: true},
	})
}

// A run in the hands of a node is counted for its own workspace alone.
func TestRunsOfNodes(t *testing.T) {
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
	w, other := s.newWorld(t), s.newWorld(t)
	w.workflow("wf", `{"id": "a", "uses": "http.request", "with": {"url": "`+receiver.URL+`"}}`)
	for range 3 {
		w.run("run", "wf", "")
	}
	number := func(w *world) string { return w.call("GET", "/v1/nodes", "").want(200).column("runs")[0] }
	eventually(t, "three runs are held", func() bool { return number(w) == "3" })
	if got := number(other); got != "0" {
		t.Errorf("another workspace sees %s", got)
	}
	before := w.call("GET", "/v1/nodes", "").want(200).items()[0]
	release()
	eventually(t, "no run is held", func() bool { return number(w) == "0" })
	after := w.call("GET", "/v1/nodes", "").want(200).items()[0]
	if before["id"] != after["id"] || before["started_at"] != after["started_at"] || before["seen_at"].(string) > after["seen_at"].(string) {
		t.Errorf("before %v, after %v", before, after)
	}
	s.restart(t)
	if again := w.call("GET", "/v1/nodes", "").want(200).items(); len(again) != 1 || again[0]["id"] == before["id"] {
		t.Errorf("after a restart: %v", again)
	}
}
