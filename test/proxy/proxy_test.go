// Package proxy_test runs the real server with an outbound proxy.
package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const password = "pr0xy-s3cr3t"

// proxy is an HTTP proxy for CONNECT that records its targets.
type proxy struct {
	*httptest.Server
	mu      sync.Mutex
	targets map[string]int
	refused int // requests without the right password
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{targets: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	// A request has the credentials in another header than BasicAuth reads.
	given := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	_, got, _ := given.BasicAuth()
	p.mu.Lock()
	if got != password {
		p.refused++
	}
	p.targets[r.Method+" "+r.Host]++
	p.mu.Unlock()
	if got != password {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	target, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer target.Close()
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		_, _ = io.Copy(target, buffered)
		target.Close()
	}()
	_, _ = io.Copy(conn, target)
}

// url returns the URL of the proxy with a password.
func (p *proxy) url(password string) string {
	u, _ := url.Parse(p.URL)
	u.User = url.UserPassword("stepmill", password)
	return u.String()
}

func (p *proxy) tunnels(server *httptest.Server) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.targets["CONNECT "+server.Listener.Addr().String()]
}

// server counts its requests and responds with a list.
func server(t *testing.T) (*httptest.Server, func() int) {
	t.Helper()
	var mu sync.Mutex
	count := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		count++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"items": []}`)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

func start(t *testing.T, proxyURL string) *harness.Server {
	t.Helper()
	return harness.Start(t, t.TempDir(), "--egress-allow=127.0.0.0/8", "--egress-proxy="+proxyURL)
}

type runBody struct {
	ID     string
	Status string
	Error  *struct{ Code, Message string }
}

// runOnce starts a run of a workflow and returns it when it has ended.
func runOnce(t *testing.T, s *harness.Server, id string) runBody {
	t.Helper()
	var r runBody
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+id+"/runs", map[string]any{}).Decode(t, &r)
	harness.Eventually(t, "the run ends", func() bool {
		s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+r.ID, nil).Decode(t, &r)
		return r.Status != "running"
	})
	return r
}

// Steps, polls and webhooks all go through the proxy.
func TestEverythingGoesThroughTheProxy(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	called, _ := server(t)
	polled, polls := server(t)
	hooked, deliveries := server(t)
	s := start(t, p.url(password))
	s.Expect(t, http.StatusCreated, "POST", "/v1/webhooks", map[string]any{"url": hooked.URL, "events": []string{"run.succeeded"}})
	id := flow.Define(t, s.Client, flow.HTTP("call", called.URL))
	if r := runOnce(t, s, id); r.Status != "succeeded" {
		t.Errorf("the run is %+v", r)
	}
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+id, map[string]any{"triggers": []any{map[string]any{
		"id": "p", "type": "poll", "every": "1m", "request": map[string]any{"url": polled.URL}, "items": "response.body.items", "key": "item.id",
	}}})
	harness.Eventually(t, "the poll and the delivery arrive", func() bool { return polls() > 0 && deliveries() > 0 })
	for name, target := range map[string]*httptest.Server{"step": called, "poll": polled, "webhook": hooked} {
		if p.tunnels(target) == 0 {
			t.Errorf("the request of a %s did not go through the proxy", name)
		}
	}
	s.Stop(t)
	if strings.Contains(s.Log(), password) {
		t.Error("the log contains the password of the proxy")
	}
}

// Requests never go around a proxy that fails, and no error reveals the password.
func TestProxyFailures(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	for name, test := range map[string]struct{ url, says string }{
		"a wrong password":          {p.url("wr0ng-" + password), "407"},
		"a proxy that does not run": {"http://me:" + password + "@127.0.0.1:1", "could not connect to the egress proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called, calls := server(t)
			s := start(t, test.url)
			r := runOnce(t, s, flow.Define(t, s.Client, flow.HTTP("call", called.URL, "retry", map[string]any{"max_attempts": 1})))
			if r.Status != "failed" || r.Error == nil || r.Error.Code != "connection_failed" || !strings.Contains(r.Error.Message, test.says) {
				t.Errorf("the run is %+v", r)
			}
			if calls() != 0 {
				t.Error("the request went around the proxy")
			}
			s.Stop(t)
			if text := s.Log() + fmt.Sprint(r.Error); strings.Contains(text, password) {
				t.Errorf("the password of the proxy is in the log or the error: %s", text)
			}
		})
	}
}
