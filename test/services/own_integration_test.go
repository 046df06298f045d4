package services_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

const acmeToken = "the-token-of-acme"

// acme stands for a service that Stepmill does not know.
type acme struct {
	mu      sync.Mutex
	tickets []string
	listed  int
	hosts   []string // others that received a credential
}

func (a *acme) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Host != "api.acme.example" && r.Header.Get("Authorization") != "" {
		a.hosts = append(a.hosts, r.Host)
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+acmeToken:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v1/me":
		fmt.Fprint(w, `{"name": "ada"}`)
	case r.URL.Path == "/v1/tickets" && r.Method == http.MethodPost:
		var body struct{ Subject string }
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &body) // the test compares it
		a.tickets = append(a.tickets, body.Subject)
		fmt.Fprintf(w, `{"id": %d, "subject": %q}`, len(a.tickets), body.Subject)
	case r.URL.Path == "/v1/tickets":
		a.listed++
		var found []string
		for n, subject := range a.tickets {
			found = append(found, fmt.Sprintf(`{"id": %d, "subject": %q}`, n+1, subject))
		}
		fmt.Fprintf(w, `{"tickets": [%s]}`, strings.Join(found, ","))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *acme) polls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.listed
}

func (a *acme) strays() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hosts
}

const acmeManifest = `
# Tickets of our own service.
id: x_acme
name: Acme tickets
category: support
docs: https://docs.acme.example
base_url: https://api.acme.example/v1
connection:
  auth: [{kind: bearer, label: Access token}]
  hosts: [api.acme.example]
  test: {path: /me}
  learn: {label: "${{ test.name }}"}
operations:
  create_ticket:
    title: Create a ticket
    input: {subject: {type: string, title: Subject, required: true}}
    request: {method: POST, path: /tickets, json: {subject: "${{ input.subject }}"}}
    output: {id: "${{ body.id }}"}
  list_tickets:
    title: List tickets
    request: {path: /tickets, items: body.tickets}
triggers:
  new_ticket:
    title: New ticket
    poll: {operation: list_tickets, every: 10s}
    key: item.id
`

// acmeServer is a server with an integration and a connection of the service.
type acmeServer struct {
	*harness.Server
	network         *internet
	dir, connection string
}

func startWithAcme(t *testing.T, service *acme) *acmeServer {
	t.Helper()
	s := &acmeServer{network: newInternet(t, service.ServeHTTP), dir: t.TempDir()}
	s.Server = s.network.startIn(t, s.dir)
	s.sendManifest(t, http.StatusCreated, "POST", "/v1/integrations", acmeManifest)
	var made struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "acme", "integration": "x_acme", "auth": "bearer", "fields": map[string]any{"token": acmeToken}, "hosts": []string{"api.acme.example"},
	}).Decode(t, &made)
	s.connection = made.ID
	return s
}

func (s *acmeServer) sendManifest(t *testing.T, status int, method, path, manifest string) {
	t.Helper()
	response, err := s.Open(t.Context(), method, path, strings.NewReader(manifest), "Content-Type", "application/yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != status {
		t.Fatalf("%s %s: %s\n%s", method, path, response.Status, body)
	}
}

// file starts a run that files a ticket, and returns how it ends.
func (s *acmeServer) file(t *testing.T, workflow, subject string) (status string) {
	t.Helper()
	var run struct{ Status string }
	s.Expect(t, http.StatusOK, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": map[string]any{"subject": subject}}, "Prefer", "wait=60").Decode(t, &run)
	return run.Status
}

// awaitRun waits until a trigger has started a run for a ticket.
func (s *acmeServer) awaitRun(t *testing.T, workflow, subject string) {
	t.Helper()
	harness.Eventually(t, "there is a run for the ticket "+subject, func() bool {
		var runs struct{ Data []struct{ ID string } }
		s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/runs?limit=1", nil).Decode(t, &runs)
		if len(runs.Data) == 0 {
			return false
		}
		var run struct {
			Trigger struct{ Payload struct{ Subject string } }
		}
		s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+runs.Data[0].ID, nil).Decode(t, &run)
		return run.Trigger.Payload.Subject == subject
	})
}

// A workspace describes a service that Stepmill does not know, connects to it, and uses it
// in steps and triggers. Another process goes on with it. When the manifest sends the
// credential elsewhere, nothing is sent until somebody confirms that.
func TestOwnIntegration(t *testing.T) {
	t.Parallel()
	service := &acme{}
	s := startWithAcme(t, service)
	var tested struct {
		OK         bool
		Connection struct{ Account string }
	}
	s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+s.connection+"/test", nil).Decode(t, &tested)
	if !tested.OK || tested.Connection.Account != "ada" {
		t.Fatalf("the test of the connection: %+v", tested)
	}
	step := flow.Step("file", "x_acme.create_ticket", `{"subject": "${{ trigger.payload.subject }}"}`)
	step["connection"] = "acme"
	filing := flow.Define(t, s.Client, step)
	watching := flow.Define(t, s.Client, flow.Set("note", "${{ trigger.payload.subject }}"))
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+watching, map[string]any{"state": "active", "triggers": []any{
		map[string]any{"id": "tickets", "type": "x_acme.new_ticket", "connection": "acme"},
	}})
	harness.Eventually(t, "the first poll has seen that there are no tickets", func() bool { return service.polls() > 0 })
	if status := s.file(t, filing, "from a step"); status != "succeeded" {
		t.Fatalf("the run is %s", status)
	}
	s.awaitRun(t, watching, "from a step")

	s.restart(t)
	if status := s.file(t, filing, "after the restart"); status != "succeeded" {
		t.Fatalf("the run is %s", status)
	}
	s.awaitRun(t, watching, "after the restart")

	s.sendManifest(t, http.StatusOK, "PUT", "/v1/integrations/x_acme", strings.ReplaceAll(acmeManifest, "api.acme.example", "api.other.example"))
	s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+s.connection+"/test", nil).Decode(t, &tested)
	if tested.OK {
		t.Error("a connection that nobody has confirmed was tested")
	}
	s.sendManifest(t, http.StatusOK, "PUT", "/v1/integrations/x_acme", acmeManifest)
	s.Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+s.connection, map[string]any{
		"fields": map[string]any{"token": acmeToken}, "hosts": []string{"api.acme.example"},
	})
	if status := s.file(t, filing, "confirmed"); status != "succeeded" {
		t.Errorf("the run is %s", status)
	}
	if hosts := service.strays(); len(hosts) > 0 {
		t.Errorf("the credential was sent to %v", hosts)
	}
}

// restart ends the server and starts it again.
func (s *acmeServer) restart(t *testing.T) {
	t.Helper()
	key := s.Key
	s.Stop(t)
	s.Server = s.network.startIn(t, s.dir)
	s.Key = key
}
