// Package sink has the external services of tests: a server that steps call, and one
// that receives webhook deliveries. Both record everything. It does not know what is
// tested.
package sink

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// Sink is a server that records every call by its Idempotency-Key, which consists of
// the run and the path of the step. Its response has the number of calls with that key
// so far. Query parameters control a call: ms is how long it takes, status is the
// status of the response, and hang delays the response until Release.
type Sink struct {
	*httptest.Server
	released chan struct{}
	release  func()

	mu       sync.Mutex
	calls    []*Call
	count    map[string]int
	inFlight map[string]map[*Call]bool // by path
	peak     map[string]int            // by path
	ignored  map[string]bool           // runs whose calls do not count as in flight
	open     map[net.Conn]bool
}

// Call is a call to the sink.
type Call struct {
	Key   string // run/step
	Path  string
	At    time.Time
	Ended time.Time // zero while it is in flight
	// Dropped is true if the caller closed the connection before the response.
	Dropped bool
}

// Run returns the run whose step made the call.
func (c *Call) Run() string { run, _, _ := strings.Cut(c.Key, "/"); return run }

// defaultLatency is how long a call takes without the ms parameter.
const defaultLatency = 5 * time.Millisecond

// New starts a sink that runs until the end of the test.
func New(t testing.TB) *Sink {
	s := &Sink{
		released: make(chan struct{}), count: map[string]int{}, inFlight: map[string]map[*Call]bool{},
		peak: map[string]int{}, ignored: map[string]bool{}, open: map[net.Conn]bool{},
	}
	s.release = sync.OnceFunc(func() { close(s.released) })
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ConnState = s.track
	s.Start()
	t.Cleanup(func() {
		s.Release()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// track records the open connections.
func (s *Sink) track(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.open, conn)
	case http.StateActive, http.StateIdle:
	}
}

func (s *Sink) serve(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after that
	c, count := s.arrive(r)
	length := defaultLatency
	if ms, err := strconv.Atoi(r.URL.Query().Get("ms")); err == nil {
		length = time.Duration(ms) * time.Millisecond
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	var released chan struct{}
	if r.URL.Query().Has("hang") {
		timer.Stop()
		released = s.released
	}
	dropped := false
	select {
	case <-timer.C:
	case <-released:
	case <-r.Context().Done():
		dropped = true
	}
	s.mu.Lock()
	c.Ended, c.Dropped = time.Now(), dropped
	delete(s.inFlight[c.Path], c)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"key": c.Key, "count": count})
}

func (s *Sink) arrive(r *http.Request) (*Call, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Call{Key: r.Header.Get("Idempotency-Key"), Path: r.URL.Path, At: time.Now()}
	s.calls = append(s.calls, c)
	s.count[c.Key]++
	if s.inFlight[c.Path] == nil {
		s.inFlight[c.Path] = map[*Call]bool{}
	}
	s.inFlight[c.Path][c] = true
	s.peak[c.Path] = max(s.peak[c.Path], s.countInFlight(c.Path))
	return c, s.count[c.Key]
}

// Release ends every call that hangs. Later calls no longer hang.
func (s *Sink) Release() { s.release() }

// InFlight returns the number of calls to a path that are in flight.
func (s *Sink) InFlight(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.countInFlight(path)
}

// Peak returns the largest number of calls to a path that were in flight at the
// same time.
func (s *Sink) Peak(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak[path]
}

func (s *Sink) countInFlight(path string) int {
	n := 0
	for c := range s.inFlight[path] {
		if !s.ignored[c.Run()] {
			n++
		}
	}
	return n
}

// Ignore leaves the calls of a run out of InFlight and Peak. Tests call it before
// they cancel the run, because a call outlives the cancel for a moment.
func (s *Sink) Ignore(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignored[run] = true
}

// Calls returns copies of the calls so far that match, in the order of arrival.
func (s *Sink) Calls(match func(*Call) bool) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if match(c) {
			out = append(out, *c)
		}
	}
	return out
}

// CallsOf returns the calls of a run.
func (s *Sink) CallsOf(run string) []Call {
	return s.Calls(func(c *Call) bool { return c.Run() == run })
}

// Dropped reports whether the caller dropped a call of a run.
func (s *Sink) Dropped(run string) bool {
	return len(s.Calls(func(c *Call) bool { return c.Run() == run && c.Dropped })) > 0
}

// Counts returns how often each step was called so far, by Idempotency-Key.
func (s *Sink) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.count)
}

// Await waits for a minimum number of calls that match.
func (s *Sink) Await(t testing.TB, what string, minimum int, match func(*Call) bool) []Call {
	t.Helper()
	var found []Call
	harness.Eventually(t, what, func() bool {
		found = s.Calls(match)
		return len(found) >= minimum
	})
	return found
}

// AwaitIdle waits until no call is in flight.
func (s *Sink) AwaitIdle(t testing.TB) {
	t.Helper()
	harness.Eventually(t, "no call is in flight", func() bool {
		return len(s.Calls(func(c *Call) bool { return c.Ended.IsZero() })) == 0
	})
}

// AwaitClosed waits until all calls of processes that have exited have arrived and
// ended. No running process may have a connection to the sink.
func (s *Sink) AwaitClosed(t testing.TB) {
	t.Helper()
	// Connections are accepted in the order in which they were made: once this one is
	// accepted, so are all earlier ones.
	last, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	name := last.LocalAddr().String()
	harness.Eventually(t, "every earlier connection is accepted", func() bool { return s.hasConnection(name) })
	_ = last.Close()
	harness.Eventually(t, "every connection is closed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.open) == 0
	})
}

// hasConnection reports whether a connection from the address is open.
func (s *Sink) hasConnection(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		if conn.RemoteAddr().String() == address {
			return true
		}
	}
	return false
}
