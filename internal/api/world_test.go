package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// world is a workspace of its own with what a test put into it.
type world struct {
	client // with an admin key
	t      *testing.T
	id     string
	names  map[string]string // what $name stands for in paths and bodies
}

// newWorld makes a workspace on the shared server.
func newWorld(t *testing.T) *world {
	t.Helper()
	return sharedServer(t).newWorld(t)
}

func (s *server) newWorld(t *testing.T) *world {
	t.Helper()
	return s.newWorldOn(t, `{"name": "Test", "plan": "enterprise", "requests_per_minute": 1000000}`)
}

// newWorldOn makes a workspace as the body says.
func (s *server) newWorldOn(t *testing.T, body string) *world {
	t.Helper()
	made := s.operator(t).call("POST", "/v1/workspaces", body).want(http.StatusCreated)
	w := &world{
		client: client{t: t, server: s, key: made.text("api_key")}, t: t, id: made.text("id"), names: map[string]string{},
	}
	w.names["workspace"] = w.id
	return w
}

// on returns the world for use in a subtest.
func (w *world) on(t *testing.T) *world {
	copied := *w
	copied.t, copied.client.t = t, t
	return &copied
}

// operator has the admin key of the first workspace.
func (s *server) operator(t *testing.T) client {
	t.Helper()
	return client{t: t, server: s, key: s.firstKey}
}

// anonymous has no key.
func (s *server) anonymous(t *testing.T) client {
	t.Helper()
	return client{t: t, server: s}
}

// as returns a client with a new key of the world's workspace.
func (w *world) as(scopes ...string) client {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"name": "test", "scopes": scopes})
	if err != nil {
		w.t.Fatal(err)
	}
	return client{t: w.t, server: w.server, key: w.client.call("POST", "/v1/api-keys", string(body)).want(http.StatusCreated).text("key")}
}

var nameInText = regexp.MustCompile(`\$[a-z_]+[0-9]*`)

// fill puts names into a text. A name that nothing was called is left alone:
// expressions begin with a dollar too.
func (w *world) fill(text string) string {
	return nameInText.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := w.names[name[1:]]; ok {
			return value
		}
		return name
	})
}

// call sends a request with names filled in.
func (w *world) call(method, path, body string, headers ...string) *answer {
	w.t.Helper()
	filled := slices.Clone(headers)
	for i := range filled {
		filled[i] = w.fill(filled[i])
	}
	return w.client.call(method, w.fill(path), w.fill(body), filled...)
}

// make sends a POST that creates something, and calls it by a name.
func (w *world) make(name, path, body string) *answer {
	w.t.Helper()
	a := w.call("POST", path, body).want(http.StatusCreated)
	w.names[name] = a.text("id")
	return a
}

// workflow makes a workflow with steps, and calls it by a name. Without steps
// it stays as it was created.
func (w *world) workflow(name string, steps ...string) *answer {
	w.t.Helper()
	a := w.make(name, "/v1/workflows", fmt.Sprintf(`{"name": "Workflow %s"}`, name))
	if len(steps) > 0 {
		a = w.patch(name, fmt.Sprintf(`{"steps": [%s]}`, strings.Join(steps, ",")))
	}
	return a
}

// patch changes a workflow.
func (w *world) patch(name, body string) *answer {
	w.t.Helper()
	return w.call("PATCH", "/v1/workflows/$"+name, body).want(http.StatusOK)
}

// run starts a run of a workflow, and calls it by a name.
func (w *world) run(name, workflow, body string) *answer {
	w.t.Helper()
	return w.make(name, "/v1/workflows/$"+workflow+"/runs", body)
}

// finish starts a run, waits for its end, and calls it by a name.
func (w *world) finish(name, workflow, body string) *answer {
	w.t.Helper()
	a := w.call("POST", "/v1/workflows/$"+workflow+"/runs", body, "Prefer", "wait=30").want(http.StatusOK)
	w.names[name] = a.text("id")
	return a
}

// waiting starts a run that stops at a wait, and comes back once it does.
func (w *world) waiting(name, workflow string) *answer {
	w.t.Helper()
	w.run(name, workflow, "")
	var a *answer
	eventually(w.t, "the run waits", func() bool {
		a = w.call("GET", "/v1/runs/$"+name, "").want(http.StatusOK)
		waits, ok := a.object()["waiting_for"].(map[string]any)
		return ok && waits["step_id"] != nil // and not only for its turn
	})
	return a
}

// waits comes back once a run waits for a step.
func (w *world) waits(name, step string) *answer {
	w.t.Helper()
	var a *answer
	eventually(w.t, "the run waits for "+step, func() bool {
		a = w.call("GET", "/v1/runs/$"+name, "").want(http.StatusOK)
		waiting, _ := a.object()["waiting_for"].(map[string]any)
		return waiting["step_id"] == step
	})
	return a
}

// ends comes back once a run has ended, and fails the test unless it has the
// status.
func (w *world) ends(name, status string) *answer {
	w.t.Helper()
	var a *answer
	eventually(w.t, "the run ends", func() bool {
		a = w.call("GET", "/v1/runs/$"+name, "").want(http.StatusOK)
		return a.text("status") != "running"
	})
	if got := a.text("status"); got != status {
		w.t.Fatalf("the run ended as %s: %s", got, a.body)
	}
	return a
}

// events lists the events of the workspace in the order they were stored.
func (w *world) events() []string {
	w.t.Helper()
	return column(w.server.rows(w.t, `SELECT type FROM events WHERE workspace_id = ? AND NOT sample ORDER BY seq`, w.id))
}

// eventBodies lists what is sent to webhooks, by type.
func (w *world) eventBodies(kind string) []map[string]any {
	w.t.Helper()
	var out []map[string]any
	for _, row := range w.server.rows(w.t, `SELECT body FROM events WHERE workspace_id = ? AND type = ? ORDER BY seq`, w.id, kind) {
		var body map[string]any
		if err := json.Unmarshal([]byte(row[0]), &body); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, body)
	}
	return out
}

// audited lists the deeds recorded in the workspace, oldest first.
func (w *world) audited() []string {
	w.t.Helper()
	return column(w.server.rows(w.t, `SELECT action FROM audit WHERE workspace_id = ? ORDER BY id`, w.id))
}

func column(rows [][]string) []string {
	var out []string
	for _, row := range rows {
		out = append(out, row[0])
	}
	return out
}

// Steps that many tests use.
const (
	setStep  = `{"id": "set", "uses": "data.set", "with": {"values": {"a": 1}}}`
	waitStep = `{"id": "pause", "uses": "flow.wait", "with": {"for": "1h"}}`
	askStep  = `{"id": "ask", "uses": "flow.approval", "with": {"message": "Go on?"}}`
	failStep = `{"id": "fail", "name": "Fail on purpose", "uses": "flow.wait", "with": {"for": "${{ trigger.payload.none }}"}}`
)
