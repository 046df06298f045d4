package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/openapi"
)

func TestUsage(t *testing.T) {
	const members = "workspace_id plan requests_per_minute limits current days"
	runScenarios(t, []scenario{
		{
			name: "usage tells the plan, its limits, what exists and what happened today",
			setup: func(w *testWorkspace) {
				w.workflow("wf", failStep)
				w.workflow("wait", waitStep)
				w.workflow("none")
				setupWebhook(w)
				w.runToEnd("failed", "wf", "")
				w.runToEnd("succeeded", "none", "")
				w.startRun("cancelled", "wait", "")
				w.call("POST", "/v1/runs/$cancelled/cancel", "").wantStatus(200)
				w.startRun("running", "wait", "")
			},
			request: "GET /v1/usage", scope: "read", status: 200, members: members,
			contains: fmt.Sprintf(`{"workspace_id": "$workspace", "plan": "enterprise", "requests_per_minute": 1000000,
				"limits": {"request_body_bytes": 4194304, "payload_bytes": 2097152, "steps_per_workflow": 500, "workflows": 10000, "webhooks": 500, "api_keys": 500,
					"steps_per_run": 50000, "output_bytes": 1048576, "state_bytes": 33554432, "concurrent_runs": 1000, "queued_runs": 100000,
					"secrets": 10000, "variables": 10000, "variable_bytes": 16777216},
				"current": {"workflows": 3, "webhooks": 1, "api_keys": 2, "secrets": 0, "variables": 0, "variable_bytes": 0, "running_runs": 1},
				"days": [{"date": %q, "requests": 13, "runs_started": 4, "runs_succeeded": 1, "runs_failed": 1, "runs_cancelled": 1}]}`, time.Now().UTC().Format(time.DateOnly)),
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.object()["days"].([]any)[0].(map[string]any), "date requests runs_started runs_succeeded runs_failed runs_cancelled")
			},
		},
		{name: "one day is the least", request: "GET /v1/usage?days=1", status: 200, members: members},
		{name: "ninety days are the most", request: "GET /v1/usage?days=90", status: 200, members: members},
		{name: "days=0 is rejected", request: "GET /v1/usage?days=0", status: 400, code: "invalid_request", message: "days"},
		{name: "days=91 is rejected", request: "GET /v1/usage?days=91", status: 400, code: "invalid_request", message: "days"},
		{name: "days=-1 is rejected", request: "GET /v1/usage?days=-1", status: 400, code: "invalid_request", message: "days"},
		{name: "days=x is rejected", request: "GET /v1/usage?days=x", status: 400, code: "invalid_request", message: "days"},
		{name: "days without a value is rejected", request: "GET /v1/usage?days=", status: 400, code: "invalid_request", message: "days"},
		{name: "days given twice is rejected", request: "GET /v1/usage?days=1&days=2", status: 400, code: "invalid_request", message: "days"},
	})
}

func TestUsageOfEachPlan(t *testing.T) {
	t.Parallel()
	for plan, want := range map[string]string{
		"free": `{"plan": "free", "requests_per_minute": 60, "limits": {"request_body_bytes": 1048576, "payload_bytes": 262144,
			"steps_per_workflow": 50, "workflows": 100, "webhooks": 20, "api_keys": 20,
			"steps_per_run": 1000, "output_bytes": 262144, "state_bytes": 8388608, "concurrent_runs": 5, "queued_runs": 1000,
			"secrets": 100, "variables": 100, "variable_bytes": 1048576, "connections": 20,
			"tables": 10, "table_rows": 10000, "row_bytes": 32768, "state_keys": 1000, "stored_bytes": 16777216,
			"file_bytes": 26214400, "run_file_bytes": 104857600, "stored_file_bytes": 1073741824}}`,
		"pro": `{"plan": "pro", "requests_per_minute": 600, "limits": {"request_body_bytes": 2097152, "payload_bytes": 1048576,
			"steps_per_workflow": 200, "workflows": 1000, "webhooks": 50, "api_keys": 100,
			"steps_per_run": 10000, "output_bytes": 1048576, "state_bytes": 16777216, "concurrent_runs": 50, "queued_runs": 10000,
			"secrets": 1000, "variables": 1000, "variable_bytes": 4194304, "connections": 200,
			"tables": 100, "table_rows": 100000, "row_bytes": 65536, "state_keys": 10000, "stored_bytes": 268435456,
			"file_bytes": 536870912, "run_file_bytes": 2147483648, "stored_file_bytes": 21474836480}}`,
	} {
		w := sharedServer(t).newTestWorkspaceWith(t, `{"name": "n", "plan": "`+plan+`"}`)
		wantContains(t, w.call("GET", "/v1/usage", "").wantStatus(200).json(), want)
	}
}

