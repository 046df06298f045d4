// Package metrics_test does things to the real binary and then looks whether its
// metrics tell just that.
package metrics_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// patience is how long something may take to show.
const patience = 20 * time.Second

// service is a server whose metrics are watched, and what its clients saw.
type service struct {
	*harness.Server
	metrics *harness.Client

	mu      sync.Mutex
	codes   map[string]float64 // error codes of the answers
	classes map[string]float64 // answers by "METHOD 2xx"
}

var withMetrics = []string{"--metrics-listen", "127.0.0.1:0", "--egress-allow", "127.0.0.0/8"}

func start(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	s := &service{Server: harness.Start(t, dir, append(args, withMetrics...)...), codes: map[string]float64{}, classes: map[string]float64{}}
	s.metrics = harness.NewClient("http://"+s.AwaitLog(t, `"msg":"metrics are served","address":"([^"]+)"`), "")
	return s
}

// call sends a request and notes its answer.
func (s *service) call(t *testing.T, key, method, path string, body any, headers ...string) harness.Answer {
	t.Helper()
	answer, err := s.With(key).Do(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	var failure struct {
		Error struct{ Code string }
	}
	_ = json.Unmarshal(answer.Body, &failure) // many have none
	s.mu.Lock()
	defer s.mu.Unlock()
	if failure.Error.Code != "" && answer.Status >= 400 {
		s.codes[failure.Error.Code]++
	}
	s.classes[fmt.Sprintf("%s %dxx", method, answer.Status/100)]++
	return answer
}

// must sends a request that is answered with a status, and returns the member
// of the answer.
func (s *service) must(t *testing.T, key string, status int, method, path string, body any, member string, headers ...string) string {
	t.Helper()
	answer := s.call(t, key, method, path, body, headers...)
	if answer.Status != status {
		t.Fatalf("%s %s: %d, want %d\n%s", method, path, answer.Status, status, answer.Body)
	}
	if member == "" {
		return ""
	}
	var object map[string]any
	answer.Decode(t, &object)
	text, _ := object[member].(string)
	return text
}

// workflow makes a workflow of steps.
func (s *service) workflow(t *testing.T, key, name string, steps ...map[string]any) string {
	t.Helper()
	id := s.must(t, key, 201, "POST", "/v1/workflows", map[string]any{"name": name}, "id")
	s.must(t, key, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"steps": steps}, "")
	return id
}

// run runs a workflow to its end and tells how that was.
func (s *service) run(t *testing.T, key, workflow string) string {
	t.Helper()
	return s.must(t, key, 200, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{}, "status", "Prefer", "wait=30")
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

// sample is what the metrics tell at a moment, by name and labels.
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

// eventually looks until all values are as wanted.
func (s *service) eventually(t *testing.T, want sample) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got, wrong := s.scrape(t), []string{}
		for name, value := range want {
			if found, ok := got[name]; !ok || found != value {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", name, found, value))
			}
		}
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

// receiver answers by path: /500 fails, /held waits until it is let go.
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
