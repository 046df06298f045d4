package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// acmeManifest describes a service that only one workspace knows.
const acmeManifest = `{
	"id": "x_acme", "name": "Acme", "category": "support", "docs": "https://docs.acme.example",
	"base_url": "https://api.acme.example/v1",
	"connection": {
		"hosts": ["api.acme.example"], "auth": [{"kind": "bearer", "label": "Access token"}],
		"test": {"path": "/me"}, "learn": {"label": "${{ test.name }}"}
	},
	"operations": {
		"create_ticket": {
			"title": "Create a ticket", "input": {"subject": {"type": "string", "title": "Subject", "required": true}},
			"request": {"method": "POST", "path": "/tickets", "json": {"subject": "${{ input.subject }}"}}
		},
		"list_tickets": {"title": "List tickets", "request": {"path": "/tickets", "items": "body.tickets"}}
	},
	"triggers": {
		"new_ticket": {"title": "New ticket", "poll": {"operation": "list_tickets", "every": "1m"}, "key": "item.id"}
	}
}`

func setupOwnIntegration(w *testWorkspace) {
	w.t.Helper()
	w.call("POST", "/v1/integrations", acmeManifest).wantStatus(http.StatusCreated)
}

func acmeWith(old, replacement string) string {
	return strings.Replace(acmeManifest, old, replacement, 1)
}

