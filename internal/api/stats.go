package api

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/tally"
)

// Stats is what the server has answered so far, and what it is busy with.
type Stats struct {
	// Routes are those that were asked for, in the order of the table, then the
	// files of the dashboard as GET /, and last what fits none of them.
	Routes []RouteStats
	// Errors counts answers by their error code.
	Errors map[string]int64
	// Streams is how many are open.
	Streams int
}

// RouteStats is how the requests of one route were answered. HEAD counts as GET.
// Without a method and a path it is about requests that fit no route.
type RouteStats struct {
	Method, Path string
	// Classes counts by the first digit of the status.
	Classes map[int]int64
	// Duration is how long they took, without streams.
	Duration tally.Snapshot
}

// Stats tells how requests were answered.
func (s *Server) Stats() Stats {
	stats := Stats{Errors: s.errors.Counts(), Streams: s.streams.total()}
	for _, route := range s.routes.routes {
		if e := s.routes.endpoints[route.Method+" "+route.Path]; e.served.any() {
			stats.Routes = append(stats.Routes, e.served.stats(route.Method, route.Path))
		}
	}
	if s.dashboard.served.any() {
		stats.Routes = append(stats.Routes, s.dashboard.served.stats(http.MethodGet, "/"))
	}
	if s.unmatched.any() {
		stats.Routes = append(stats.Routes, s.unmatched.stats("", ""))
	}
	return stats
}

// served counts the requests of one route.
type served struct {
	classes [6]atomic.Int64 // by the first digit of the status
	took    *tally.Histogram
}

func newServed() *served {
	return &served{took: tally.NewTimes(
		time.Millisecond, 2500*time.Microsecond, 5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond,
		100*time.Millisecond, 250*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second, 15*time.Second, time.Minute)}
}

func (s *served) any() bool {
	for i := range s.classes {
		if s.classes[i].Load() > 0 {
			return true
		}
	}
	return false
}

func (s *served) stats(method, path string) RouteStats {
	stats := RouteStats{Method: method, Path: path, Classes: map[int]int64{}, Duration: s.took.Snapshot()}
	for i := range s.classes {
		if n := s.classes[i].Load(); n > 0 {
			stats.Classes[i] = n
		}
	}
	return stats
}

// count notes how a request was answered.
func (s *Server) count(out *recorder, c *caller, took time.Duration) {
	to := s.unmatched
	if c.endpoint != nil {
		to = c.endpoint.served
	}
	if c.paged {
		to = s.dashboard.served
	}
	status := out.status
	if status == 0 {
		status = http.StatusOK // what is sent when nothing was said
	}
	to.classes[min(max(status/100, 0), len(to.classes)-1)].Add(1)
	if !c.streamed {
		to.took.Took(took)
	}
	if c.code != "" {
		s.errors.Add(string(c.code))
	}
}

func newErrors() *tally.Set {
	var names []string
	for code := range fault.Codes() {
		names = append(names, string(code))
	}
	return tally.NewSet(names...)
}
