package crash_test

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

// sink is a server that remembers every call by its Idempotency-Key, which is
// the run and the path of the step, and answers with how often it has seen it.
// The query of a call says how: ms is how long it takes, status what it answers,
// hang that it does not.
type sink struct {
	*httptest.Server
	mu    sync.Mutex
	calls []*call
	count map[string]int
	// begun, if there is one, is told of each call when it arrives.
	begun func(*call)
}

// call is one call, in the order of arrival.
type call struct {
	key   string // run/step
	path  string
	at    time.Time
	ended time.Time // zero while it is under way
	// dropped says that the caller closed the connection before it was answered.
	dropped bool
}

func (c *call) run() string { run, _, _ := strings.Cut(c.key, "/"); return run }

// usual is how long a call takes unless it says so.
const usual = 5 * time.Millisecond

func newSink(t *testing.T) *sink {
	s := &sink{count: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then a caller that leaves is noticed
	c, count := s.arrive(r)
	length := usual
	if ms, err := strconv.Atoi(r.URL.Query().Get("ms")); err == nil {
		length = time.Duration(ms) * time.Millisecond
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	if r.URL.Query().Has("hang") {
		timer.Stop()
	}
	dropped := false
	select {
	case <-timer.C:
	case <-r.Context().Done():
		dropped = true
	}
	s.mu.Lock()
	c.ended, c.dropped = time.Now(), dropped
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"key": c.key, "count": count})
}

func (s *sink) arrive(r *http.Request) (*call, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{key: r.Header.Get("Idempotency-Key"), path: r.URL.Path, at: time.Now()}
	s.calls = append(s.calls, c)
	s.count[c.key]++
	if s.begun != nil {
		s.begun(c)
	}
	return c, s.count[c.key]
}

// seen are copies of the calls so far that are wanted.
func (s *sink) seen(wanted func(*call) bool) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []call
	for _, c := range s.calls {
		if wanted(c) {
			out = append(out, *c)
		}
	}
	return out
}

// of are the calls of a run.
func (s *sink) of(run string) []call {
	return s.seen(func(c *call) bool { return c.run() == run })
}

// counted is how often each step was called so far.
func (s *sink) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.count)
}

// await waits until there are calls that are wanted.
func (s *sink) await(t *testing.T, what string, least int, wanted func(*call) bool) []call {
	t.Helper()
	var found []call
	within(t, 20*time.Second, what, func() bool {
		found = s.seen(wanted)
		return len(found) >= least
	})
	return found
}

// quiet waits until no call is under way: those of a process that is gone have
// arrived and been dropped.
func (s *sink) quiet(t *testing.T) {
	t.Helper()
	within(t, 10*time.Second, "no call is under way", func() bool {
		return len(s.seen(func(c *call) bool { return c.ended.IsZero() || time.Since(c.ended) < 30*time.Millisecond })) == 0
	})
}

// within waits for something to become true.
func within(t *testing.T, atMost time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(atMost); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is not true that %s", atMost, what)
		}
	}
}
