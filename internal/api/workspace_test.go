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

// testWorkspace is a separate workspace with the objects that a test created.
type testWorkspace struct {
	client // with an admin key
	t      *testing.T
	id     string
	names  map[string]string // values of $name in paths and bodies
}

// newTestWorkspace creates a workspace on the shared server.
func newTestWorkspace(t *testing.T) *testWorkspace {
	t.Helper()
	return sharedServer(t).newTestWorkspace(t)
}

func (s *server) newTestWorkspace(t *testing.T) *testWorkspace {
	t.Helper()
	return s.newTestWorkspaceWith(t, `{"name": "Test", "plan": "enterprise", "requests_per_minute": 1000000}`)
}

// newTestWorkspaceWith creates a workspace with the given body.
func (s *server) newTestWorkspaceWith(t *testing.T, body string) *testWorkspace {
	t.Helper()
	made := s.operator(t).call("POST", "/v1/workspaces", body).wantStatus(http.StatusCreated)
	w := &testWorkspace{
		client: client{t: t, server: s, key: made.str("api_key")}, t: t, id: made.str("id"), names: map[string]string{},
	}
	w.names["workspace"] = w.id
	return w
}

// withT returns the workspace for use in a subtest.
func (w *testWorkspace) withT(t *testing.T) *testWorkspace {
	copied := *w
	copied.t, copied.client.t = t, t
	return &copied
}

// operator returns a client with the admin key of the first workspace.
func (s *server) operator(t *testing.T) client {
	t.Helper()
	return client{t: t, server: s, key: s.firstKey}
}

// anonymous returns a client without a key.
func (s *server) anonymous(t *testing.T) client {
	t.Helper()
	return client{t: t, server: s}
}

// withScopes returns a client with a new key of the workspace.
func (w *testWorkspace) withScopes(scopes ...string) client {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"name": "test", "scopes": scopes})
	if err != nil {
		w.t.Fatal(err)
	}
	return client{t: w.t, server: w.server, key: w.client.call("POST", "/v1/api-keys", string(body)).wantStatus(http.StatusCreated).str("key")}
}

var nameInText = regexp.MustCompile(`\$[a-z_]+[0-9]*`)

// expand replaces $names in a text. Unknown names stay as they are, because
// expressions also use the dollar sign.
func (w *testWorkspace) expand(text string) string {
	return nameInText.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := w.names[name[1:]]; ok {
			return value
		}
		return name
	})
}

// call sends a request and expands names.
func (w *testWorkspace) call(method, path, body string, headers ...string) *response {
	w.t.Helper()
	filled := slices.Clone(headers)
	for i := range filled {
		filled[i] = w.expand(filled[i])
	}
	return w.client.call(method, w.expand(path), w.expand(body), filled...)
}

// create sends a POST and stores the id of the new object under a name.
func (w *testWorkspace) create(name, path, body string) *response {
	w.t.Helper()
	a := w.call("POST", path, body).wantStatus(http.StatusCreated)
	w.names[name] = a.str("id")
	return a
}

// workflow creates a workflow with steps under a name. Without steps it stays
// as created.
func (w *testWorkspace) workflow(name string, steps ...string) *response {
	w.t.Helper()
	a := w.create(name, "/v1/workflows", fmt.Sprintf(`{"name": "Workflow %s"}`, name))
	if len(steps) > 0 {
		a = w.patch(name, fmt.Sprintf(`{"steps": [%s]}`, strings.Join(steps, ",")))
	}
	return a
}

// patch updates a workflow.
func (w *testWorkspace) patch(name, body string) *response {
	w.t.Helper()
	return w.call("PATCH", "/v1/workflows/$"+name, body).wantStatus(http.StatusOK)
}

// startRun starts a run of a workflow and stores its id under a name.
func (w *testWorkspace) startRun(name, workflow, body string) *response {
	w.t.Helper()
	return w.create(name, "/v1/workflows/$"+workflow+"/runs", body)
}

