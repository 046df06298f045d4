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
)

const logStep = `{"id": "note", "uses": "log.write", "with": {"message": "Line one\nand two"}}`

func TestFollowRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", setStep, askStep, logStep)
	w.waiting("run", "wf")

	s := w.follow("run", "")
	first := s.want("run")
	if first.id != "" || first.text(t, "status") != "running" {
		t.Errorf("it begins with %+v", first)
	}
	if set := s.want("step"); set.text(t, "step_id") != "set" || set.text(t, "status") != "succeeded" {
		t.Errorf("the first step is told as %s", set.data)
	}
	if waits := s.want("step"); waits.text(t, "step_id") != "ask" || waits.text(t, "status") != "waiting" || waits.id == "" {
		t.Errorf("the second step is told as %+v", waits)
	}
	w.approve("run")
	rest := s.rest()
	if last := rest[len(rest)-1]; last.name != "end" || last.id != "end" || last.data != `{"reason":"finished"}` {
		t.Errorf("it ends with %+v", last)
	}
	final := rest[len(rest)-2]
	if final.name != "run" || final.text(t, "status") != "succeeded" || final.text(t, "finished_at") == "<nil>" {
		t.Errorf("before its end comes %+v", final)
	}
	i := slices.IndexFunc(rest, func(e sent) bool { return e.name == "log" })
	if i < 0 || rest[i].text(t, "message") != "Line one\nand two" || rest[i].text(t, "step_id") != "note" {
		t.Errorf("the log line is not among %v", rest)
	}

	a := w.call("GET", "/v1/runs/$run/events", "", "Last-Event-ID", "end").want(204)
	if len(a.body) != 0 {
		t.Errorf("who has seen the end is answered with %s", a.body)
	}
}

// A stream can be opened at any time of a run, also when it is over.
func TestFollowRunThatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", setStep, logStep)
	w.finish("run", "wf", "")
	all := w.follow("run", "").rest()
	if diff := cmp.Diff([]string{"run", "log", "step", "step", "end"}, names(all)); diff != "" {
		// The two steps may be of one commit or of two, the line is before its step.
		if diff := cmp.Diff([]string{"run", "step", "log", "step", "end"}, names(all)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	for i, e := range all[:len(all)-1] {
		if e.id == "" || i > 0 && all[i-1].id == e.id {
			continue
		}
		want := append([]string{"run"}, names(all[i+1:])...)
		if diff := cmp.Diff(want, names(w.follow("run", e.id).rest())); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", e.id, diff)
		}
	}
	w.workflow("empty")
	w.finish("nothing", "empty", "")
	if diff := cmp.Diff([]string{"run", "end"}, names(w.follow("nothing", "").rest())); diff != "" {
		t.Errorf("of a run without steps (-want +got):\n%s", diff)
	}
}

func TestFollowRunRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", waitStep)
	w.waiting("run", "wf")
	for _, id := range []string{"x", "-1", "1.", "01", "1,2", "End"} {
		w.call("GET", "/v1/runs/$run/events", "", "Last-Event-ID", id).want(400, "invalid_request")
	}
	w.call("GET", "/v1/runs/$run/events?after=1", "").want(400, "invalid_request")
	w.call("GET", "/v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/events", "").want(404, "run_not_found")
	w.call("POST", "/v1/runs/$run/events", "").want(405, "method_not_allowed")
	a := w.call("HEAD", "/v1/runs/$run/events", "").want(200)
	if !a.streamed() || len(a.body) != 0 {
		t.Errorf("HEAD is answered with %v", a.header)
	}
}

// An id that the run has not reached is of a history that a backup undid: the
// run is told from its beginning.
func TestFollowRunThatWasRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", setStep, waitStep)
	w.waiting("run", "wf")
	for _, id := range []string{"99", "99.3", "end"} {
		s := w.follow("run", id)
		s.want("run")
		if step := s.want("step"); step.text(t, "step_id") != "set" {
			t.Errorf("after %s it begins with %s", id, step.data)
		}
		s.close()
	}
}

func TestFollowRunOfDeletedWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", waitStep)
	w.waiting("run", "wf")
	s := w.follow("run", "")
	s.want("step")
	w.call("DELETE", "/v1/workflows/$wf", "").want(204)
	if end := s.want("end"); end.data != `{"reason":"deleted"}` {
		t.Errorf("it ends with %s", end.data)
	}
	s.ends(5 * time.Second)
	w.call("GET", "/v1/runs/$run/events", "", "Last-Event-ID", "end").want(404, "run_not_found")
}

func TestFollowRunThatIsCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", setStep, waitStep)
	w.waiting("run", "wf")
	s := w.follow("run", "")
	s.want("step")
	s.want("step")
	w.call("POST", "/v1/runs/$run/cancel", "").want(200)
	if step := s.want("step"); step.text(t, "step_id") != "pause" || step.text(t, "status") != "cancelled" {
		t.Errorf("the open step is told as %s", step.data)
	}
	if run := s.want("run"); run.text(t, "status") != "cancelled" {
		t.Errorf("the run is told as %s", run.data)
	}
	s.want("end")
}

// learner is a client that keeps what it is told of a run.
type learner struct {
	run    map[string]any
	steps  map[string]map[string]any
	lines  []string
	lastID string
	over   bool
}

