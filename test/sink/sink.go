// Package sink is what is outside of the service in tests: a server that steps
// call, and one that takes deliveries. Both remember everything. It does not
// know what is tested.
package sink

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Sink is a server that remembers every call by its Idempotency-Key, which is
// the run and the path of the step, and answers with how often it has seen it.
// The query of a call says how: ms is how long it takes, status what it answers,
// hang that it does not, until those that hang are released.
type Sink struct {
	*httptest.Server
	free  chan struct{}
	mu    sync.Mutex
	calls []*Call
	count map[string]int
	// Begun, if there is one, is told of the calls so far when one arrives; it
	// must not ask the sink.
	Begun func(all []*Call)
}

// Call is one call, in the order of arrival.
type Call struct {
	Key   string // run/step
	Path  string
	At    time.Time
	Ended time.Time // zero while it is under way
	// Dropped says that the caller closed the connection before it was answered.
	Dropped bool
}

// Run is the run whose step made the call.
func (c *Call) Run() string { run, _, _ := strings.Cut(c.Key, "/"); return run }

// usual is how long a call takes unless it says so.
const usual = 5 * time.Millisecond

// New starts a sink that lasts as long as the test.
func New(t testing.TB) *Sink {
	s := &Sink{count: map[string]int{}, free: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *Sink) serve(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then a caller that leaves is noticed
	c, count := s.arrive(r)
	length := usual
	if ms, err := strconv.Atoi(r.URL.Query().Get("ms")); err == nil {
		length = time.Duration(ms) * time.Millisecond
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	var free chan struct{}
	if r.URL.Query().Has("hang") {
		timer.Stop()
		free = s.free
	}
	dropped := false
	select {
	case <-timer.C:
	case <-free:
	case <-r.Context().Done():
		dropped = true
	}
	s.mu.Lock()
	c.Ended, c.Dropped = time.Now(), dropped
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
	if s.Begun != nil {
		s.Begun(s.calls)
	}
	return c, s.count[c.Key]
}

// Release ends every call that hangs, for good: later ones do not.
func (s *Sink) Release() { close(s.free) }

// Seen are copies of the calls so far that are wanted.
func (s *Sink) Seen(wanted func(*Call) bool) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if wanted(c) {
			out = append(out, *c)
		}
	}
	return out
}

// Of are the calls of a run.
func (s *Sink) Of(run string) []Call {
	return s.Seen(func(c *Call) bool { return c.Run() == run })
}

// Counted is how often each step was called so far.
func (s *Sink) Counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.count)
}

// Await waits until there are calls that are wanted.
func (s *Sink) Await(t testing.TB, what string, least int, wanted func(*Call) bool) []Call {
	t.Helper()
	var found []Call
	Within(t, 20*time.Second, what, func() bool {
		found = s.Seen(wanted)
		return len(found) >= least
	})
	return found
}

// Quiet waits until no call is under way: those of a process that is gone have
// arrived and been dropped.
func (s *Sink) Quiet(t testing.TB) {
	t.Helper()
	Within(t, 10*time.Second, "no call is under way", func() bool {
		return len(s.Seen(func(c *Call) bool { return c.Ended.IsZero() || time.Since(c.Ended) < 30*time.Millisecond })) == 0
	})
}

// Within waits for something to become true.
func Within(t testing.TB, atMost time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(atMost); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is not true that %s", atMost, what)
		}
	}
}
