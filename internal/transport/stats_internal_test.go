package transport

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/fault"
)

// newStatsServer has a few routes without services.
func newStatsServer() *Server {
	s := &Server{Options: Options{Log: slog.New(slog.DiscardHandler)}, routes: &RouteTable{}, unmatched: newRequestStats(), dashboard: newDashboard(nil, nil), errors: newErrors(), streams: newOpenStreams()}
	for _, pattern := range []string{"GET /v1/things", "GET /v1/things/{id}", "POST /v1/things"} {
		method, path, _ := strings.Cut(pattern, " ")
		e := &Endpoint{Route: Route{Method: method, Path: path}, requests: newRequestStats()}
		s.routes.endpoints = append(s.routes.endpoints, e)
	}
	return s
}

// endpoint returns the endpoint of a pattern, or nil.
func (s *Server) endpoint(pattern string) *Endpoint {
	for _, e := range s.routes.endpoints {
		if e.Method+" "+e.Path == pattern {
			return e
		}
	}
	return nil
}

func TestRouteStats(t *testing.T) {
	t.Parallel()
	s := newStatsServer()
	if got := s.Stats(); len(got.Routes) != 0 || len(got.Errors) != len(fault.Codes()) {
		t.Errorf("before any request: %+v", got)
	}
	record := func(pattern string, status int, c Caller, took time.Duration) {
		c.endpoint = s.endpoint(pattern)
		s.recordRequest(&recorder{status: status}, &c, took)
	}
	record("GET /v1/things", 200, Caller{}, time.Millisecond)
	record("GET /v1/things", 304, Caller{}, time.Second)
	record("GET /v1/things", 429, Caller{code: fault.RateLimited}, 0)
	record("GET /v1/things", 0, Caller{}, 0)
	record("POST /v1/things", 201, Caller{streamed: true}, time.Hour)
	record("", 404, Caller{code: fault.NotFound}, time.Minute)
	record("", 700, Caller{}, 0)
	got := s.Stats()
	type line struct {
		Method, Path string
		Classes      map[int]int64
		Total        uint64
		Sum          float64
	}
	var lines []line
	for _, r := range got.Routes {
		lines = append(lines, line{r.Method, r.Path, r.Classes, r.Duration.Total(), r.Duration.Sum})
	}
	want := []line{
		{"GET", "/v1/things", map[int]int64{2: 2, 3: 1, 4: 1}, 4, 1.001},
		{"POST", "/v1/things", map[int]int64{2: 1}, 0, 0},
		{"", "", map[int]int64{4: 1, 5: 1}, 2, 60},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	for code, n := range got.Errors {
		if (code == string(fault.RateLimited) || code == string(fault.NotFound)) != (n == 1) || n > 1 {
			t.Errorf("%s counts %d", code, n)
		}
	}
}

// Errors are counted by the code of the response. An error after the response
// has started does not count.
func TestErrorStats(t *testing.T) {
	t.Parallel()
	s := newStatsServer()
	c := &Caller{}
	s.fail(&recorder{ResponseWriter: httptest.NewRecorder(), status: http.StatusOK}, c, errors.New("too late"))
	if c.code != "" {
		t.Errorf("%s counts as the response", c.code)
	}
	s.fail(&recorder{ResponseWriter: httptest.NewRecorder()}, c, errors.New("in time"))
	if c.code != fault.Internal {
		t.Errorf("the code is %q", c.code)
	}
}

func TestStreamStats(t *testing.T) {
	t.Parallel()
	s := newStatsServer()
	for _, workspace := range []string{"ws_1", "ws_1", "ws_2"} {
		if !s.streams.acquire(workspace, 2) {
			t.Fatal("rejected")
		}
	}
	if s.streams.acquire("ws_1", 2) {
		t.Fatal("a third was let in")
	}
	if n := s.Stats().Streams; n != 3 {
		t.Errorf("%d streams, want 3", n)
	}
	s.streams.release("ws_2")
	if n := s.Stats().Streams; n != 2 {
		t.Errorf("%d streams, want 2", n)
	}
}

// A remote connection over the limit is closed immediately and counted.
func TestRejectedConnectionStats(t *testing.T) {
	t.Parallel()
	far := &fakeListener{conns: make(chan net.Conn, 3)}
	l := LimitConns(far, 2, nil, nil)
	var closed []net.Conn
	for range 3 {
		ours, theirs := net.Pipe()
		closed = append(closed, theirs)
		far.conns <- remoteConn{ours}
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	close(far.conns)
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("the third connection was accepted: %v", err)
	}
	if l.Open() != 2 || l.Rejected() != 1 {
		t.Errorf("%d open, %d rejected, want 2 and 1", l.Open(), l.Rejected())
	}
	if _, err := closed[2].Read(make([]byte, 1)); err == nil {
		t.Error("the third connection is open")
	}
	_ = first.Close()
	_ = first.Close() // closing twice releases one slot
	if l.Open() != 1 || l.Rejected() != 1 {
		t.Errorf("%d open, %d rejected, want 1 and 1", l.Open(), l.Rejected())
	}
}

type fakeListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *fakeListener) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l *fakeListener) Close() error { return nil }

// remoteConn has a remote address.
type remoteConn struct{ net.Conn }

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// The cost of counting per request.
func BenchmarkCount(b *testing.B) {
	s := newStatsServer()
	e := s.endpoint("GET /v1/things")
	b.RunParallel(func(pb *testing.PB) {
		out, c := &recorder{status: 200}, &Caller{endpoint: e}
		for pb.Next() {
			s.recordRequest(out, c, 3*time.Millisecond)
		}
	})
}
