package app

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
)

// fullDisk is a database whose writes fail while the disk is full.
type fullDisk struct {
	backend
	full *atomic.Bool
}

func (d fullDisk) Write(ctx context.Context, fn func(database.Conn) error) error {
	if d.full.Load() {
		return fault.New(fault.StorageFull, "the server's disk is full; nothing was changed")
	}
	return d.backend.Write(ctx, fn)
}

func (d fullDisk) WriteRun(ctx context.Context, _ string, fn func(database.Conn) error) error {
	return d.Write(ctx, fn)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for started := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(started) > 5*time.Minute {
			t.Fatalf("still not: %s", what)
		}
	}
}

// testServer is a server on a disk that can be full.
type testServer struct {
	t       *testing.T
	running *Server
	stop    context.CancelFunc
	ended   chan error
	key     string
}

func startOnDisk(t *testing.T, data config.Data, full *atomic.Bool) *testServer {
	t.Helper()
	return startServer(t, data, func(s *Server) { s.data.store = store.New(fullDisk{s.data.db, full}, s.notify()) })
}

// startServer starts a server with an option and stops it when the test ends.
func startServer(t *testing.T, data config.Data, option Option) *testServer {
	t.Helper()
	serve := config.Serve{Endpoint: config.Endpoint{Listen: "127.0.0.1:0"}, ConnsPerAddress: 100, PreauthRPM: 1000}
	running, err := NewServer(t.Context(), data, serve, slog.New(slog.DiscardHandler), option)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &testServer{t: t, running: running, stop: stop, ended: make(chan error, 1), key: running.welcome.key}
	go func() { s.ended <- running.Run(ctx) }()
	t.Cleanup(s.close)
	return s
}

func (s *testServer) close() {
	s.t.Helper()
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
}

func (s *testServer) call(method, path, body string) (status int, response string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.running.Address()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(got.Body); err != nil {
		s.t.Fatal(err)
	}
	return got.StatusCode, text.String()
}

func (s *testServer) create(path, body string) (id string) {
	s.t.Helper()
	status, text := s.call("POST", path, body)
	var created struct{ ID string }
	if err := json.Unmarshal([]byte(text), &created); err != nil || status != http.StatusCreated {
		s.t.Fatalf("POST %s: %d %s", path, status, text)
	}
	return created.ID
}

// A server that starts on a full disk serves reads, says what is wrong, and executes runs
// when there is space.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	data, full := config.Data{Dir: t.TempDir()}, new(atomic.Bool)
	s := startOnDisk(t, data, full)
	workflow := s.create("/v1/workflows", `{"name": "Ask"}`)
	status, text := s.call("PATCH", "/v1/workflows/"+workflow, `{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"message": "Go on?"}}], "state": "active"}`)
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	run := s.create("/v1/workflows/"+workflow+"/runs", `{}`)
	eventually(t, "the run waits", func() bool {
		_, text := s.call("GET", "/v1/runs/"+run+"/steps", "")
		return strings.Contains(text, `"status":"waiting"`)
	})
	key := s.key
	s.close()

	full.Store(true)
	s = startOnDisk(t, data, full)
	s.key = key
	eventually(t, "a warning", func() bool {
		status, text := s.call("GET", "/readyz", "")
		return status == http.StatusOK && strings.Contains(text, "the disk is full")
	})
	if status, text := s.call("GET", "/v1/runs/"+run, ""); status != http.StatusOK {
		t.Errorf("a read: %d %s", status, text)
	}
	if status, text := s.call("POST", "/v1/workflows", `{"name": "More"}`); status != http.StatusInsufficientStorage {
		t.Errorf("a write: %d %s", status, text)
	}
	full.Store(false)
	eventually(t, "no warning", func() bool {
		_, text := s.call("GET", "/readyz", "")
		return strings.Contains(text, `"warnings":[]`)
	})
	if status, text := s.call("POST", "/v1/runs/"+run+"/steps/ask/resume", `{"approved": true}`); status != http.StatusOK {
		t.Fatalf("the answer: %d %s", status, text)
	}
	eventually(t, "the run has succeeded", func() bool {
		_, text := s.call("GET", "/v1/runs/"+run, "")
		return strings.Contains(text, `"status":"succeeded"`)
	})
}
