package clusterload_test

import (
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

// sink is a server that steps call. It remembers each call by its
// Idempotency-Key, which is the run and the step, and how many were under way at
// once by the path. The query says how long a call takes (ms), or that it hangs.
type sink struct {
	*httptest.Server
	mu      sync.Mutex
	count   map[string]int
	calls   []call
	under   map[string]int
	most    map[string]int
	dropped map[string]time.Time // when the caller gave up, by its key
	free    chan struct{}
}

type call struct {
	key, path string
	at        time.Time
}

func newSink(t *testing.T) *sink {
	s := &sink{count: map[string]int{}, under: map[string]int{}, most: map[string]int{}, dropped: map[string]time.Time{}, free: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.release()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then a caller that leaves is noticed
	key, path := r.Header.Get("Idempotency-Key"), r.URL.Path
	s.mu.Lock()
	s.count[key]++
	s.calls = append(s.calls, call{key, path, time.Now()})
	s.under[path]++
	s.most[path] = max(s.most[path], s.under[path])
	free := s.free
	s.mu.Unlock()
	length := 2 * time.Millisecond
	if n, err := strconv.Atoi(r.URL.Query().Get("ms")); err == nil {
		length = time.Duration(n) * time.Millisecond
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	if r.URL.Query().Has("hang") {
		timer.Stop()
	}
	select {
	case <-timer.C:
	case <-free:
	case <-r.Context().Done():
		s.mu.Lock()
		s.dropped[key] = time.Now()
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.under[path]--
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

// release ends every call that hangs.
func (s *sink) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.free:
	default:
		close(s.free)
	}
}

func (s *sink) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.count)
}

// at is how many calls are under way on a path, and were at most.
func (s *sink) at(path string) (now, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.under[path], s.most[path]
}

// of are the calls of a run.
func (s *sink) of(runID string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []call
	for _, c := range s.calls {
		if strings.HasPrefix(c.key, runID+"/") {
			out = append(out, c)
		}
	}
	return out
}

// gaveUp is when the caller of a run let go of a call.
func (s *sink) gaveUp(runID string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, at := range s.dropped {
		if strings.HasPrefix(key, runID+"/") {
			return at, true
		}
	}
	return time.Time{}, false
}
