package crash_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
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

// While a flush does not return, writes get a response, reads are served, and
// afterwards everything goes on.
func TestFrozenDisk(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk of the data directory")
	t.Parallel()
	dir, frozen := t.TempDir(), filepath.Join(t.TempDir(), "frozen")
	s := harness.StartWith(t, harness.Options{Dir: dir, Args: []string{"--storage-timeout", "1s"}, Failpoint: "before_flush:block=" + frozen})
	thaw := func() { _ = os.Remove(frozen) }
	t.Cleanup(thaw) // before the server is stopped
	create := func(name string, headers ...string) harness.Response {
		t.Helper()
		a, err := s.Do(t.Context(), "POST", "/v1/workflows", map[string]any{"name": name}, headers...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if err := os.WriteFile(frozen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	flushed := create("flushed", "Idempotency-Key", "flushed")
	queued := create("queued", "Idempotency-Key", "queued") // while the writer waits for the first
	for want, a := range map[string]harness.Response{"not known whether the change was saved": flushed, "nothing was changed": queued} {
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), want) {
			t.Errorf("got %d %v %s, want 503: %s", a.Status, a.Header, a.Body, want)
		}
	}
	if n := workflowsNamed(t, s.Client, "flushed") + workflowsNamed(t, s.Client, "queued"); n != 0 {
		t.Errorf("%d workflows are visible before they are durable", n)
	}
	s.Expect(t, http.StatusOK, "GET", "/healthz", nil)
	awaitReadiness(t, s.Client, http.StatusServiceUnavailable, "disk does not respond")

	thaw()
	awaitReadiness(t, s.Client, http.StatusOK, "")
	harness.Eventually(t, "the flush ends", func() bool { return workflowsNamed(t, s.Client, "flushed") == 1 })
	if n := workflowsNamed(t, s.Client, "queued"); n != 0 {
		t.Errorf("%d workflows were saved although nothing was to be changed", n)
	}
	for _, name := range []string{"flushed", "queued"} { // a repeated request takes effect once
		harness.Eventually(t, name+" is repeated", func() bool { return create(name, "Idempotency-Key", name).Status == http.StatusCreated })
		if n := workflowsNamed(t, s.Client, name); n != 1 {
			t.Errorf("there are %d workflows named %s, want 1", n, name)
		}
	}
	s.Stop(t)
	checkTables(t, openCopy(t, dir), "")
}
