package crash_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/tables"
)

// workflowsNamed returns how many workflows have a name.
func workflowsNamed(t *testing.T, c *harness.Client, name string) int {
	t.Helper()
	var list struct{ Data []struct{ Name string } }
	c.Expect(t, http.StatusOK, "GET", "/v1/workflows?limit=100", nil).Decode(t, &list)
	count := 0
	for _, workflow := range list.Data {
		if workflow.Name == name {
			count++
		}
	}
	return count
}

func awaitReadiness(t *testing.T, c *harness.Client, status int, reason string) {
	t.Helper()
	harness.Eventually(t, "the readiness changes", func() bool {
		a, err := c.Do(t.Context(), "GET", "/readyz", nil)
		return err == nil && a.Status == status && strings.Contains(string(a.Body), reason)
	})
}

// While a flush does not return, the service is not ready, requests that would wait
// for the disk are told so, and reads are served. Then everything goes on, with the
// writes that had no response too.
func TestFrozenDisk(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk of the data directory")
	t.Parallel()
	dir, frozen := t.TempDir(), filepath.Join(t.TempDir(), "frozen")
	before := harness.Start(t, dir)
	workflow := flow.Define(t, before.Client, flow.Set("a", 1))
	called := flow.Define(t, before.Client, flow.Set("a", 1))
	before.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+called, map[string]any{
		"state": "active", "triggers": []any{map[string]any{"id": "call", "type": "webhook"}},
	})
	hook := flow.HookPath(t, before.Client, called)
	key := before.Key
	before.Stop(t)

	s := harness.StartWith(t, harness.Options{Dir: dir, Failpoint: "before_flush:block=" + frozen, Args: []string{"--disk-timeout=8s"}})
	s.Key = key
	thaw := func() { _ = os.Remove(frozen) }
	t.Cleanup(thaw) // before the server is stopped
	if err := os.WriteFile(frozen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writes := []struct {
		path string
		body any
	}{
		{"/v1/workflows", map[string]any{"name": "frozen"}},
		{"/v1/workflows/" + workflow + "/runs", map[string]any{}},
		{hook, map[string]any{}},
	}
	responses := make(chan harness.Response, len(writes))
	for _, write := range writes {
		go func() {
			response, _ := s.Do(t.Context(), "POST", write.path, write.body)
			responses <- response
		}()
	}
	awaitReadiness(t, s.Client, http.StatusServiceUnavailable, "disk does not respond")
	for range writes {
		response := <-responses
		if response.Status != http.StatusServiceUnavailable || !strings.Contains(string(response.Body), "it is not known whether") || response.Header.Get("Retry-After") == "" {
			t.Errorf("a write got %d, want 503: %s", response.Status, response.Body)
		}
	}
	later := s.Expect(t, http.StatusServiceUnavailable, "POST", "/v1/workflows", map[string]any{"name": "frozen"})
	if !strings.Contains(string(later.Body), "nothing was changed") {
		t.Errorf("a later write got %s", later.Body)
	}
	s.Expect(t, http.StatusOK, "GET", "/healthz", nil)
	if n := workflowsNamed(t, s.Client, "frozen"); n != 0 {
		t.Errorf("%d workflows are visible before they are durable", n)
	}
	thaw()
	awaitReadiness(t, s.Client, http.StatusOK, "")
	harness.Eventually(t, "the runs that were started before end", func() bool {
		var list struct{ Data []struct{ Status string } }
		s.Expect(t, http.StatusOK, "GET", "/v1/runs?status=succeeded", nil).Decode(t, &list)
		return len(list.Data) == 2
	})
	if n := workflowsNamed(t, s.Client, "frozen"); n != 1 {
		t.Errorf("there are %d workflows, want 1", n)
	}
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "thawed"})
	s.Stop(t)
	checkTables(t, openCopy(t, dir), "")
}

// While the disk is frozen, commands that print a secret once fail after a while, or their
// users give up. Either way nothing was printed, and nothing is created later.
func TestCommandsOnFrozenDisk(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk of the data directory")
	t.Parallel()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, frozen := t.TempDir(), filepath.Join(t.TempDir(), "frozen")
	s := harness.StartWith(t, harness.Options{Dir: dir, Failpoint: "before_flush:block=" + frozen, Args: []string{"--disk-timeout=8s"}})
	thaw := func() { _ = os.Remove(frozen) }
	t.Cleanup(thaw) // before the server is stopped
	if err := os.WriteFile(frozen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	patient, stop := context.WithTimeout(t.Context(), harness.Timeout)
	defer stop()
	impatient, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	type result struct{ args, stdout, stderr string }
	run := func(ctx context.Context, args ...string) <-chan result {
		done := make(chan result, 1)
		var stdout, stderr bytes.Buffer
		command := exec.CommandContext(ctx, binary, append(args, "--data-dir", dir)...)
		command.Env, command.Stdout, command.Stderr = harness.Environ(), &stdout, &stderr
		go func() {
			_ = command.Run()
			done <- result{strings.Join(args, " "), stdout.String(), stderr.String()}
		}()
		return done
	}
	var abandoned, answered []<-chan result
	for _, args := range [][]string{
		{"keys", "create", "--name=nobody's", "--scope=admin"}, {"workspaces", "create", "nobody's"}, {"users", "create-link"},
	} {
		abandoned = append(abandoned, run(impatient, args...))
		answered = append(answered, run(patient, args...))
	}
	awaitReadiness(t, s.Client, http.StatusServiceUnavailable, "disk does not respond")
	giveUp()
	for _, done := range abandoned {
		if got := <-done; got.stdout != "" {
			t.Errorf("%s printed %q before it was abandoned", got.args, got.stdout)
		}
	}
	for _, done := range answered {
		if got := <-done; got.stdout != "" || got.stderr != "stepmill: the server's disk does not respond; nothing was created\n" {
			t.Errorf("%s printed %q, %q", got.args, got.stdout, got.stderr)
		}
	}
	thaw()
	awaitReadiness(t, s.Client, http.StatusOK, "")
	s.Stop(t) // which waits for commands
	db := openCopy(t, dir)
	for _, query := range []string{"SELECT count(*) FROM api_keys", "SELECT count(*) FROM workspaces", "SELECT count(*) FROM tickets"} {
		if n := tables.Number(t, db, query); n != 1 {
			t.Errorf("%s: got %d, want the one of the start", query, n)
		}
	}
}