func TestOwnIntegrations(t *testing.T) {
	const step = `{"steps": [{"id": "ask", "uses": "x_acme.create_ticket", "connection": "acme", "with": {"subject": "Hello"}}]}`
	connect := func(w *testWorkspace) {
		setupOwnIntegration(w)
		w.create("conn", "/v1/connections", `{"name": "acme", "integration": "x_acme", "auth": "bearer", "fields": {"token": "secret-token"}, "hosts": ["api.acme.example"]}`)
	}
	runScenarios(t, []scenario{
		{
			name:    "a workspace adds an integration",
			request: "POST /v1/integrations", scope: "write", body: acmeManifest, status: 201, audit: "integration.created",
			headers:  []string{"Location", "/v1/integrations/x_acme", "ETag", `"[0-9a-f]{64}"`},
			contains: `{"id": "x_acme", "own": true, "confirm_hosts": ["api.acme.example"], "connection": "x_acme", "operations": [{"action": "x_acme.create_ticket"}, {"action": "x_acme.list_tickets"}], "triggers": [{"type": "x_acme.new_ticket"}]}`,
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/actions/x_acme.create_ticket", "").wantStatus(200)
				w.call("GET", "/v1/integrations/x_acme/triggers/new_ticket", "").wantStatus(200)
				if ids := w.call("GET", "/v1/integrations?text=acme", "").wantStatus(200).column("id"); len(ids) != 1 || ids[0] != "x_acme" {
					w.t.Errorf("the list has %v", ids)
				}
			},
		},
		{
			name:    "the manifest stays as it was written",
			request: "POST /v1/integrations", scope: "write", status: 201, requestHeaders: asYAML, audit: "integration.created",
			body: "# Our own service.\nid: x_plain\nname: Plain\ncategory: data\ndocs: https://plain.example\nbase_url: https://plain.example\nconnection:\n  hosts: [plain.example]\n  auth: [{kind: bearer, label: Token}]\n  test: {path: /}\n  learn: {label: me}\n",
			after: func(w *testWorkspace, a *response) {
				got := w.call("GET", "/v1/integrations/x_plain/manifest", "").wantStatus(200)
				if text := got.str("manifest"); !strings.HasPrefix(text, "# Our own service.\nid: x_plain\n") {
					w.t.Errorf("the manifest is %q", text)
				}
				if got.header.Get("ETag") != a.header.Get("ETag") {
					w.t.Errorf("the ETag is %s, was %s", got.header.Get("ETag"), a.header.Get("ETag"))
				}
			},
		},
		{
			name:    "problems have their places in the manifest",
			request: "POST /v1/integrations", body: "id: x_acme\nname: Acme\ncategory: things\n", requestHeaders: asYAML, lenient: true, status: 422, code: "integration_invalid",
			after: func(w *testWorkspace, a *response) {
				if !slices.Contains(a.pointers(), "/category") || !strings.Contains(string(a.body), `"line":3,"column":11`) {
					w.t.Errorf("the problems are %s", a.body)
				}
			},
		},
		{name: "an id that could be that of a shipped integration", request: "POST /v1/integrations", body: acmeWith("x_acme", "acme"), status: 422, code: "integration_invalid"},
		{name: "a manifest with the connections of another integration", request: "POST /v1/integrations", body: acmeWith(`"hosts": ["api.acme.example"], "auth": [{"kind": "bearer", "label": "Access token"}],`, `"of": "google",`), status: 422, code: "integration_invalid"},
		{name: "no manifest", request: "POST /v1/integrations", body: "", status: 400, code: "invalid_json"},
		{name: "an integration that exists", setup: setupOwnIntegration, request: "POST /v1/integrations", body: acmeManifest, status: 409, code: "integration_exists"},
		{
			name:  "an integration is replaced if it has not changed",
			setup: setupOwnIntegration, request: "PUT /v1/integrations/x_acme", scope: "write", body: acmeWith(`"Acme"`, `"Acme tickets"`), status: 200, audit: "integration.updated", contains: `{"name": "Acme tickets"}`,
			after: func(w *testWorkspace, a *response) {
				w.call("PUT", "/v1/integrations/x_acme", acmeManifest, "If-Match", `"stale"`).wantStatus(412, "version_conflict")
				w.call("DELETE", "/v1/integrations/x_acme", "", "If-Match", `"stale"`).wantStatus(412, "version_conflict")
				w.call("PUT", "/v1/integrations/x_acme", acmeManifest, "If-Match", a.header.Get("ETag")).wantStatus(200)
				w.call("PUT", "/v1/integrations/x_other", acmeManifest).wantStatus(422, "integration_invalid")
			},
		},
		{name: "an integration that does not exist is not replaced", request: "PUT /v1/integrations/x_acme", body: acmeManifest, status: 404, code: "integration_not_found"},
		{
			name: "an integration that is part of Stepmill cannot be changed", request: "DELETE /v1/integrations/slack", status: 404, code: "integration_not_found",
			contains: `{"error": {"message": "~.*is part of Stepmill.*"}}`,
		},
		{
			name:  "whoever connects confirms the hosts",
			setup: setupOwnIntegration, request: "POST /v1/connections",
			body:   `{"name": "acme", "integration": "x_acme", "auth": "bearer", "fields": {"token": "secret-token"}}`,
			status: 400, code: "invalid_request", contains: `{"error": {"message": "~/hosts.*api.acme.example.*", "details": [{"pointer": "/hosts"}]}}`,
			after: func(w *testWorkspace, _ *response) {
				for _, hosts := range []string{`[]`, `["api.acme.example", "other.example"]`, `["other.example"]`} {
					w.call("POST", "/v1/connections", `{"name": "acme", "integration": "x_acme", "auth": "bearer", "fields": {"token": "secret-token"}, "hosts": `+hosts+`}`).wantStatus(400, "invalid_request")
				}
				w.call("POST", "/v1/connections", `{"name": "slack", "integration": "slack", "auth": "bearer", "fields": {"token": "xoxb-secret"}, "hosts": ["slack.com"]}`).wantStatus(400, "invalid_request")
			},
		},
		{
			name:  "a manifest that sends the credential elsewhere breaks its connections",
			setup: connect, request: "PUT /v1/integrations/x_acme", body: strings.ReplaceAll(acmeManifest, "api.acme.example", "api.other.example"), status: 200, audit: "integration.updated",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/connections/$conn", "").wantStatus(200).json(), `{"status": "needs_reconnect", "problem": "~.*integration was changed.*"}`)
				w.call("PATCH", "/v1/connections/$conn", `{"hosts": ["api.other.example"]}`).wantStatus(400, "invalid_request")
				w.call("PATCH", "/v1/connections/$conn", `{"fields": {"token": "secret-token"}}`).wantStatus(400, "invalid_request")
				wantContains(w.t, w.call("PATCH", "/v1/connections/$conn", `{"fields": {"token": "secret-token"}, "hosts": ["api.other.example"]}`).wantStatus(200).json(), `{"status": "untested"}`)
			},
		},
		{
			name:  "a manifest with other texts and operations does not",
			setup: connect, request: "PUT /v1/integrations/x_acme", body: acmeWith(`"Access token"`, `"Token"`), status: 200, audit: "integration.updated",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/connections/$conn", "").wantStatus(200).json(), `{"status": "untested"}`)
			},
		},
		{
			name:  "an integration with connections is not deleted",
			setup: connect, request: "DELETE /v1/integrations/x_acme", status: 409, code: "integration_in_use", contains: `{"error": {"message": "~.*\"acme\".*"}}`,
			after: func(w *testWorkspace, _ *response) {
				w.call("DELETE", "/v1/connections/$conn", "").wantStatus(204)
				w.call("DELETE", "/v1/integrations/x_acme", "").wantStatus(204)
				w.call("GET", "/v1/integrations/x_acme", "").wantStatus(404, "integration_not_found")
				w.call("GET", "/v1/actions/x_acme.create_ticket", "").wantStatus(404, "action_not_found")
			},
		},
		{
			name:  "a step of an own integration is checked like any other",
			setup: func(w *testWorkspace) { connect(w); setupWorkflow(w) }, request: "POST /v1/workflows/$wf/validate", body: strings.Replace(step, "subject", "sbject", 1), status: 200,
			contains: `{"valid": false, "problems": [{"pointer": "/steps/0/with/subject"}, {"pointer": "/steps/0/with/sbject"}]}`,
		},
		{
			name: "a workflow whose operation is gone says so when it runs",
			setup: func(w *testWorkspace) {
				connect(w)
				setupWorkflow(w)
				w.call("PATCH", "/v1/workflows/$wf", step).wantStatus(200)
			},
			request: "PUT /v1/integrations/x_acme", body: acmeWith("create_ticket", "open_ticket"), status: 200, audit: "integration.updated",
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/workflows/$wf", "").wantStatus(200)
				wantContains(w.t, w.call("POST", "/v1/workflows/$wf/runs", "{}", "Prefer", "wait=30").wantStatus(200).json(),
					`{"status": "failed", "error": {"code": "invalid_input", "message": "~.*integration of x_acme.create_ticket was changed.*"}}`)
			},
		},
	})
}

