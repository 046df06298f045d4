package egress_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/test/lane"
)

// connCountingServer starts a server that responds with the number of the connection.
func connCountingServer(t *testing.T, config *tls.Config) (url string, conns *atomic.Int64) {
	t.Helper()
	conns = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }))
	server.Listener.Close()
	server.Listener = listen(t, outside+":0")
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	t.Cleanup(server.Close)
	if config == nil {
		server.Start()
	} else {
		server.TLS, server.EnableHTTP2 = config, true
		server.StartTLS()
	}
	return server.URL, conns
}

func TestWorkspacesShareNoConnections(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	secure := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}}
	for name, config := range map[string]*tls.Config{"HTTP/1.1": nil, "HTTP/2": secure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, conns := connCountingServer(t, config)
			client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool()})
			owner := map[string]string{}
			for i := range 60 {
				workspace := fmt.Sprintf("w%d", i%3)
				resp, err := client.Do(t.Context(), egress.Request{Workspace: workspace, URL: url})
				if err != nil {
					t.Fatal(err)
				}
				conn := string(resp.Body)
				if other, ok := owner[conn]; ok && other != workspace {
					t.Fatalf("%s and %s share %s", workspace, other, conn)
				}
				owner[conn] = workspace
			}
			if n := conns.Load(); n != 3 {
				t.Errorf("%d connections for 3 workspaces", n)
			}
		})
	}
}

func TestEvictsTheLeastRecentlyUsedPool(t *testing.T) {
	t.Parallel()
	url, conns := connCountingServer(t, nil)
	client := newClient(t, egress.Config{Policy: internet, Limits: egress.Limits{Workspaces: 2}})
	for i, workspace := range []string{"a", "b", "a", "c", "a", "b"} {
		if _, err := client.Do(t.Context(), egress.Request{Workspace: workspace, URL: url}); err != nil {
			t.Fatal(err)
		}
		if n, expected := conns.Load(), []int64{1, 2, 2, 3, 3, 4}[i]; n != expected {
			t.Errorf("after call %d there were %d connections, want %d", i, n, expected)
		}
	}
}

func TestRequestCompletesAfterItsPoolIsRetired(t *testing.T) {
	t.Parallel()
	arrived, answer := make(chan bool, 1), make(chan bool)
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-answer
		hello(w, r)
	})
	client := newClient(t, egress.Config{Policy: internet, Limits: egress.Limits{Workspaces: 1}})
	result := make(chan error, 1)
	go func() {
		_, err := client.Do(t.Context(), egress.Request{Workspace: "a", URL: server.URL})
		result <- err
	}()
	<-arrived
	client.Close()
	close(answer)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if _, err := client.Do(t.Context(), egress.Request{Workspace: "b", URL: server.URL}); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

func TestCancelAbortsARequest(t *testing.T) {
	t.Parallel()
	hang := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for name, tc := range map[string]struct {
		url      string
		resolver egress.Resolver
	}{
		"in the lookup":    {"http://host.test/", silentResolver{}},
		"in the handshake": {strings.Replace(rawServer(t, hang), "http:", "https:", 1), nil},
		"in the header":    {rawServer(t, hang), nil},
		"in the body":      {rawServer(t, func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n"); hang(conn) }), nil},
	} {
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			t.Run(fmt.Sprintf("%s by %v", name, cause), func(t *testing.T) {
				t.Parallel()
				client := newClient(t, egress.Config{Policy: internet, Resolver: tc.resolver})
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				code := egress.TimedOut
				if errors.Is(cause, context.Canceled) {
					code = egress.Cancelled
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				_, err := client.Do(ctx, egress.Request{URL: tc.url})
				wantError(t, err, code)
				if !errors.Is(err, cause) {
					t.Errorf("the cause is %v", errors.Unwrap(err))
				}
			})
		}
	}
}

func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	s := &sink{}
	client, port := redirector(t, s)
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			workspace, url := fmt.Sprintf("w%d", i%100), fmt.Sprintf("http://one.test:%d/end", port)
			if i%2 == 0 {
				url = start(port, 307, fmt.Sprintf("http://two.test:%d/end", port))
			}
			body := fmt.Sprintf("body %d", i)
			_, err := client.Do(t.Context(), egress.Request{Workspace: workspace, Method: "POST", URL: url, Body: []byte(body), FollowRedirects: true})
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if len(s.calls) != 300 {
		t.Errorf("%d calls arrived", len(s.calls))
	}
}

// Not parallel: it counts the goroutines of the whole process, and those of other tests
// may come and go.
func TestLeaksNoGoroutines(t *testing.T) {
	lane.LongOnly(t)
	server := serve(t, outside, hello)
	endless := rawServer(t, func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		io.Copy(conn, zeroes{})
	})
	silent := rawServer(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	runtime.GC()
	before := runtime.NumGoroutine()
	client := egress.New(egress.Config{
		Policy:   internet,
		Resolver: names{"many.test": {"127.1.0.9", "127.1.0.8", outside}, "private.test": {"127.0.0.1"}},
		Limits:   egress.Limits{Workspaces: 4},
	})
	var calls sync.WaitGroup
	for i := range 40 {
		for _, url := range []string{
			server.URL, endless, silent, strings.Replace(silent, "http:", "https:", 1), "http://private.test/", "http://127.1.0.9:1/",
			fmt.Sprintf("http://many.test:%d/", portOf(server.Listener.Addr())),
		} {
			calls.Go(func() {
				client.Do(t.Context(), egress.Request{Workspace: fmt.Sprint(i % 8), URL: url, Timeout: 200 * time.Millisecond})
			})
		}
	}
	calls.Wait()
	client.Close()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
