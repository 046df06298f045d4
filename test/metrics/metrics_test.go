// Package metrics_test uses the real binary and checks that its metrics report what
// happened.
package metrics_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) {
	harness.SetParallel(4)
	harness.Main(m)
}

// timeout is how long a test waits for a metric.
const timeout = harness.Timeout

// service is a server with a client of its metrics and counts of its responses.
type service struct {
	*harness.Server
	metrics *harness.Client

	mu      sync.Mutex
	codes   map[string]float64 // error codes of the responses
	classes map[string]float64 // responses by "METHOD 2xx"
}

var withMetrics = []string{"--metrics-listen", "127.0.0.1:0", "--egress-allow", "127.0.0.0/8"}

func start(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	return watch(t, harness.Start(t, dir, append(args, withMetrics...)...))
}

// watch connects to the metrics of a server.
func watch(t *testing.T, s *harness.Server) *service {
	t.Helper()
	return &service{Server: s, metrics: s.Metrics(t), codes: map[string]float64{}, classes: map[string]float64{}}
}

// call sends a request and counts its response.
func (s *service) call(t *testing.T, key, method, path string, body any, headers ...string) harness.Response {
	t.Helper()
	response, err := s.With(key).Do(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if code := flow.ErrorCode(response); code != "" && response.Status >= 400 {
		s.codes[code]++
	}
	s.classes[fmt.Sprintf("%s %dxx", method, response.Status/100)]++
	return response
}

// expect sends a request, checks the status of the response, and returns a member of its
// body.
func (s *service) expect(t *testing.T, key string, status int, method, path string, body any, member string, headers ...string) string {
	t.Helper()
	response := s.call(t, key, method, path, body, headers...)
	if response.Status != status {
		t.Fatalf("%s %s: %d, want %d\n%s", method, path, response.Status, status, response.Body)
	}
	if member == "" {
		return ""
	}
	var object map[string]any
	response.Decode(t, &object)
	text, _ := object[member].(string)
	return text
}

// workflow makes a workflow with steps.
func (s *service) workflow(t *testing.T, key, name string, steps ...map[string]any) string {
	t.Helper()
	id := s.expect(t, key, 201, "POST", "/v1/workflows", map[string]any{"name": name}, "id")
	s.expect(t, key, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"steps": steps}, "")
	return id
}

// run runs a workflow and returns the final status of the run.
func (s *service) run(t *testing.T, key, workflow string) string {
	t.Helper()
	return s.expect(t, key, 200, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{}, "status", "Prefer", "wait=60")
}

func step(id, uses string, with map[string]any) map[string]any {
	return map[string]any{"id": id, "uses": uses, "with": with, "retry": map[string]any{"max_attempts": 1}}
}

func set(id string) map[string]any {
	return step(id, "data.set", map[string]any{"values": map[string]any{"n": 1}})
}

func fetch(id, url string) map[string]any {
	return step(id, "http.request", map[string]any{"url": url})
}

// sample has the values of metrics by name and labels.
type sample map[string]float64

func (s *service) scrape(t *testing.T) sample {
	t.Helper()
	out := sample{}
	for line := range strings.Lines(s.text(t)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[line[:at]] = value
	}
	return out
}

func (s *service) text(t *testing.T) string {
	t.Helper()
	return string(s.metrics.Expect(t, 200, "GET", "/metrics", nil).Body)
}

// eventually waits until metrics have the wanted values.
func (s *service) eventually(t *testing.T, want sample) {
	t.Helper()
	s.await(t, func(got sample) (wrong []string) {
		for name, value := range want {
			if found, ok := got[name]; !ok || found != value {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", name, found, value))
			}
		}
		return wrong
	})
}

// await waits until check finds nothing wrong.
func (s *service) await(t *testing.T, check func(sample) (wrong []string)) {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		wrong := check(s.scrape(t))
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(strings.Join(wrong, "\n"))
		}
	}
}

// sum adds up the values of a metric whose labels contain the parts.
func (s sample) sum(metric string, parts ...string) (total float64) {
next:
	for name, value := range s {
		if base, _, _ := strings.Cut(name, "{"); base != metric {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(name, part) {
				continue next
			}
		}
		total += value
	}
	return total
}

// receiver responds by path: /500 fails, /held waits until it is released.
type receiver struct {
	*httptest.Server
	release func()
	held    chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{held: make(chan struct{})}
	r.release = sync.OnceFunc(func() { close(r.held) })
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		switch request.URL.Path {
		case "/500":
			w.WriteHeader(http.StatusInternalServerError)
		case "/held":
			select {
			case <-r.held:
			case <-request.Context().Done():
			}
		}
	}))
	t.Cleanup(func() {
		r.release()
		r.Close()
	})
	return r
}