// TestOwnIntegrationsOfOthers checks that no other workspace sees an integration, and that
// two workspaces can have different ones with the same id.
func TestOwnIntegrationsOfOthers(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	setupOwnIntegration(w)
	for _, path := range []string{"/v1/integrations/x_acme", "/v1/integrations/x_acme/manifest", "/v1/integrations/x_acme/triggers/new_ticket", "/v1/integrations/x_acme/icon"} {
		other.call("GET", path, "").wantStatus(404, "integration_not_found")
	}
	other.call("GET", "/v1/actions/x_acme.create_ticket", "").wantStatus(404, "action_not_found")
	other.call("DELETE", "/v1/integrations/x_acme", "").wantStatus(404, "integration_not_found")
	if ids := other.call("GET", "/v1/integrations?text=acme", "").wantStatus(200).column("id"); len(ids) != 0 {
		t.Errorf("another workspace sees %v", ids)
	}
	other.call("POST", "/v1/connections", `{"name": "acme", "integration": "x_acme", "auth": "bearer", "fields": {"token": "secret-token"}, "hosts": ["api.acme.example"]}`).wantStatus(400, "invalid_request")
	other.call("POST", "/v1/integrations", acmeWith(`"Acme"`, `"Other"`)).wantStatus(201)
	if name := w.call("GET", "/v1/integrations/x_acme", "").wantStatus(200).str("name"); name != "Acme" {
		t.Errorf("the integration is called %q", name)
	}
}

