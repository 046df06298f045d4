package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/template"
)

// fakeServices stands in for all servers that templates call and records
// requests.
type fakeServices struct {
	mu    sync.Mutex
	calls []string
	down  int // how many bookings fail before one succeeds
	looks int // how often an invoice was looked at
}

func (s *fakeServices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body struct {
		Text string `json:"text"`
	}
	if r.Body != nil {
		_ = json.NewDecoder(r.Body).Decode(&body) // not every body is JSON
	}
	s.calls = append(s.calls, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+body.Text))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/www/health":
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/api/orders" && r.Method == http.MethodGet:
		fmt.Fprint(w, `[{"country": "FR", "total": 10}, {"country": "DE", "total": 5}, {"country": "FR", "total": 2}]`)
	case r.URL.Path == "/api/records/2":
		w.WriteHeader(http.StatusNotFound)
	case strings.HasPrefix(r.URL.Path, "/api/records/"):
		fmt.Fprintf(w, `{"name": "n%s"}`, r.URL.Path[len("/api/records/"):])
	case r.URL.Path == "/api/bookings" && s.down > 0:
		s.down--
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.HasPrefix(r.URL.Path, "/api/invoices/"):
		s.looks++
		fmt.Fprintf(w, `{"paid": %t}`, s.looks > 1)
	default:
		fmt.Fprint(w, `{}`)
	}
}

func (s *fakeServices) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.calls, "\n")
}

var templateHost = regexp.MustCompile(`https://(\w+)\.example\.com`)

// Every template that needs no connection is valid and does what it describes: it is used
// with the addresses of fakes for the servers it calls. test/services runs the others.
func TestTemplates(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) {
		c.EgressAllow = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
	})
	outcomes := map[string]struct {
		status string
		asked  []string
		once   string // a request that a second run does not repeat
		answer string
	}{
		"hello":           {status: "succeeded", answer: `{"steps": [{"output": {"text": "Hello Ada!", "letters": 3}}, {}]}`},
		"clean-up-data":   {status: "succeeded", answer: `{"steps": [{"output": {"good": [{"name": "Ada Lovelace", "email": "ada@example.com"}]}}, {"status": "succeeded"}]}`},
		"order-lines":     {status: "succeeded", answer: `{"steps": [{}, {}, {}, {"step_id": "sum", "output": {"total": 39, "lines": 2}}, {"step_id": "large", "status": "succeeded"}, {"step_id": "small", "status": "skipped"}]}`},
		"health-check":    {status: "succeeded", asked: []string{"GET /www/health", "POST /chat/hook The health check failed: 503"}, once: "POST /chat/hook"},
		"webhook-forward": {status: "succeeded", asked: []string{"POST /api/orders"}},
		"nightly-report":  {status: "succeeded", asked: []string{"GET /api/orders", "POST /chat/hook 3 orders, 17 in total\nFR: 12\nDE: 5"}},
		"approve-deploy":  {status: "running", asked: []string{"POST /chat/hook Deploy shop 1.4.2?"}},
		"poll-items":      {status: "succeeded", asked: []string{"POST /chat/hook A new item: "}},
		"fan-out":         {status: "succeeded", answer: `{"steps": [{}, {}, {}, {}, {}, {}, {}, {"step_id": "result", "output": {"names": ["n1", "n3"], "failed": [2]}}]}`},
		"retry-backoff":   {status: "succeeded", asked: []string{"POST /api/bookings\nPOST /api/bookings"}},
		"failure-handler": {status: "succeeded", asked: []string{"POST /chat/hook Orders failed at get"}},
		"form-intake":     {status: "succeeded", asked: []string{"POST /api/entries"}, answer: `{"steps": [{}, {}, {"output": {"response": {"status": 200}}}]}`},
		"wait-and-remind": {status: "succeeded", asked: []string{"GET /api/invoices/4711\nPOST /mail/send Invoice 4711 is still open.\nGET /api/invoices/4711"}},
		"sub-workflow":    {status: "succeeded"},
	}
	all, err := template.All()
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(slices.Clone(all), template.Template.Connects)
	if len(all) != len(outcomes) {
		t.Errorf("%d templates, %d outcomes", len(all), len(outcomes))
	}
	for _, one := range all {
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			want, known := outcomes[one.Name]
			if !known {
				t.Fatal("say what comes of it")
			}
			servers := &fakeServices{down: 1}
			listener := httptest.NewServer(servers)
			t.Cleanup(listener.Close)
			w := s.newTestWorkspace(t)
			w.workflow("other", setStep)
			inputs := map[string]any{}
			for _, in := range one.Inputs {
				if in.Required() {
					inputs[in.Name] = templateHost.ReplaceAllString(in.Example, listener.URL+"/$1")
				}
				if in.Type == template.Workflow {
					inputs[in.Name] = w.names["other"]
				}
			}
			made := w.call("POST", "/v1/templates/"+one.Name+"/workflows", jsonText(t, map[string]any{"inputs": inputs})).wantStatus(http.StatusCreated)
			w.names["wf"] = made.str("id")
			wantContains(t, made.json(), jsonText(t, map[string]any{"name": one.Title, "description": one.Description, "state": "draft", "source_stale": false}))
			w.lenient = true
			// Tests shorten the waits.
			text := strings.NewReplacer("initial: 1s", "initial: 10ms", "every: 1d", "every: 1s").Replace(made.str("source"))
			w.patch("wf", sourcePatch(text))
			payload := string(one.Payload)
			wait := "wait=20"
			if want.status == "running" {
				wait = "wait=1"
			}
			a := w.call("POST", "/v1/workflows/$wf/runs", `{"payload": `+payload+`}`, "Prefer", wait)
			if want.status == "running" {
				w.names["run"] = a.wantStatus(http.StatusCreated).str("id")
				eventually(t, "it asks", func() bool { return strings.Contains(servers.requests(), want.asked[0]) })
				w.call("POST", "/v1/runs/$run/steps/ask/resume", `{"approved": true}`).wantStatus(http.StatusOK)
				eventually(t, "it deploys", func() bool { return strings.Contains(servers.requests(), "POST /deploy/deployments") })
				return
			}
			if got := a.wantStatus(http.StatusOK).str("status"); got != want.status {
				t.Errorf("it ends as %s: %s", got, a.body)
			}
			for _, call := range want.asked {
				if !strings.Contains(servers.requests(), call) {
					t.Errorf("no %q among\n%s", call, servers.requests())
				}
			}
			if want.answer != "" {
				wantContains(t, a.json(), want.answer)
			}
			if want.once != "" {
				w.call("POST", "/v1/workflows/$wf/runs", `{"payload": `+payload+`}`, "Prefer", wait).wantStatus(http.StatusOK)
				if n := strings.Count(servers.requests(), want.once); n != 1 {
					t.Errorf("after a second run there are %d requests %q, want one", n, want.once)
				}
			}
			if one.FirstRun && servers.requests() != "" {
				t.Errorf("one for the first run spoke to a server: %s", servers.requests())
			}
		})
	}
}

