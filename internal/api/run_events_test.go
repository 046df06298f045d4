package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/test/lane"
)

const logStep = `{"id": "note", "uses": "log.write", "with": {"message": "Line one\nand two"}}`

func TestFollowRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep, askStep, logStep)
	w.runUntilWaiting("run", "wf")

	s := w.follow("run", "")
	first := s.waitFor("run")
	if first.id != "" || first.str(t, "status") != "running" {
		t.Errorf("it begins with %+v", first)
	}
	if set := s.waitFor("step"); set.str(t, "step_id") != "set" || set.str(t, "status") != "succeeded" {
		t.Errorf("the first step was sent as %s", set.data)
	}
	if waits := s.waitFor("step"); waits.str(t, "step_id") != "ask" || waits.str(t, "status") != "waiting" || waits.id == "" {
		t.Errorf("the second step was sent as %+v", waits)
	}
	w.approve("run")
	rest := s.readAll()
	if last := rest[len(rest)-1]; last.name != "end" || last.id != "end" || last.data != `{"reason":"finished"}` {
		t.Errorf("it ends with %+v", last)
	}
	final := rest[len(rest)-2]
	if final.name != "run" || final.str(t, "status") != "succeeded" || final.str(t, "finished_at") == "<nil>" {
		t.Errorf("before its end comes %+v", final)
	}
	i := slices.IndexFunc(rest, func(e sseEvent) bool { return e.name == "log" })
	if i < 0 || rest[i].str(t, "message") != "Line one\nand two" || rest[i].str(t, "step_id") != "note" {
		t.Errorf("the log line is not among %v", rest)
	}

	a := w.call("GET", "/v1/runs/$run/events", "", "Last-Event-ID", "end").wantStatus(204)
	if len(a.body) != 0 {
		t.Errorf("a client that has seen the end gets %s", a.body)
	}
}

// A stream can be opened at any time, even after the run has ended.
func TestFollowFinishedRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep, logStep)
	w.runToEnd("run", "wf", "")
	all := w.follow("run", "").readAll()
	if diff := cmp.Diff([]string{"run", "log", "step", "step", "end"}, eventNames(all)); diff != "" {
		// The two steps may be from one commit or two; the log line precedes
		// its step.
		if diff := cmp.Diff([]string{"run", "step", "log", "step", "end"}, eventNames(all)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	for i, e := range all[:len(all)-1] {
		if e.id == "" || i > 0 && all[i-1].id == e.id {
			continue
		}
		want := append([]string{"run"}, eventNames(all[i+1:])...)
		if diff := cmp.Diff(want, eventNames(w.follow("run", e.id).readAll())); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", e.id, diff)
		}
	}
	w.workflow("empty")
	w.runToEnd("nothing", "empty", "")
	if diff := cmp.Diff([]string{"run", "end"}, eventNames(w.follow("nothing", "").readAll())); diff != "" {
		t.Errorf("of a run without steps (-want +got):\n%s", diff)
	}
}

func TestFollowRunErrors(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", waitStep)
	w.runUntilWaiting("run", "wf")
	for _, id := range []string{"x", "-1", "1.", "01", "1,2", "End"} {
		w.call("GET", "/v1/runs/$run/events", "", "Last-Event-ID", id).wantStatus(400, "invalid_request")
	}
	w.call("GET", "/v1/runs/$run/events?after=1", "").wantStatus(400, "invalid_request")
	w.call("GET", "/v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/events", "").wantStatus(404, "run_not_found")
	w.call("POST", "/v1/runs/$run/events", "").wantStatus(405, "method_not_allowed")
	a := w.call("HEAD", "/v1/runs/$run/events", "").wantStatus(200)
	if !a.isStream() || len(a.body) != 0 {
		t.Errorf("HEAD returned %v", a.header)
	}
}