// acmeDocument describes the API of a service.
const acmeDocument = `{
	"openapi": "3.1.0", "info": {"title": "Beta tickets", "version": "1"}, "servers": [{"url": "https://api.beta.example/v1"}],
	"components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}, "security": [{"token": []}],
	"paths": {"/tickets": {
		"get": {"operationId": "listTickets", "responses": {"200": {"description": "OK", "content": {"application/json": {}}}}},
		"post": {
			"operationId": "createTicket", "responses": {"201": {"description": "Created", "content": {"application/json": {}}}},
			"requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"subject": {"type": "string"}}}}}},
			"parameters": [{"name": "session", "in": "cookie"}]
		}
	}}
}`

func TestFromOpenAPI(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a document makes an integration",
			request: "POST /v1/integrations/from-openapi?category=support", scope: "write", body: acmeDocument, status: 201, audit: "integration.created",
			headers:  []string{"Location", "/v1/integrations/x_beta_tickets", "ETag", ".+"},
			contains: `{"integration": {"id": "x_beta_tickets", "category": "support", "own": true, "confirm_hosts": ["api.beta.example"]}, "operations": ["list_tickets", "create_ticket"]}`,
			after: func(w *testWorkspace, a *response) {
				if stored := w.call("GET", "/v1/integrations/x_beta_tickets/manifest", "").wantStatus(200).str("manifest"); stored != a.str("manifest") {
					w.t.Errorf("the stored manifest is %q", stored)
				}
				w.call("GET", "/v1/actions/x_beta_tickets.create_ticket", "").wantStatus(200)
				w.call("POST", "/v1/integrations/from-openapi", acmeDocument).wantStatus(409, "integration_exists")
			},
		},
		{
			name:    "a preview adds nothing",
			request: "POST /v1/integrations/from-openapi?preview=true&id=x_beta&operations=list_*", scope: "write", body: acmeDocument, status: 200,
			contains: `{"integration": null, "operations": ["list_tickets"], "manifest": "~(?s)^id: x_beta\n.*"}`,
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/integrations/x_beta", "").wantStatus(404, "integration_not_found")
			},
		},
		{
			name:    "a document in YAML has its places in errors",
			request: "POST /v1/integrations/from-openapi", body: "openapi: 3.1.0\ninfo: {title: Beta, version: '1'}\npaths:\n  /a: 7\n", requestHeaders: asYAML, status: 422, code: "integration_invalid",
			contains: `{"error": {"message": "~the document cannot be converted: .*", "details": [{"line": 4, "column": 3, "pointer": "/paths"}]}}`,
		},
		{name: "an id that is not one of the workspace's own", request: "POST /v1/integrations/from-openapi?id=slack", body: acmeDocument, status: 400, code: "invalid_request", message: "id: must begin with x_"},
		{name: "an operation that the document does not have", request: "POST /v1/integrations/from-openapi?operations=lst_tickets", body: acmeDocument, status: 400, code: "invalid_request", message: "operations: "},
		{name: "an unknown preview", request: "POST /v1/integrations/from-openapi?preview=yes", body: acmeDocument, status: 400, code: "invalid_request", message: "preview"},
		{name: "no document", request: "POST /v1/integrations/from-openapi", body: "", status: 400, code: "invalid_json"},
	})
}

// The manifests and documents that the OpenAPI document shows are accepted.
func TestManifestExamples(t *testing.T) {
	t.Parallel()
	for _, at := range [][2]string{{"/v1/integrations", "post"}, {"/v1/integrations/{id}", "put"}, {"/v1/integrations/from-openapi", "post"}} {
		for _, media := range []string{"application/json", "application/yaml"} {
			w := newTestWorkspace(t)
			example, err := json.Marshal(published().root().at("paths", at[0], at[1], "requestBody", "content", media, "example").value)
			if err != nil {
				t.Fatal(err)
			}
			status := http.StatusCreated
			if at[1] == "put" {
				setupOwnIntegration(w)
				status = http.StatusOK
			}
			w.call(strings.ToUpper(at[1]), strings.Replace(at[0], "{id}", "x_acme", 1), string(example), "Content-Type", media).wantStatus(status)
		}
	}
}