// Every action leaves an entry with its actor, target and request.
func TestAudit(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.names["admin"] = w.call("GET", "/v1/api-keys", "").column("id")[0]
	deeds := []struct{ action, target, call, body, details string }{
		{"workflow.created", "wf", "POST /v1/workflows", `{"name": "Greet"}`, `{"name": "Greet"}`},
		{"workflow.activated", "wf", "PATCH /v1/workflows/$wf", `{"state": "active"}`, `{"name": "Greet", "previous_state": "draft"}`},
		{"workflow.updated", "wf", "PATCH /v1/workflows/$wf", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}}}]}`, `{"name": "Greet", "version": 2, "changed": ["definition"]}`},
		{"workflow.updated", "wf", "PATCH /v1/workflows/$wf", `{"description": "d", "pinned": {"a": {}}}`, `{"name": "Greet", "changed": ["description", "pinned"]}`},
		{"workflow.renamed", "wf", "PATCH /v1/workflows/$wf", `{"name": "Welcome"}`, `{"name": "Welcome", "previous_name": "Greet"}`},
		{"workflow.paused", "wf", "PATCH /v1/workflows/$wf", `{"state": "paused"}`, `{"previous_state": "active"}`},
		{"workflow.drafted", "wf", "PATCH /v1/workflows/$wf", `{"state": "draft"}`, `{"previous_state": "paused"}`},
		{"webhook.created", "wh", "POST /v1/webhooks", `{"url": "https://example.com/a?token=t0ps3cret", "events": ["run.failed"]}`, `{"url": "https://example.com/a"}`},
		{"webhook.updated", "wh", "PATCH /v1/webhooks/$wh", `{"enabled": false}`, `{"url": "https://example.com/a", "enabled": false}`},
		{"webhook.deleted", "wh", "DELETE /v1/webhooks/$wh", "", `{"url": "https://example.com/a"}`},
		{"api_key.created", "key", "POST /v1/api-keys", `{"name": "k", "scopes": ["read", "write"]}`, `{"name": "k", "scopes": ["read", "write"]}`},
		{"api_key.revoked", "key", "DELETE /v1/api-keys/$key", "", `{}`},
		{"secret.created", "secret", "PUT /v1/secrets/$secret", `{"value": "t0ps3cret"}`, `{}`},
		{"secret.updated", "secret", "PUT /v1/secrets/$secret", `{"value": "t0ps3cret too"}`, `{}`},
		{"secret.deleted", "secret", "DELETE /v1/secrets/$secret", "", `{}`},
		{"variable.created", "variable", "PUT /v1/variables/$variable", `{"value": 1}`, `{}`},
		{"variable.updated", "variable", "PUT /v1/variables/$variable", `{"value": 1}`, `{}`},
		{"variable.deleted", "variable", "DELETE /v1/variables/$variable", "", `{}`},
		{
			"connection.created", "conn", "POST /v1/connections",
			`{"name": "shop", "auth": "bearer", "fields": {"token": "t0ps3cret"}, "definition": {"hosts": ["api.example.com"]}}`, `{"name": "shop"}`,
		},
		{"connection.updated", "conn", "PATCH /v1/connections/$conn", `{"fields": {"token": "t0ps3cret too"}}`, `{"name": "shop"}`},
		{"connection.deleted", "conn", "DELETE /v1/connections/$conn", "", `{"name": "shop"}`},
		{"table.created", "tbl", "POST /v1/tables", `{"name": "customers", "columns": [{"name": "a", "type": "text"}]}`, `{"name": "customers"}`},
		{"table.updated", "tbl", "PATCH /v1/tables/$tbl", `{"name": "clients"}`, `{"name": "customers"}`},
		{"table.deleted", "tbl", "DELETE /v1/tables/$tbl", "", `{"name": "clients"}`},
		{"oauth_app.created", "app", "POST /v1/oauth-apps", `{"integration": "slack", "client_id": "c", "client_secret": "t0ps3cret"}`, `{"integration": "slack"}`},
		{"oauth_app.deleted", "app", "DELETE /v1/oauth-apps/$app", "", `{"integration": "slack"}`},
		{"workflow.deleted", "wf", "DELETE /v1/workflows/$wf", "", `{"name": "Welcome"}`},
	}
	kinds := map[string]string{"wf": "workflow", "wh": "webhook", "key": "api_key", "secret": "secret", "variable": "variable", "conn": "connection", "app": "oauth_app", "tbl": "table"}
	w.names["secret"], w.names["variable"] = "token", "region"
	for _, deed := range deeds {
		if n := strings.Count(string(openapi.YAML), "- "+deed.action+"\n"); n != 2 {
			t.Errorf("the document lists the action %s %d times, want it for entries and for the filter", deed.action, n)
		}
		method, path := splitCall(deed.call)
		a := w.call(method, path, deed.body)
		if method == http.MethodPost {
			w.names[deed.target] = a.wantStatus(201).str("id")
		}
		newest := w.call("GET", "/v1/audit?limit=1", "").wantStatus(200)
		wantKeys(t, newest.items()[0], "id at actor action target_type target_id target_name details request_id")
		wantContains(t, newest.json(), w.expand(fmt.Sprintf(`{"data": [{"id": "~aud_[0-9a-z]{26}", "actor": {"type": "api_key", "id": "$admin"}, "action": %q,
			"target_type": %q, "target_id": "$%s", "details": %s, "request_id": %q}]}`,
			deed.action, kinds[deed.target], deed.target, deed.details, a.header.Get("X-Request-Id"))))
	}
	t.Run("entries can be filtered by action", func(t *testing.T) {
		wantContains(t, w.withT(t).call("GET", "/v1/audit?action=workflow.paused", "").wantStatus(200).json(), `{"data": [{"action": "workflow.paused"}], "next_cursor": null}`)
	})
	t.Run("entries can be filtered by target", func(t *testing.T) {
		wantContains(t, w.withT(t).call("GET", "/v1/audit?target_id=$wh", "").wantStatus(200).json(),
			`{"data": [{"action": "webhook.deleted"}, {"action": "webhook.updated"}, {"action": "webhook.created"}]}`)
	})
	t.Run("an action that never happened has no entries", func(t *testing.T) {
		wantContains(t, w.withT(t).call("GET", "/v1/audit?action=nothing.done", "").wantStatus(200).json(), `{"data": [], "next_cursor": null}`)
	})
	t.Run("filters can be combined", func(t *testing.T) {
		wantContains(t, w.withT(t).call("GET", "/v1/audit?target_id=$wh&action=webhook.created", "").wantStatus(200).json(), `{"data": [{"action": "webhook.created"}]}`)
	})
	t.Run("starting and cancelling runs and moving steps are not audited", func(t *testing.T) {
		w := w.withT(t)
		w.workflow("other", waitStep)
		before := len(w.auditActions())
		w.patch("other", `{"layout": {"wait": [8, 8]}}`)
		w.startRun("run", "other", "")
		w.call("POST", "/v1/runs/$run/cancel", "").wantStatus(200)
		if got := w.auditActions()[before:]; len(got) > 0 {
			t.Errorf("recorded are %v", got)
		}
	})
	if text := w.call("GET", "/v1/audit", "").body; bytes.Contains(text, []byte("t0ps3cret")) {
		t.Errorf("the audit log holds a secret: %s", text)
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	anyone := sharedServer(t).anonymous(t)
	asYAML := anyone.call("GET", "/v1/openapi.yaml", "").wantStatus(200)
	asJSON := anyone.call("GET", "/v1/openapi.json", "").wantStatus(200)
	if !bytes.Equal(asYAML.body, openapi.YAML) || asYAML.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("the YAML is another document, of type %s", asYAML.header.Get("Content-Type"))
	}
	var fromYAML, fromJSON, again any
	if err := yaml.Unmarshal(asYAML.body, &fromYAML); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(asJSON.body, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, fromJSON) {
		t.Error("the JSON is another document than the YAML")
	}
	for _, path := range []string{"/v1/openapi.yaml", "/v1/openapi.json", "/v1/schemas/workflow.json", "/v1/schemas/integration.json", "/healthz", "/readyz"} {
		anyone.call("GET", path+"?x=1", "").wantStatus(400, "invalid_request")
		anyone.server.operator(t).call("POST", path, "{}").wantStatus(405, "method_not_allowed")
	}
}

// A server that is shutting down is alive but not ready.
func TestHealthWhileStopping(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.DrainDelay = 700 * time.Millisecond })
	anyone := s.anonymous(t)
	anyone.call("GET", "/readyz", "").wantStatus(200)
	s.cancel()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	var a *response
	eventually(t, "it is not ready", func() bool {
		a, err = anyone.exchange(request, "")
		return err != nil || a.status != 200
	})
	if err != nil {
		t.Fatal(err)
	}
	a.wantStatus(503, "unavailable")
	if err := published().check(a); err != nil || a.header.Get("Retry-After") == "" || !strings.Contains(a.message(), "shutting down") {
		t.Errorf("got %v %s: %v", a.header, a.body, err)
	}
	anyone.call("GET", "/healthz", "").wantStatus(200)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	anyone := sharedServer(t).anonymous(t)
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready","warnings":[]}`} {
		if got := bytes.TrimSpace(anyone.call("GET", path, "").wantStatus(200).body); string(got) != want {
			t.Errorf("%s responds with %s", path, got)
		}
	}
}