// runToEnd starts a run, waits for its end and stores its id under a name.
func (w *testWorkspace) runToEnd(name, workflow, body string) *response {
	w.t.Helper()
	a := w.call("POST", "/v1/workflows/$"+workflow+"/runs", body, "Prefer", "wait=60")
	if a.status != http.StatusCreated { // the machine is too busy to end it in time
		a.wantStatus(http.StatusOK)
	}
	w.names[name] = a.str("id")
	eventually(w.t, "the run ends", func() bool {
		if a.str("status") == "running" {
			a = w.call("GET", "/v1/runs/$"+name, "").wantStatus(http.StatusOK)
		}
		return a.str("status") != "running"
	})
	return a
}

// runUntilWaiting starts a run and returns when it waits for a step.
func (w *testWorkspace) runUntilWaiting(name, workflow string) *response {
	w.t.Helper()
	w.startRun(name, workflow, "")
	var a *response
	eventually(w.t, "the run waits", func() bool {
		a = w.call("GET", "/v1/runs/$"+name, "").wantStatus(http.StatusOK)
		waits, ok := a.object()["waiting_for"].(map[string]any)
		return ok && waits["step_id"] != nil // not only for a slot
	})
	return a
}

// waitForStep returns when a run waits for a step.
func (w *testWorkspace) waitForStep(name, step string) *response {
	w.t.Helper()
	var a *response
	eventually(w.t, "the run waits for "+step, func() bool {
		a = w.call("GET", "/v1/runs/$"+name, "").wantStatus(http.StatusOK)
		waiting, _ := a.object()["waiting_for"].(map[string]any)
		return waiting["step_id"] == step
	})
	return a
}

// waitForStatus returns when a run has ended and fails the test unless it has
// the status.
func (w *testWorkspace) waitForStatus(name, status string) *response {
	w.t.Helper()
	var a *response
	eventually(w.t, "the run ends", func() bool {
		a = w.call("GET", "/v1/runs/$"+name, "").wantStatus(http.StatusOK)
		return a.str("status") != "running"
	})
	if got := a.str("status"); got != status {
		w.t.Fatalf("the run ended as %s: %s", got, a.body)
	}
	return a
}

// events lists the events of the workspace in the order they were stored.
func (w *testWorkspace) events() []string {
	w.t.Helper()
	return firstColumn(w.server.query(w.t, `SELECT type FROM events WHERE workspace_id = ? AND NOT sample ORDER BY seq`, w.id))
}

// eventBodies lists the webhook bodies of a type.
func (w *testWorkspace) eventBodies(kind string) []map[string]any {
	w.t.Helper()
	var out []map[string]any
	for _, row := range w.server.query(w.t, `SELECT body FROM events WHERE workspace_id = ? AND type = ? ORDER BY seq`, w.id, kind) {
		var body map[string]any
		if err := json.Unmarshal([]byte(row[0]), &body); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, body)
	}
	return out
}

// auditActions lists the recorded actions of the workspace, oldest first.
func (w *testWorkspace) auditActions() []string {
	w.t.Helper()
	return firstColumn(w.server.query(w.t, `SELECT action FROM audit WHERE workspace_id = ? ORDER BY id`, w.id))
}

func firstColumn(rows [][]string) []string {
	var out []string
	for _, row := range rows {
		out = append(out, row[0])
	}
	return out
}

// Steps used by many tests.
const (
	setStep  = `{"id": "set", "uses": "data.set", "with": {"values": {"a": 1}}}`
	waitStep = `{"id": "pause", "uses": "flow.wait", "with": {"for": "1h"}}`
	askStep  = `{"id": "ask", "uses": "flow.approval", "with": {"message": "Go on?"}}`
	failStep = `{"id": "fail", "name": "Fail on purpose", "uses": "flow.wait", "with": {"for": "${{ trigger.payload.none }}"}}`
)
