package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// streamClient collects the events of a stream across reconnects.
type streamClient struct {
	mu     sync.Mutex
	lastID string
	steps  map[string]any
	events []string // all others, by name and data
	over   bool
}

// follow reads a stream until it breaks, starting after the last event, like EventSource.
func (c *streamClient) follow(t *testing.T, s *harness.Server, path string) {
	t.Helper()
	var headers []string
	if c.lastID != "" {
		headers = []string{"Last-Event-ID", c.lastID}
	}
	response, err := s.Open(t.Context(), http.MethodGet, path, http.NoBody, headers...)
	if err != nil {
		return // it was killed before it could respond
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s after %q: status %d", path, c.lastID, response.StatusCode)
		return
	}
	for e := range harness.ReadEvents(response.Body) {
		c.handle(t, e)
	}
}

func (c *streamClient) handle(t *testing.T, e harness.Event) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ID != "" {
		c.lastID = e.ID
	}
	switch e.Name {
	case "", "run":
	case "step":
		var step map[string]any
		if err := json.Unmarshal([]byte(e.Data), &step); err != nil {
			t.Error(err)
		}
		c.steps[fmt.Sprint(step["step_id"])] = step
	case "end":
		c.over = true
	default:
		c.events = append(c.events, e.Name+" "+e.Data)
	}
}

// progress returns how many events the client has received, and whether the stream ended.
func (c *streamClient) progress() (received int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.steps) + len(c.events), c.over
}

// awaitMore waits until the client has received ten more events, or the end.
func (c *streamClient) awaitMore(t *testing.T) {
	t.Helper()
	before, _ := c.progress()
	harness.Eventually(t, "more events arrive", func() bool {
		received, over := c.progress()
		return over || received >= before+10
	})
}

// The server is killed while clients follow a run and the events of the workspace. They
// reconnect to the next server with the last event id and miss no step and no event, and
// get no log line twice.
func TestStreamsSurviveKills(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	kills := lane.Pick(2, 5)
	s := harness.Start(t, t.TempDir())
	var w workflowBody
	s.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "followed"}).Decode(t, &w)
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+w.ID, json.RawMessage(`{"steps": [
		{"id": "each", "repeat": {"until": "index == 79", "max": 100}, "steps": [
			{"id": "say", "uses": "log.write", "with": {"message": "round ${{ index }}"}},
			{"id": "rest", "uses": "flow.wait", "with": {"for": "10ms"}}]}]}`))
	run := startRun(t, s.Client, w.ID, 0).ID
	path := "/v1/runs/" + run + "/events"
	watcher, listener := &streamClient{steps: map[string]any{}}, &streamClient{lastID: "0"}

	for range kills {
		var both sync.WaitGroup
		both.Go(func() { watcher.follow(t, s, path) })
		both.Go(func() { listener.follow(t, s, "/v1/events/stream") })
		watcher.awaitMore(t)
		startRun(t, s.Client, w.ID, 0) // an event for the other stream
		s.Kill(t)
		both.Wait()
		s = restart(t, s)
	}
	watcher.follow(t, s, path)
	if !watcher.over {
		t.Fatal("the end event is missing")
	}
	watcher.checkRun(t, s, run)

	all := &streamClient{lastID: "0"}
	var both sync.WaitGroup
	both.Go(func() { listener.follow(t, s, "/v1/events/stream") })
	both.Go(func() { all.follow(t, s, "/v1/events/stream") })
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		listener.mu.Lock()
		all.mu.Lock()
		diff := cmp.Diff(all.events, listener.events)
		enough := len(all.events) >= 2*(kills+1)
		all.mu.Unlock()
		listener.mu.Unlock()
		if diff == "" && enough {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("events (-all +received across kills):\n%s", diff)
		}
	}
	s.Stop(t) // while both are connected
	both.Wait()
}

// checkRun compares the received events with the run.
func (c *streamClient) checkRun(t *testing.T, s *harness.Server, run string) {
	t.Helper()
	var body struct{ Steps []map[string]any }
	s.Expect(t, 200, "GET", "/v1/runs/"+run, nil).Decode(t, &body)
	want := map[string]any{}
	for _, step := range body.Steps {
		delete(step, "input")
		delete(step, "output")
		want[fmt.Sprint(step["step_id"])] = step
	}
	if diff := cmp.Diff(want, c.steps); diff != "" {
		t.Errorf("steps (-want +received):\n%s", diff)
	}
	var lines []string
	for cursor := ""; ; {
		var page struct {
			Data       []json.RawMessage
			NextCursor *string `json:"next_cursor"`
		}
		s.Expect(t, 200, "GET", "/v1/runs/"+run+"/logs?limit=100"+cursor, nil).Decode(t, &page)
		for _, line := range page.Data {
			lines = append(lines, "log "+string(line))
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if diff := cmp.Diff(lines, c.events); diff != "" || len(lines) < 80 {
		t.Errorf("log lines (-want +received):\n%s", diff)
	}
}
