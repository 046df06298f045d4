package transport

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/fault"
)

// Stats counts responses since the start, and open streams.
type Stats struct {
	// Routes lists the routes that were requested, in the order of the table, then
	// the files of the dashboard as GET /, then requests that match no route.
	Routes []RouteStats
	// Errors counts responses by error code.
	Errors  map[string]int64
	Streams int
}

// RouteStats counts the responses of one route. HEAD counts as GET. Method and
// Path are empty for requests that match no route.
type RouteStats struct {
	Method, Path string
	// Classes counts responses by the first digit of the status.
	Classes map[int]int64
	// Duration is the distribution of durations, without streams.
	Duration counter.Snapshot
}

// Stats returns the current counts.
func (s *Server) Stats() Stats {
	stats := Stats{Errors: s.errors.Counts(), Streams: s.streams.total()}
	for _, e := range s.routes.endpoints {
		if e.requests.hasRequests() {
			stats.Routes = append(stats.Routes, e.requests.stats(e.Method, e.Path))
		}
	}
	if s.dashboard.requests.hasRequests() {
		stats.Routes = append(stats.Routes, s.dashboard.requests.stats(http.MethodGet, "/"))
	}
	if s.unmatched.hasRequests() {
		stats.Routes = append(stats.Routes, s.unmatched.stats("", ""))
	}
	return stats
}

type requestStats struct {
	classes   [6]atomic.Int64 // by the first digit of the status
	durations *counter.Histogram
}

func newRequestStats() *requestStats {
	return &requestStats{durations: counter.NewDurations(
		time.Millisecond, 2500*time.Microsecond, 5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond,
		100*time.Millisecond, 250*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second, 15*time.Second, time.Minute)}
}

func (s *requestStats) hasRequests() bool {
	for i := range s.classes {
		if s.classes[i].Load() > 0 {
			return true
		}
	}
	return false
}

func (s *requestStats) stats(method, path string) RouteStats {
	stats := RouteStats{Method: method, Path: path, Classes: map[int]int64{}, Duration: s.durations.Snapshot()}
	for i := range s.classes {
		if n := s.classes[i].Load(); n > 0 {
			stats.Classes[i] = n
		}
	}
	return stats
}

func (s *Server) recordRequest(out *recorder, c *Caller, took time.Duration) {
	to := s.unmatched
	if c.endpoint != nil {
		to = c.endpoint.requests
	}
	if c.dashboard {
		to = s.dashboard.requests
	}
	status, _ := out.written()
	if status == 0 {
		status = http.StatusOK // the default of net/http
	}
	to.classes[min(max(status/100, 0), len(to.classes)-1)].Add(1)
	if !c.streamed {
		to.durations.ObserveDuration(took)
	}
	if c.code != "" {
		s.errors.Add(string(c.code))
	}
}

func newErrors() *counter.Set {
	var names []string
	for code := range fault.Codes() {
		names = append(names, string(code))
	}
	return counter.NewSet(names...)
}