func (l *learner) hear(t *testing.T, e sent) {
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

// A client that is thrown off again and again, while the engine works at full
// speed, knows in the end all that reading the run shows, save the large parts.
func TestFollowRunWithBrokenConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", setStep,
		`{"id": "each", "foreach": "${{ [1, 2, 3, 4, 5, 6, 7, 8] }}", "parallel": 4, "steps": [
			{"id": "say", "uses": "log.write", "with": {"message": "item ${{ item }}"}},
			{"id": "keep", "uses": "data.set", "with": {"values": {"n": "${{ item }}"}}},
			{"id": "rest", "uses": "flow.wait", "with": {"for": "30ms"}},
			{"id": "again", "uses": "log.write", "with": {"message": "again ${{ item }}"}}]}`,
		`{"id": "fail", "on_error": "continue", "retry": {"max_attempts": 3, "initial": "20ms"}, "uses": "http.request", "with": {"url": "http://127.0.0.1:1/"}}`,
		logStep)
	w.run("run", "wf", "")

	client := &learner{steps: map[string]map[string]any{}}
	for connections := 0; !client.over; connections++ {
		if connections > 1000 {
			t.Fatal("the run does not end")
		}
		s := w.follow("run", client.lastID)
		for range 1 + rand.IntN(40) {
			e, ok := s.next()
			if !ok {
				break
			}
			client.hear(t, e)
		}
		s.close()
	}

	want := w.call("GET", "/v1/runs/$run", "").want(200).object()
	told := map[string]any{}
	steps, _ := want["steps"].([]any)
	for _, step := range steps {
		step, _ := step.(map[string]any)
		delete(step, "input")
		delete(step, "output")
		told[fmt.Sprint(step["step_id"])] = step
	}
	delete(want, "steps")
	trigger, _ := want["trigger"].(map[string]any)
	for _, name := range []string{"payload", "headers", "query", "test"} {
		delete(trigger, name)
	}
	if diff := cmp.Diff(plainJSON(t, want), plainJSON(t, client.run)); diff != "" {
		t.Errorf("the run (-read +told):\n%s", diff)
	}
	if diff := cmp.Diff(plainJSON(t, told), plainJSON(t, client.steps)); diff != "" {
		t.Errorf("the steps (-read +told):\n%s", diff)
	}
	var lines []string
	for _, line := range w.call("GET", "/v1/runs/$run/logs?limit=100", "").want(200).items() {
		lines = append(lines, fmt.Sprint(line["step_id"], line["message"]))
	}
	if diff := cmp.Diff(lines, client.lines); diff != "" || len(lines) != 17 {
		t.Errorf("the log lines (-read +told):\n%s", diff)
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

// A stream ends soon after its key has lost the right to it.
func TestStreamsEndWithTheirKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", waitStep)
	w.waiting("run", "wf")
	revoked := w.call("POST", "/v1/api-keys", `{"name": "x", "scopes": ["read"]}`).want(201)
	expires := time.Now().Add(2 * time.Second).UTC()
	expired := w.call("POST", "/v1/api-keys", fmt.Sprintf(`{"name": "x", "scopes": ["read"], "expires_at": %q}`, expires.Format(time.RFC3339Nano))).want(201)
	var streams []*stream
	for _, key := range []string{revoked.text("key"), expired.text("key")} {
		c := client{t: t, server: w.server, key: key}
		streams = append(streams, c.follow(w.fill("/v1/runs/$run/events")), c.follow("/v1/events/stream"))
	}
	kept := w.follow("run", "")
	w.call("DELETE", "/v1/api-keys/"+revoked.text("id"), "").want(204)
	begun := time.Now()
	for _, s := range streams {
		s.rest()
	}
	if late := time.Since(expires); time.Since(begun) > 7*time.Second || late > 5*time.Second {
		t.Errorf("they went on for %v, and %v after the expiry", time.Since(begun), late)
	}
	w.call("POST", "/v1/runs/$run/cancel", "").want(200)
	kept.want("end") // others are not concerned
}

func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.StreamsPerWorkspace = 3 })
	w, other := s.newWorld(t), s.newWorld(t)
	w.workflow("wf", waitStep)
	w.waiting("run", "wf")
	open := []*stream{w.follow("run", ""), w.client.follow("/v1/events/stream"), w.follow("run", "")}
	for _, path := range []string{"/v1/runs/$run/events", "/v1/events/stream"} {
		a := w.call("GET", path, "").want(429, "too_many_streams")
		if a.header.Get("Retry-After") == "" {
			t.Error("it does not say when to try again")
		}
	}
	w.call("GET", "/v1/runs/$run", "").want(200)
	other.client.follow("/v1/events/stream")
	open[0].close()
	eventually(t, "there is room again", func() bool {
		a := w.call("GET", "/v1/runs/$run/events", "")
		return a.status == http.StatusOK
	})
}

// A server that is told to stop does not wait for those who watch.
func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newWorld(t)
	w.workflow("wf", waitStep)
	w.waiting("run", "wf")
	var open []*stream
	for range 20 {
		open = append(open, w.follow("run", ""), w.client.follow("/v1/events/stream"))
	}
	for _, one := range open[:20:20] {
		if one.pattern == "/v1/runs/{id}/events" {
			one.want("step")
		}
	}
	begun := time.Now()
	if err := s.halt(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for _, one := range open {
		one.ends(time.Second)
	}
	if err := s.start(t.Context()); err != nil { // for the cleanup
		t.Fatal(err)
	}
}