// An id beyond the run's history comes from before a restored backup: the
// stream starts over.
func TestFollowRestoredRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep, waitStep)
	w.runUntilWaiting("run", "wf")
	for _, id := range []string{"99", "99.3", "end"} {
		s := w.follow("run", id)
		s.waitFor("run")
		if step := s.waitFor("step"); step.str(t, "step_id") != "set" {
			t.Errorf("after %s it begins with %s", id, step.data)
		}
		s.disconnect()
	}
}

func TestFollowRunOfDeletedWorkflow(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", waitStep)
	w.runUntilWaiting("run", "wf")
	s := w.follow("run", "")
	s.waitFor("step")
	w.call("DELETE", "/v1/workflows/$wf", "").wantStatus(204)
	if end := s.waitFor("end"); end.data != `{"reason":"deleted"}` {
		t.Errorf("it ends with %s", end.data)
	}
	s.readAll()
	w.call("GET", "/v1/runs/$run/events", "", "Last-Event-ID", "end").wantStatus(404, "run_not_found")
}

func TestFollowCancelledRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep, waitStep)
	w.runUntilWaiting("run", "wf")
	s := w.follow("run", "")
	s.waitFor("step")
	s.waitFor("step")
	w.call("POST", "/v1/runs/$run/cancel", "").wantStatus(200)
	if step := s.waitFor("step"); step.str(t, "step_id") != "pause" || step.str(t, "status") != "cancelled" {
		t.Errorf("the open step was sent as %s", step.data)
	}
	if run := s.waitFor("run"); run.str(t, "status") != "cancelled" {
		t.Errorf("the run was sent as %s", run.data)
	}
	s.waitFor("end")
}

// runReplica is a client that builds a copy of a run from its stream.
type runReplica struct {
	run    map[string]any
	steps  map[string]map[string]any
	lines  []string
	lastID string
	over   bool
}

func (l *runReplica) apply(t *testing.T, e sseEvent) {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal([]byte(e.data), &data); err != nil {
		t.Fatal(err)
	}
	switch e.name {
	case "run":
		l.run = data
	case "step":
		l.steps[fmt.Sprint(data["step_id"])] = data
	case "log":
		l.lines = append(l.lines, fmt.Sprint(data["step_id"], data["message"]))
	case "end":
		l.over = true
	}
	l.lastID = e.id
}

// A client that is disconnected repeatedly, while the engine works at full
// speed, ends up with the same data as GET, except for the large parts.
func TestFollowRunWithReconnects(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep,
		`{"id": "each", "foreach": "${{ [1, 2, 3, 4, 5, 6, 7, 8] }}", "parallel": 4, "steps": [
			{"id": "say", "uses": "log.write", "with": {"message": "item ${{ item }}"}},
			{"id": "keep", "uses": "data.set", "with": {"values": {"n": "${{ item }}"}}},
			{"id": "rest", "uses": "flow.wait", "with": {"for": "30ms"}},
			{"id": "again", "uses": "log.write", "with": {"message": "again ${{ item }}"}}]}`,
		`{"id": "fail", "on_error": "continue", "retry": {"max_attempts": 3, "initial": "20ms"}, "uses": "http.request", "with": {"url": "http://127.0.0.1:1/"}}`,
		logStep)
	w.startRun("run", "wf", "")

	client := &runReplica{steps: map[string]map[string]any{}}
	random := rand.New(rand.NewPCG(lane.Seed(), 0))
	for connections := 0; !client.over; connections++ {
		if connections > 1000 {
			t.Fatal("the run does not end")
		}
		s := w.follow("run", client.lastID)
		for range 1 + random.IntN(40) {
			e, ok := s.next()
			if !ok {
				break
			}
			client.apply(t, e)
		}
		s.disconnect()
	}

	want := w.call("GET", "/v1/runs/$run", "").wantStatus(200).object()
	received := map[string]any{}
	steps, _ := want["steps"].([]any)
	for _, step := range steps {
		step, _ := step.(map[string]any)
		delete(step, "input")
		delete(step, "output")
		received[fmt.Sprint(step["step_id"])] = step
	}
	delete(want, "steps")
	trigger, _ := want["trigger"].(map[string]any)
	for _, name := range []string{"payload", "headers", "query", "test"} {
		delete(trigger, name)
	}
	if diff := cmp.Diff(plainJSON(t, want), plainJSON(t, client.run)); diff != "" {
		t.Errorf("the run (-read +streamed):\n%s", diff)
	}
	if diff := cmp.Diff(plainJSON(t, received), plainJSON(t, client.steps)); diff != "" {
		t.Errorf("the steps (-read +streamed):\n%s", diff)
	}
	var lines []string
	for _, line := range w.call("GET", "/v1/runs/$run/logs?limit=100", "").wantStatus(200).items() {
		lines = append(lines, fmt.Sprint(line["step_id"], line["message"]))
	}
	if diff := cmp.Diff(lines, client.lines); diff != "" || len(lines) != 17 {
		t.Errorf("the log lines (-read +streamed):\n%s", diff)
	}
}