func TestListTemplates(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	all := w.call("GET", "/v1/templates?limit=100", "").wantStatus(http.StatusOK)
	first := 0
	for _, one := range all.items() {
		if one["first_run"] == true {
			first++
		}
	}
	if first != 3 {
		t.Errorf("%d templates for the first run, want 3", first)
	}
	one := w.call("GET", "/v1/templates/hello", "").wantStatus(http.StatusOK)
	wantKeys(t, one.object(), "name title description category first_run triggers uses inputs payload source")
	w.workflow("wf")
	wantContains(t, w.patch("wf", sourcePatch(one.str("source"))).json(), `{"steps": [{"id": "greet"}, {"id": "tell"}], "source_stale": false}`)
	w.call("GET", "/v1/templates/none", "").wantStatus(http.StatusNotFound, "template_not_found")
	if got := slices.Concat(readPages(w.client, "/v1/templates?limit=5", "name")...); !slices.Equal(got, all.column("name")) {
		t.Errorf("page by page there are %v", got)
	}
}

func TestUseTemplate(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	const path = "/v1/templates/poll-items/workflows"
	inputs := w.call("GET", "/v1/templates/poll-items", "").wantStatus(http.StatusOK)
	wantContains(t, inputs.json(), `{"inputs": [
		{"name": "list", "type": "url", "title": "URL of the list", "required": true, "default": null, "example": "https://news.example.com/items",
		 "pattern": null, "options": null, "integration": null, "services": null, "lists": null},
		{"name": "chat", "type": "url"}]}`)

	missing := w.call("POST", path, "").wantStatus(http.StatusBadRequest, "invalid_request")
	wantContains(t, missing.json(), `{"error": {"details": [
		{"pointer": "/inputs/list", "message": "is required"},
		{"pointer": "/inputs/chat", "message": "is required"}]}}`)
	w.call("POST", path, `{"inputs": {"list": "https://a.test", "chat": "none"}}`).wantStatus(http.StatusBadRequest, "invalid_request")
	w.call("POST", path, `{"inputs": {"list": "https://a.test", "chat": "https://b.test", "chats": 1}}`).wantStatus(http.StatusBadRequest, "invalid_request")
	w.call("POST", "/v1/templates/none/workflows", `{}`).wantStatus(http.StatusNotFound, "template_not_found")

	const body = `{"name": "News", "inputs": {"list": "https://a.test/list", "chat": "https://b.test/hook"}}`
	made := w.call("POST", path, body, "Idempotency-Key", "once").wantStatus(http.StatusCreated)
	wantContains(t, made.json(), `{"name": "News", "description": "Polls a server every few minutes and starts a run for each new item.", "state": "draft", "version": 1,
		"triggers": [{"request": {"url": "https://a.test/list"}}], "steps": [{"with": {"url": "https://b.test/hook"}}]}`)
	if source := made.str("source"); !strings.Contains(source, "# Each new item starts its own run.") {
		t.Errorf("the comments are gone:\n%s", source)
	}
	again := w.call("POST", path, body, "Idempotency-Key", "once").wantStatus(http.StatusCreated)
	if again.str("id") != made.str("id") {
		t.Error("the repeated request created another workflow")
	}
}

func jsonText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
