package crash_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// tooFewDescriptors is what a server logs once when it has too few file descriptors.
const tooFewDescriptors = "too few file descriptors: it answers health checks"

// fresh sends a request on a new connection and returns the status and the body.
func fresh(t *testing.T, s *harness.Server, path string) (status int, body string) {
	t.Helper()
	client := harness.NewClient(s.URL, s.Key)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	response, err := client.Do(ctx, http.MethodGet, path, nil, "Connection", "close")
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return response.Status, string(response.Body)
}

// TestIdleConnectionsAndFewDescriptors opens more idle connections than a process has
// file descriptors. It serves all requests nevertheless.
func TestIdleConnectionsAndFewDescriptors(t *testing.T) {
	t.Parallel()
	s := harness.StartWith(t, harness.Options{Dir: t.TempDir(), OpenFiles: 256})
	workflow := flow.Define(t, s.Client, flow.Set("say", "hello"))
	for range lane.Pick(500, 5000) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/workflows"} {
		// On a busy machine, a node is not ready while its heartbeats are late.
		harness.Eventually(t, path+" responds with 200", func() bool {
			status, body := fresh(t, s, path)
			if status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Fatalf("GET %s: %d %s", path, status, body)
			}
			return status == http.StatusOK
		})
	}
	if r := harness.Run(t, nil, append([]string{"keys", "list"}, harness.DataArgs(t, s.Dir)...)...); r.Code != 0 {
		t.Errorf("a command: exit code %d: %s", r.Code, r.Stderr)
	}
	s.Expect(t, http.StatusOK, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{}, "Prefer", "wait=60")
}

// maxDescriptor returns the largest descriptor that a process uses.
func maxDescriptor(t *testing.T, pid int) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	largest := 0
	for _, entry := range open {
		if n, err := strconv.Atoi(entry.Name()); err == nil {
			largest = max(largest, n)
		}
	}
	return largest
}

// TestNoDescriptorsLeft uses up the connections and the file descriptors of a process with
// requests that do not end. It still answers health checks and commands, and rejects other
// requests at once. After a kill nothing is missing.
func TestNoDescriptorsLeft(t *testing.T) {
	t.Parallel()
	for name, few := range map[string]bool{"from the start": true, "suddenly": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := harness.Options{Dir: t.TempDir(), Args: []string{"--streams-per-workspace", "100000"}, CountLines: []string{tooFewDescriptors}}
			if few {
				options.OpenFiles = 256
			}
			s := harness.StartWith(t, options)
			workflow := flow.Define(t, s.Client, flow.Wait("wait", "24h"))
			var started struct{ ID string }
			s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{}).Decode(t, &started)
			if !few {
				limit := uint64(maxDescriptor(t, s.Pid()) + 20)
				if err := unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit + 4096}, nil); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			rejected := fill(ctx, t, s, "/v1/runs/"+started.ID+"/events")
			if rejected.Header.Get("Retry-After") == "" || !rejected.Close {
				t.Errorf("%+v", rejected.Header)
			}
			// The process may free a descriptor at any time, and then has one for a request.
			isAnswer := func(status int) bool {
				return status == http.StatusServiceUnavailable || !few && status == http.StatusOK
			}
			for range lane.Pick(20, 500) {
				if status, body := fresh(t, s, "/healthz"); status != http.StatusOK {
					t.Fatalf("/healthz: %d %s", status, body)
				}
				if status, body := fresh(t, s, "/v1/workflows"); !isAnswer(status) {
					t.Fatalf("/v1/workflows: %d %s", status, body)
				}
				if status, body := fresh(t, s, "/readyz"); !isAnswer(status) || status != http.StatusOK && !strings.Contains(body, "file descriptors") {
					t.Fatalf("/readyz: %d %s", status, body)
				}
			}
			if r := harness.Run(t, nil, append([]string{"keys", "list"}, harness.DataArgs(t, s.Dir)...)...); r.Code != 0 {
				t.Errorf("a command: exit code %d: %s", r.Code, r.Stderr)
			}
			if n := s.CountLogged(tooFewDescriptors); n != 1 {
				t.Errorf("the shortage was logged %d times", n)
			}
			if few {
				stop() // the streams end
				harness.Eventually(t, "the server is ready", func() bool { status, _ := fresh(t, s, "/readyz"); return status == http.StatusOK })
				if status, body := fresh(t, s, "/v1/workflows"); status != http.StatusOK {
					t.Errorf("/v1/workflows: %d %s", status, body)
				}
				return
			}
			s.Kill(t)
			again := harness.StartWith(t, harness.Options{Dir: s.Dir})
			again.Key = s.Key
			again.Expect(t, http.StatusOK, "GET", "/v1/runs/"+started.ID, nil)
		})
	}
}

// fill opens streams until one is rejected, and returns that response.
func fill(ctx context.Context, t *testing.T, s *harness.Server, path string) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 10_000 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+s.Key)
		request.Header.Set("Accept", "text/event-stream")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		switch response.StatusCode {
		case http.StatusOK: // it stays open
		case http.StatusServiceUnavailable:
			_ = response.Body.Close()
			return response
		default:
			t.Fatalf("GET %s: %s", path, response.Status)
		}
	}
	t.Fatal("all streams were accepted")
	return nil
}