// Every change of a workflow has an entry with the names of who made it and of the workflow,
// and the list of versions says who made each.
func TestAuditOfWorkflowChanges(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	key := w.call("POST", "/v1/api-keys", `{"name": "Deployment", "scopes": ["read", "write"]}`).wantStatus(201)
	c := client{t: t, server: w.server, key: key.str("key")}
	w.names["wf"] = c.call("POST", "/v1/workflows", `{"name": "Orders"}`).wantStatus(201).str("id")
	patch := func(body string) { c.call("PATCH", w.expand("/v1/workflows/$wf"), body).wantStatus(200) }
	patch(`{"steps": [` + setStep + `]}`)
	patch(`{"steps": [], "name": "Sales", "state": "active"}`)
	patch(`{"layout": {"set": [8, 8]}}`)
	c.call("POST", w.expand("/v1/workflows/$wf/versions/2/restore"), "").wantStatus(200)
	patch(`{"state": "paused"}`)
	list := func() []map[string]any {
		return w.call("GET", w.expand("/v1/audit?target_id=$wf"), "").wantStatus(200).items()
	}
	got := list()
	for i, want := range []string{
		`{"action": "workflow.paused"}`,
		`{"action": "workflow.restored", "details": {"restored_version": 2, "version": 4}}`,
		`{"action": "workflow.activated"}`,
		`{"action": "workflow.updated", "details": {"version": 3}}`,
		`{"action": "workflow.renamed", "details": {"name": "Sales", "previous_name": "Orders"}}`,
		`{"action": "workflow.updated", "details": {"version": 2}}`,
		`{"action": "workflow.created"}`,
	} {
		wantContains(t, any(got[i]), want)
		wantContains(t, any(got[i]), `{"actor": {"type": "api_key", "name": "Deployment"}, "target_name": "Sales"}`)
	}
	if len(got) != 7 {
		t.Errorf("%d entries", len(got))
	}
	for _, version := range w.call("GET", "/v1/workflows/$wf/versions", "").wantStatus(200).items() {
		if version["created_by_name"] != "Deployment" {
			t.Errorf("got %v", version)
		}
	}
	w.call("DELETE", "/v1/workflows/$wf", "").wantStatus(204)
	w.server.query(t, w.expand(`DELETE FROM workflows WHERE id = '$wf'`))
	wantContains(t, any(list()[0]), `{"action": "workflow.deleted", "target_name": "Sales"}`)
}
