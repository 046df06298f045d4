package harness

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// ProfilingArgs returns the arguments for a server whose live heap can be measured.
func ProfilingArgs(args ...string) []string {
	return append([]string{"--metrics-listen", "127.0.0.1:0", "--metrics-pprof"}, args...)
}

// Metrics returns a client of the listener that serves the metrics of the server.
func (s *Server) Metrics(t testing.TB) *Client {
	t.Helper()
	if s.metrics == nil {
		s.metrics = NewClient("http://"+s.AwaitLog(t, metricsLine), "")
	}
	return s.metrics
}

const metricsLine = `"msg":"metrics are served","address":"([^"]+)"`

var heapLine = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// LiveHeap returns the size of the live heap of a server that was started with
// ProfilingArgs. The server collects garbage first, so unlike its resident memory the
// result does not depend on how busy the machine is.
func (s *Server) LiveHeap(t testing.TB) int64 {
	t.Helper()
	var profile Response
	for range 3 { // pools release their memory in the second collection
		profile = s.Metrics(t).Expect(t, http.StatusOK, http.MethodGet, "/debug/pprof/heap?gc=1&debug=1", nil)
	}
	match := heapLine.FindSubmatch(profile.Body)
	if match == nil {
		t.Fatalf("the heap profile has no heap size:\n%.1000s", profile.Body)
	}
	live, _ := strconv.ParseInt(string(match[1]), 10, 64)
	return live
}
