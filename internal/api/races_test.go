package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// callConcurrently calls a function in many goroutines and counts the response
// statuses.
func callConcurrently(n int, call func(i int) *response) map[int]int {
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		counts = map[int]int{}
	)
	for i := range n {
		group.Go(func() {
			a := call(i)
			mu.Lock()
			defer mu.Unlock()
			counts[a.status]++
		})
	}
	group.Wait()
	return counts
}

// Of many concurrent conditional updates one succeeds; the others are rejected.
func TestConcurrentConditionalUpdates(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	got := callConcurrently(32, func(i int) *response {
		return w.call("PATCH", "/v1/workflows/$wf", fmt.Sprintf(`{"name": "Writer %d"}`, i), "If-Match", `"1"`)
	})
	if got[http.StatusOK] != 1 || got[http.StatusPreconditionFailed] != 31 {
		t.Errorf("responses by status: %v", got)
	}
}

// Unconditional updates are all applied, one after the other.
func TestConcurrentUnconditionalUpdates(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	got := callConcurrently(32, func(i int) *response {
		return w.call("PATCH", "/v1/workflows/$wf", fmt.Sprintf(`{"layout": {"s%d": [%d, 0]}}`, i, i))
	})
	after := w.call("GET", "/v1/workflows/$wf", "").wantStatus(200)
	if layout := after.object()["layout"].(map[string]any); got[http.StatusOK] != 32 || len(layout) != 32 || after.header.Get("ETag") != `"33"` {
		t.Errorf("responses by status: %v; %d places, ETag %s", got, len(layout), after.header.Get("ETag"))
	}
}

// The limit of a plan holds under concurrency.
func TestPlanLimitRace(t *testing.T) {
	t.Parallel()
	w := sharedServer(t).newTestWorkspaceWith(t, `{"name": "Free"}`)
	got := callConcurrently(40, func(int) *response {
		return w.call("POST", "/v1/webhooks", `{"url": "https://example.com", "events": ["run.failed"]}`)
	})
	if got[http.StatusCreated] != 20 || got[http.StatusForbidden] != 20 {
		t.Errorf("responses by status: %v", got)
	}
}

// A run that started before its workflow was deleted is deleted with it; a
// later start is rejected.
func TestStartAndDeleteRace(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	for range 5 {
		w.workflow("wf", waitStep)
		path := w.expand("/v1/workflows/$wf")
		got := callConcurrently(16, func(i int) *response {
			if i == 8 {
				return w.client.call("DELETE", path, "")
			}
			return w.client.call("POST", path+"/runs", "")
		})
		if got[http.StatusNoContent] != 1 || got[http.StatusCreated]+got[http.StatusNotFound] != 15 {
			t.Errorf("responses by status: %v", got)
		}
		w.client.call("GET", path+"/runs", "").wantStatus(404, "workflow_not_found")
	}
	wantContains(t, w.call("GET", "/v1/usage", "").json(), `{"current": {"workflows": 0, "running_runs": 0}}`)
}

// A run that started before the pause continues; a later start is rejected.
func TestStartAndPauseRace(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", waitStep)
	got := callConcurrently(16, func(i int) *response {
		if i == 8 {
			return w.call("PATCH", "/v1/workflows/$wf", `{"state": "paused"}`)
		}
		return w.call("POST", "/v1/workflows/$wf/runs", "")
	})
	if got[http.StatusOK] != 1 || got[http.StatusCreated]+got[http.StatusConflict] != 15 {
		t.Errorf("responses by status: %v", got)
	}
	if runs := w.call("GET", "/v1/workflows/$wf/runs?status=running", "").items(); len(runs) != got[http.StatusCreated] {
		t.Errorf("there are %d runs after %v", len(runs), got)
	}
}
