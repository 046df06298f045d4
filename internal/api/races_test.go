package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// together calls a function in many goroutines and counts the statuses of the
// answers.
func together(n int, call func(i int) *answer) map[int]int {
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

// Of many who change what they read, one does; the others learn of it.
func TestConditionalChangesRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf")
	got := together(32, func(i int) *answer {
		return w.call("PATCH", "/v1/workflows/$wf", fmt.Sprintf(`{"name": "Writer %d"}`, i), "If-Match", `"1"`)
	})
	if got[http.StatusOK] != 1 || got[http.StatusPreconditionFailed] != 31 {
		t.Errorf("answers by status: %v", got)
	}
}

// Changes without a condition are all applied, one after the other.
func TestUnconditionalChangesRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf")
	got := together(32, func(i int) *answer {
		return w.call("PATCH", "/v1/workflows/$wf", fmt.Sprintf(`{"layout": {"s%d": [%d, 0]}}`, i, i))
	})
	after := w.call("GET", "/v1/workflows/$wf", "").want(200)
	if layout := after.object()["layout"].(map[string]any); got[http.StatusOK] != 32 || len(layout) != 32 || after.header.Get("ETag") != `"33"` {
		t.Errorf("answers by status: %v; %d places, ETag %s", got, len(layout), after.header.Get("ETag"))
	}
}

// The limit of a plan holds, however many ask at once.
func TestPlanLimitRace(t *testing.T) {
	t.Parallel()
	steadyMinute()
	w := sharedServer(t).newWorldOn(t, `{"name": "Free"}`)
	got := together(40, func(int) *answer {
		return w.call("POST", "/v1/webhooks", `{"url": "https://example.com", "events": ["run.failed"]}`)
	})
	if got[http.StatusCreated] != 20 || got[http.StatusForbidden] != 20 {
		t.Errorf("answers by status: %v", got)
	}
}

// A run that was accepted before its workflow was deleted is gone with it; one
// that comes after is refused.
func TestStartAndDeleteRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.workflow("wf", waitStep)
		path := w.fill("/v1/workflows/$wf")
		got := together(16, func(i int) *answer {
			if i == 8 {
				return w.client.call("DELETE", path, "")
			}
			return w.client.call("POST", path+"/runs", "")
		})
		if got[http.StatusNoContent] != 1 || got[http.StatusCreated]+got[http.StatusNotFound] != 15 {
			t.Errorf("answers by status: %v", got)
		}
		w.client.call("GET", path+"/runs", "").want(404, "workflow_not_found")
	}
	wantContains(t, w.call("GET", "/v1/usage", "").json(), `{"current": {"workflows": 0, "running_runs": 0}}`)
}

// A run that was accepted before the pause goes on; one that comes after is
// refused.
func TestStartAndPauseRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", waitStep)
	got := together(16, func(i int) *answer {
		if i == 8 {
			return w.call("PATCH", "/v1/workflows/$wf", `{"state": "paused"}`)
		}
		return w.call("POST", "/v1/workflows/$wf/runs", "")
	})
	if got[http.StatusOK] != 1 || got[http.StatusCreated]+got[http.StatusConflict] != 15 {
		t.Errorf("answers by status: %v", got)
	}
	if runs := w.call("GET", "/v1/workflows/$wf/runs?status=running", "").items(); len(runs) != got[http.StatusCreated] {
		t.Errorf("there are %d runs after %v", len(runs), got)
	}
}
