package crash_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
)

// told is what a client of a stream keeps.
type told struct {
	mu     sync.Mutex
	lastID string
	steps  map[string]any
	events []string // all others, by name and data
	over   bool
}

// follow reads a stream until it breaks, beginning after what was seen last,
// the way EventSource does.
func (c *told) follow(t *testing.T, s *harness.Server, path string) {
	t.Helper()
	var headers []string
	if c.lastID != "" {
		headers = []string{"Last-Event-ID", c.lastID}
	}
	response, err := s.Open(t.Context(), http.MethodGet, path, http.NoBody, headers...)
	if err != nil {
		return // it was killed before it could answer
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s after %q: status %d", path, c.lastID, response.StatusCode)
		return
	}
	var name, data string
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			data = value
		case "id":
			c.mu.Lock()
			c.lastID = value
			c.mu.Unlock()
		case "":
			c.hear(t, name, data)
			name, data = "", ""
		}
	}
}

func (c *told) hear(t *testing.T, name, data string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch name {
	case "", "run":
	case "step":
		var step map[string]any
		if err := json.Unmarshal([]byte(data), &step); err != nil {
			t.Error(err)
		}
		c.steps[fmt.Sprint(step["step_id"])] = step
	case "end":
		c.over = true
	default:
		c.events = append(c.events, name+" "+data)
	}
}

// progress is how much a client has heard, and whether that is all.
func (c *told) progress() (heard int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.steps) + len(c.events), c.over
}

// hearMore waits until a client has heard some more, or everything.
func (c *told) hearMore(t *testing.T) {
	t.Helper()
	before, _ := c.progress()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if heard, over := c.progress(); over || heard >= before+10 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is told")
		}
	}
}

// The server is killed while clients follow a run and the events of the
// workspace. They connect again to its successor, say what they have seen last,
// and miss nothing: not a step, not an event, and no log line twice.
func TestKillWhileFollowed(t *testing.T) {
	t.Parallel()
	const kills = 5
	s := harness.Start(t, t.TempDir())
	var w workflowBody
	s.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "followed"}).Decode(t, &w)
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+w.ID, json.RawMessage(`{"steps": [
		{"id": "each", "repeat": {"until": "index == 79", "max": 100}, "steps": [
			{"id": "say", "uses": "log.write", "with": {"message": "round ${{ index }}"}},
			{"id": "rest", "uses": "flow.wait", "with": {"for": "10ms"}}]}]}`))
	run := startRun(t, s.Client, w.ID, 0).ID
	path := "/v1/runs/" + run + "/events"
	watcher, listener := &told{steps: map[string]any{}}, &told{lastID: "0"}

	for range kills {
		var both sync.WaitGroup
		both.Go(func() { watcher.follow(t, s, path) })
		both.Go(func() { listener.follow(t, s, "/v1/events/stream") })
		watcher.hearMore(t)
		startRun(t, s.Client, w.ID, 0) // something for the other stream
		s.Kill(t)
		both.Wait()
		s = restart(t, s)
	}
	watcher.follow(t, s, path)
	if !watcher.over {
		t.Fatal("the end is not told")
	}
	watcher.checkRun(t, s, run)

	all := &told{lastID: "0"}
	var both sync.WaitGroup
	both.Go(func() { listener.follow(t, s, "/v1/events/stream") })
	both.Go(func() { all.follow(t, s, "/v1/events/stream") })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
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
			t.Fatalf("who was there all the time heard something else (-all +heard):\n%s", diff)
		}
	}
	s.Stop(t) // while both are connected
	both.Wait()
}

// checkRun holds what a client was told against what the run is.
func (c *told) checkRun(t *testing.T, s *harness.Server, run string) {
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
		t.Errorf("steps (-are +told):\n%s", diff)
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
		t.Errorf("log lines (-are +told):\n%s", diff)
	}
}