func plainJSON(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A stream ends when its key is revoked or expires.
func TestStreamsEndWhenKeyIsRevoked(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", waitStep)
	w.runUntilWaiting("run", "wf")
	revoked := w.call("POST", "/v1/api-keys", `{"name": "x", "scopes": ["read"]}`).wantStatus(201)
	expired := w.call("POST", "/v1/api-keys", `{"name": "x", "scopes": ["read"], "expires_at": "2999-01-01T00:00:00Z"}`).wantStatus(201)
	var streams []*stream
	for _, key := range []string{revoked.str("key"), expired.str("key")} {
		c := client{t: t, server: w.server, key: key}
		streams = append(streams, c.follow(w.expand("/v1/runs/$run/events")), c.follow("/v1/events/stream"))
	}
	unaffected := w.follow("run", "")
	w.call("DELETE", "/v1/api-keys/"+revoked.str("id"), "").wantStatus(204)
	// The key expires after both streams are open.
	w.server.query(t, `UPDATE api_keys SET expires_at = ? WHERE id = ?`, time.Now().UnixMicro(), expired.str("id"))
	for _, s := range streams {
		s.readAll()
	}
	w.call("POST", "/v1/runs/$run/cancel", "").wantStatus(200)
	unaffected.waitFor("end") // other streams continue
}

func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.StreamsPerWorkspace = 3 })
	w, other := s.newTestWorkspace(t), s.newTestWorkspace(t)
	w.workflow("wf", waitStep)
	w.runUntilWaiting("run", "wf")
	open := []*stream{w.follow("run", ""), w.client.follow("/v1/events/stream"), w.follow("run", "")}
	for _, path := range []string{"/v1/runs/$run/events", "/v1/events/stream"} {
		a := w.call("GET", path, "").wantStatus(429, "too_many_streams")
		if a.header.Get("Retry-After") == "" {
			t.Error("it does not say when to try again")
		}
	}
	w.call("GET", "/v1/runs/$run", "").wantStatus(200)
	other.client.follow("/v1/events/stream")
	open[0].disconnect()
	eventually(t, "there is room again", func() bool {
		a := w.call("GET", "/v1/runs/$run/events", "")
		return a.status == http.StatusOK
	})
}

// A shutdown does not wait for open streams.
func TestStreamsEndOnShutdown(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	w.workflow("wf", waitStep)
	w.runUntilWaiting("run", "wf")
	var open []*stream
	for range 20 {
		open = append(open, w.follow("run", ""), w.client.follow("/v1/events/stream"))
	}
	for _, one := range open[:20:20] {
		if one.pattern == "/v1/runs/{id}/events" {
			one.waitFor("step")
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for _, one := range open {
		one.readAll()
	}
	if err := s.start(t.Context()); err != nil { // for the cleanup
		t.Fatal(err)
	}
}
