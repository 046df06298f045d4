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

// While a flush does not return, the service is not ready and serves reads. Then
// everything goes on.
func TestFrozenDisk(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk of the data directory")
	t.Parallel()
	dir, frozen := t.TempDir(), filepath.Join(t.TempDir(), "frozen")
	s := harness.StartWith(t, harness.Options{Dir: dir, Failpoint: "before_flush:block=" + frozen})
	thaw := func() { _ = os.Remove(frozen) }
	t.Cleanup(thaw) // before the server is stopped
	if err := os.WriteFile(frozen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const writes = 3
	created := make(chan int, writes)
	for range writes {
		go func() {
			a, _ := s.Do(t.Context(), "POST", "/v1/workflows", map[string]any{"name": "frozen"})
			created <- a.Status
		}()
	}
	awaitReadiness(t, s.Client, http.StatusServiceUnavailable, "disk does not respond")
	s.Expect(t, http.StatusOK, "GET", "/healthz", nil)
	if n := workflowsNamed(t, s.Client, "frozen"); n != 0 {
		t.Errorf("%d workflows are visible before they are durable", n)
	}
	thaw()
	awaitReadiness(t, s.Client, http.StatusOK, "")
	for range writes {
		if status := <-created; status != http.StatusCreated {
			t.Errorf("a write got %d, want 201", status)
		}
	}
	if n := workflowsNamed(t, s.Client, "frozen"); n != writes {
		t.Errorf("there are %d workflows, want %d", n, writes)
	}
	s.Stop(t)
	checkTables(t, openCopy(t, dir), "")
}
