package transport

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

// rejectOverPipe sends a request that is rejected before its body is read, and
// returns how long the response and the end of the connection took.
func rejectOverPipe(t *testing.T, s *Server, head string, then func(net.Conn)) (responded, closed time.Duration) {
	t.Helper()
	ours, theirs := net.Pipe()
	listener := &fakeListener{conns: make(chan net.Conn, 1)}
	listener.conns <- remoteConn{theirs}
	server := &http.Server{ReadTimeout: 30 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, body := trackBody(w, r)
		writeError(&recorder{ResponseWriter: w, body: body}, fault.New(fault.Unauthorized, "no"), "")
		s.drain(body, r)
	})}
	var others sync.WaitGroup
	others.Go(func() { _ = server.Serve(listener) })
	defer others.Wait()
	defer close(listener.conns)
	start := time.Now()
	others.Go(func() {
		_, _ = io.WriteString(ours, "POST / HTTP/1.1\r\nHost: x\r\n"+head+"\r\n\r\n")
		then(ours)
	})
	reader := bufio.NewReader(ours)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Fatalf("the response is %v, %v", response, err)
	}
	responded = time.Since(start)
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Errorf("the connection ended with %v", err)
	}
	return responded, time.Since(start)
}

// A client that stalls, or does not stop, holds its connection only for a short
// time after the response.
func TestDrainIsLimited(t *testing.T) {
	t.Parallel()
	stall := func(net.Conn) {}
	endless := func(conn net.Conn) {
		for {
			if _, err := fmt.Fprintf(conn, "10000\r\n%065536d\r\n", 0); err != nil {
				return
			}
		}
	}
	const soon = time.Second // net/http waits for half a second before it closes
	for _, tc := range []struct {
		name, head        string
		then              func(net.Conn)
		responded, closed time.Duration
	}{
		{"a large body that stalls", "Content-Length: 8000000", stall, 0, drainTime + soon},
		{"a small body that stalls", "Content-Length: 100", stall, drainTime, drainTime + soon},
		{"chunks that stall", "Transfer-Encoding: chunked", stall, drainTime, drainTime + soon},
		{"chunks without end", "Transfer-Encoding: chunked", endless, 0, drainTime + soon},
		{"more than is drained", "Content-Length: 100000000", stall, 0, soon},
		{"a body that the server must ask for", "Content-Length: 8000000\r\nExpect: 100-continue", stall, 0, soon},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				responded, closed := rejectOverPipe(t, &Server{drains: newDrains()}, tc.head, tc.then)
				if responded > tc.responded || closed > tc.closed {
					t.Errorf("responded after %s, closed after %s", responded, closed)
				}
			})
		})
	}
}

// One network cannot occupy all drains. Without one, the connection is closed
// soon after the response.
func TestDrainsPerNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{drains: newDrains()}
		for range maxDrainsPerNetwork {
			if !s.drains.acquire("192.0.2.1") { // that of remoteConn
				t.Fatal("rejected")
			}
		}
		if s.drains.acquire("192.0.2.1") || !s.drains.acquire("192.0.2.2") {
			t.Error("the limit does not apply to one network")
		}
		if _, closed := rejectOverPipe(t, s, "Content-Length: 8000000", func(net.Conn) {}); closed > time.Second {
			t.Errorf("closed after %s", closed)
		}
	})
	d := newDrains()
	for i := range maxDrains {
		if !d.acquire(fmt.Sprint(i)) {
			t.Fatal("rejected")
		}
	}
	if d.acquire("another") {
		t.Error("there is no limit in total")
	}
	for i := range maxDrains {
		d.release(fmt.Sprint(i))
	}
	if d.total != 0 || len(d.byNetwork) != 0 {
		t.Errorf("%d drains in the end, %v", d.total, d.byNetwork)
	}
}
