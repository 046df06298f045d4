package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/transport"
)

// routes returns the routes of the program. Tests built from them fail if a
// route is missing in routeBodies.
func routes() []transport.Route { return api.New(api.Services{}, api.Options{}).Routes() }

func sessionRoutes() []transport.Route { return api.New(api.Services{}, api.Options{}).SessionRoutes() }

func publicRoutes() []transport.Route { return api.New(api.Services{}, api.Options{}).PublicRoutes() }

func routeName(r transport.Route) string { return r.Method + " " + r.Path }

// routeBodies holds a valid body for each route; "-" for none.
var routeBodies = map[string]string{
	"GET /v1/workflows":                                      "-",
	"POST /v1/workflows":                                     `{"name": "Matrix", "description": "d"}`,
	"POST /v1/workflows/import":                              `{"name": "Matrix", "description": "d", "triggers": [{"id": "hook", "type": "webhook"}], "steps": [], "settings": {}, "layout": {}, "pinned": {}}`,
	"GET /v1/workflows/{id}":                                 "-",
	"PATCH /v1/workflows/{id}":                               `{"name": "Matrix", "description": "d", "state": "paused", "triggers": [], "steps": [], "settings": {}, "layout": {}}`,
	"DELETE /v1/workflows/{id}":                              "-",
	"POST /v1/workflows/{id}/validate":                       `{"triggers": [], "steps": [], "settings": {}}`,
	"GET /v1/workflows/{id}/versions":                        "-",
	"GET /v1/workflows/{id}/versions/{n}":                    "-",
	"GET /v1/workflows/{id}/versions/{n}/diff":               "-",
	"POST /v1/workflows/{id}/versions/{n}/restore":           "-",
	"GET /v1/workflows/{id}/triggers":                        "-",
	"POST /v1/workflows/{id}/triggers/{trigger_id}/rotate":   "-",
	"POST /v1/workflows/{id}/triggers/{trigger_id}/listen":   "-",
	"DELETE /v1/workflows/{id}/triggers/{trigger_id}/listen": "-",
	"GET /v1/workflows/{id}/triggers/{trigger_id}/requests":  "-",
	"POST /v1/workflows/{id}/triggers/{trigger_id}/test":     `{"payload": {}, "headers": {}, "query": {}}`,
	"POST /v1/workflows/{id}/steps/{step_id}/test":           `{"context": {"trigger": {"payload": {}}}}`,
	"GET /v1/workflows/{workflow_id}/runs":                   "-",
	"POST /v1/workflows/{workflow_id}/runs":                  `{"payload": {}}`,
	"GET /v1/runs":                                           "-",
	"GET /v1/runs/{id}":                                      "-",
	"GET /v1/runs/{id}/events":                               "-",
	"GET /v1/runs/{id}/steps/{step_id}/rounds":               "-",
	"GET /v1/runs/{id}/definition":                           "-",
	"POST /v1/runs/{id}/cancel":                              "-",
	"POST /v1/runs/{id}/retry":                               "-",
	"GET /v1/runs/{id}/logs":                                 "-",
	"POST /v1/runs/{id}/steps/{step_id}/resume":              `{"approved": true, "comment": "c", "data": {}}`,
	"GET /v1/approvals":                                      "-",
	"GET /v1/runs/{id}/steps":                                "-",
	"GET /v1/runs/{id}/steps/{step_id}":                      "-",
	"GET /v1/webhooks":                                       "-",
	"POST /v1/webhooks":                                      `{"url": "https://example.com/", "events": ["run.failed"], "workflow_id": null}`,
	"GET /v1/webhooks/{id}":                                  "-",
	"PATCH /v1/webhooks/{id}":                                `{"url": "https://example.com/", "events": ["run.failed"], "workflow_id": null, "enabled": true}`,
	"DELETE /v1/webhooks/{id}":                               "-",
	"POST /v1/webhooks/{id}/rotate-secret":                   "-",
	"POST /v1/webhooks/{id}/test":                            `{"events": ["run.failed"]}`,
	"GET /v1/webhooks/{id}/deliveries":                       "-",
	"POST /v1/webhooks/{id}/redeliver":                       `{"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z", "status": ["exhausted"]}`,
	"GET /v1/deliveries/{id}":                                "-",
	"POST /v1/deliveries/{id}/redeliver":                     "-",
	"GET /v1/secrets":                                        "-",
	"GET /v1/secrets/{name}":                                 "-",
	"PUT /v1/secrets/{name}":                                 `{"value": "matrix"}`,
	"DELETE /v1/secrets/{name}":                              "-",
	"GET /v1/variables":                                      "-",
	"GET /v1/variables/{name}":                               "-",
	"PUT /v1/variables/{name}":                               `{"value": [1]}`,
	"DELETE /v1/variables/{name}":                            "-",
	"GET /v1/connections":                                    "-",
	"POST /v1/connections":                                   `{"name": "matrix", "integration": null, "auth": "bearer", "fields": {"token": "matrix-token"}, "definition": {"hosts": ["api.example.com"]}}`,
	"GET /v1/connections/{id}":                               "-",
	"PATCH /v1/connections/{id}":                             `{"fields": {"token": "another-token"}, "definition": {"hosts": ["api.example.com"]}}`,
	"DELETE /v1/connections/{id}":                            "-",
	"POST /v1/connections/{id}/test":                         "-",
	"POST /v1/connections/{id}/options":                      `{"operation": "slack.post_message", "input": "channel", "with": {}}`,
	"GET /v1/tables":                                         "-",
	"GET /v1/files":                                          "-",
	"POST /v1/files":                                         "hello",
	"GET /v1/files/{id}":                                     "-",
	"DELETE /v1/files/{id}":                                  "-",
	"OPTIONS /v1/files/uploads":                              "-",
	"POST /v1/files/uploads":                                 "-",
	"GET /v1/files/uploads/{id}":                             "-",
	"PATCH /v1/files/uploads/{id}":                           "hello",
	"DELETE /v1/files/uploads/{id}":                          "-",
	"POST /v1/tables":                                        `{"name": "matrix", "key": null, "columns": [{"name": "a", "type": "text", "required": true, "indexed": true}]}`,
	"GET /v1/tables/{id}":                                    "-",
	"PATCH /v1/tables/{id}":                                  `{"name": "matrix", "columns": {"note": {"name": "notes", "type": "text", "required": false, "indexed": true}}}`,
	"DELETE /v1/tables/{id}":                                 "-",
	"GET /v1/tables/{id}/rows":                               "-",
	"POST /v1/tables/{id}/rows":                              `{"values": {"email": "matrix"}}`,
	"PUT /v1/tables/{id}/rows":                               `{"values": {"email": "existing"}}`,
	"POST /v1/tables/{id}/import":                            "email,amount\nmatrix,5\n",
	"GET /v1/tables/{id}/export":                             "-",
	"GET /v1/tables/{id}/rows/{row_id}":                      "-",
	"PATCH /v1/tables/{id}/rows/{row_id}":                    `{"values": {"amount": 5}}`,
	"DELETE /v1/tables/{id}/rows/{row_id}":                   "-",
	"GET /v1/state":                                          "-",
	"GET /v1/state/{key}":                                    "-",
	"PUT /v1/state/{key}":                                    `{"value": [1], "expires_in": "1h", "if_absent": false}`,
	"DELETE /v1/state/{key}":                                 "-",
	"GET /v1/oauth-apps":                                     "-",
	"POST /v1/oauth-apps":                                    `{"integration": "notion", "auth": "oauth2", "client_id": "matrix", "client_secret": "matrix-secret", "shared": false}`,
	"GET /v1/oauth-apps/{id}":                                "-",
	"DELETE /v1/oauth-apps/{id}":                             "-",
	"POST /v1/expressions/evaluate":                          `{"expression": "1 + 1", "context": {}}`,
	"GET /v1/api-keys":                                       "-",
	"POST /v1/api-keys":                                      `{"name": "Matrix", "scopes": ["read"], "expires_at": null}`,
	"GET /v1/api-keys/{id}":                                  "-",
	"DELETE /v1/api-keys/{id}":                               "-",
	"GET /v1/workspaces":                                     "-",
	"POST /v1/workspaces":                                    `{"name": "Matrix", "plan": "enterprise", "requests_per_minute": 5}`,
	"GET /v1/workspaces/{id}":                                "-",
	"PATCH /v1/workspaces/{id}":                              `{"name": "Matrix", "plan": "enterprise", "requests_per_minute": 5}`,
	"GET /v1/actions":                                        "-",
	"GET /v1/templates":                                      "-",
	"GET /v1/templates/{name}":                               "-",
	"POST /v1/templates/{name}/workflows":                    "-",
	"GET /v1/actions/{name}":                                 "-",
	"GET /v1/integrations":                                   "-",
	"GET /v1/integrations/{id}":                              "-",
	"POST /v1/integrations":                                  strings.Replace(acmeManifest, "x_acme", "x_matrix", 1),
	"POST /v1/integrations/from-openapi":                     acmeDocument,
	"PUT /v1/integrations/{id}":                              acmeManifest,
	"DELETE /v1/integrations/{id}":                           "-",
	"GET /v1/integrations/{id}/manifest":                     "-",
	"GET /v1/integrations/{id}/icon":                         "-",
	"GET /v1/integrations/{id}/triggers/{trigger}":           "-",
	"GET /v1/events":                                         "-",
	"GET /v1/events/stream":                                  "-",
	"GET /v1/schedules/preview":                              "-",
	"GET /v1/search":                                         "-",
	"GET /v1/usage":                                          "-",
	"GET /v1/audit":                                          "-",
	"GET /v1/nodes":                                          "-",
	"GET /v1/openapi.yaml":                                   "-",

	"GET /v1/members":             "-",
	"GET /v1/members/{id}":        "-",
	"PATCH /v1/members/{id}":      `{"role": "editor"}`,
	"DELETE /v1/members/{id}":     "-",
	"GET /v1/invitations":         "-",
	"POST /v1/invitations":        `{"email": "matrix@example.com", "role": "viewer"}`,
	"GET /v1/invitations/{id}":    "-",
	"DELETE /v1/invitations/{id}": "-",

	"GET /ui/v1/welcome":          "-",
	"POST /ui/v1/welcome":         `{"token": "x", "email": "matrix@example.com", "name": "Matrix", "password": "correct horse"}`,
	"POST /ui/v1/session":         `{"email": "matrix@example.com", "password": "correct horse"}`,
	"GET /ui/v1/session":          "-",
	"PATCH /ui/v1/session":        `{"workspace_id": "x"}`,
	"DELETE /ui/v1/session":       "-",
	"GET /ui/v1/sessions":         "-",
	"DELETE /ui/v1/sessions":      "-",
	"DELETE /ui/v1/sessions/{id}": "-",
	"PATCH /ui/v1/account":        `{"name": "Matrix"}`,
	"GET /ui/v1/oidc/start":       "-",
	"GET /ui/v1/oidc/callback":    "-",
	"POST /ui/v1/connections/connect": `{"name": "matrix", "integration": null, "auth": "oauth2", "fields": {"client_id": "c", "client_secret": "matrix-secret"},
		"definition": {"hosts": ["api.example.com"], "authorize_url": "https://example.com/authorize", "token_url": "https://example.com/token"}}`,
	"POST /ui/v1/connections/connect-device": `{"name": "matrix", "auth": "oauth2", "fields": {"client_id": "c"}, "definition": {"hosts": ["api.example.com"],
		"grant": "device_code", "device_url": "http://127.0.0.1:1/device", "token_url": "http://127.0.0.1:1/token"}}`,
	"POST /ui/v1/connections/{id}/reconnect-device": "-",
	"POST /ui/v1/connections/poll-device":           `{"state": "x"}`,
	"GET /ui/v1/people":                             "-",
	"POST /ui/v1/connections/confirm":               `{"state": "x"}`,
	"POST /ui/v1/connections/{id}/reconnect":        "-",
	"GET /ui/v1/oauth/callback":                     "-",
	"POST /ui/v1/password-reset":                    `{"token": "x", "password": "correct horse"}`,
	"POST /ui/v1/invitations/look":                  `{"token": "x"}`,
	"POST /ui/v1/invitations/accept":                `{"token": "x", "name": "Matrix", "password": "correct horse"}`,
	"POST /ui/v1/invitations/accept-with-provider":  `{"token": "x"}`,
	"GET /v1/openapi.json":                          "-",
	"GET /v1/schemas/workflow.json":                 "-",
	"GET /v1/schemas/integration.json":              "-",
	"GET /healthz":                                  "-",
	"GET /readyz":                                   "-",
}

// routeQueries holds the query of each route that requires one.
var routeQueries = map[string]string{"GET /v1/search": "?q=matrix", "GET /v1/schedules/preview": "?cron=@daily"}

// operatorOnly lists the routes that require an admin key of the first
// workspace.
var operatorOnly = map[string]bool{"POST /v1/workspaces": true, "PATCH /v1/workspaces/{id}": true}

// collections maps a path to the name of its ids, an unknown id and the error
// code for it. Names without $ are the same in all workspaces.
var collections = map[string]struct{ name, missing, code string }{
	"workflows":   {"$wf", "wf_01m7f8njhve3pt0yekqqme4qcm", "workflow_not_found"},
	"runs":        {"$run", "run_01m7f9hb3mevr88y42wdngtn4v", "run_not_found"},
	"webhooks":    {"$wh", "wh_01m7facgqmf46bs8r42wfv2z13", "webhook_not_found"},
	"deliveries":  {"$dlv", "dlv_01m7facgqmf46bs8r42wfv2z13", "delivery_not_found"},
	"secrets":     {"$secret", "none", "secret_not_found"},
	"variables":   {"$variable", "none", "variable_not_found"},
	"connections": {"$conn", "conn_01m7facgqmf46bs8r42wfv2z13", "connection_not_found"},
	"tables":      {"$tbl", "tbl_01m7facgqmf46bs8r42wfv2z13", "table_not_found"},
	"files":       {"$file", "file_01m7facgqmf46bs8r42wfv2z13", "file_not_found"},
	"uploads":     {"$upload", "file_01m7facgqmf46bs8r42wfv2z13", "upload_not_found"},
	"state":       {"$state_key", "none", "state_key_not_found"},
	"oauth-apps":  {"$app", "oapp_01m7facgqmf46bs8r42wfv2z13", "oauth_app_not_found"},
	"api-keys":    {"$key", "key_01m7fcp3q8e60tak362xesvjfr", "api_key_not_found"},
	"templates":   {"hello", "goodbye", "template_not_found"},
	"actions":     {"data.set", "data.nothing", "action_not_found"},
	"members":     {"$member", "usr_01m7fhvm96e1a9mdbwb15q0y3v", "member_not_found"},
	"invitations": {"$invitation", "inv_01m7fhvm96e1a9mdbwb15q0y3v", "invitation_not_found"},
	"workspaces":  {"$workspace", "ws_01m7fe3gv0es8r65rzyjka792g", "workspace_not_found"},

	"integrations": {"slack", "slick", "integration_not_found"},
}

// collection returns the collection of the first id in a route's path.
func collection(r transport.Route) (name, missing, code string, has bool) {
	before, _, has := strings.Cut(r.Path, "/{")
	c := collections[before[strings.LastIndexByte(before, '/')+1:]]
	if c.name == "slack" && (r.Method != http.MethodGet || strings.HasSuffix(r.Path, "/manifest")) {
		c.name, c.missing = "x_acme", "x_nothing"
	}
	if strings.HasSuffix(r.Path, "/retry") {
		c.name = "$ended" // a running run cannot be retried
	}
	return c.name, c.missing, c.code, has
}

// routePath fills in the path of a route. The version is always the first, the
// step the one that waits.
func routePath(r transport.Route, id string) string {
	var out []string
	for segment := range strings.SplitSeq(r.Path, "/") {
		switch {
		case segment == "{n}":
			segment = "1"
		case segment == "{step_id}":
			segment = "ask"
		case segment == "{trigger_id}":
			segment = "by_hand"
		case segment == "{trigger}":
			segment = "new_message"
		case segment == "{row_id}":
			segment = "$row"
		case strings.HasPrefix(segment, "{"):
			segment = id
		}
		out = append(out, segment)
	}
	return strings.Join(out, "/") + routeQueries[routeName(r)]
}

// routeBody returns a body that the route accepts.
func routeBody(t *testing.T, r transport.Route) string {
	t.Helper()
	body, known := routeBodies[routeName(r)]
	if !known {
		t.Fatalf("%s is new: say in routeBodies how to call it", routeName(r))
	}
	return strings.TrimPrefix(body, "-")
}

// needsService lists the routes that need the connection of a service, which these tests
// do not have, and the status that they return for another one. The tests in
// test/services call them with one.
var needsService = map[string]int{"POST /v1/connections/{id}/options": http.StatusBadRequest}

// statusOf returns the status of the response to the body of the route.
func statusOf(r transport.Route) int {
	if status := needsService[routeName(r)]; status != 0 {
		return status
	}
	return r.Status
}

// createOneOfEach creates one object of each kind.
func createOneOfEach(w *testWorkspace) {
	w.t.Helper()
	w.workflow("wf", askStep, waitStep)
	w.patch("wf", `{"triggers": [{"id": "by_hand", "type": "webhook"}]}`)
	w.startRun("ended", "wf", "")
	w.call("POST", "/v1/runs/$ended/cancel", "").wantStatus(http.StatusOK)
	w.runUntilWaiting("run", "wf")
	setupDelivery(w)
	// Wait until nothing pending can still change what is stored.
	w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).wantStatus(http.StatusOK)
	w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": true}`).wantStatus(http.StatusOK)
	setupKey(w)
	setupSecret(w)
	setupVariable(w)
	setupConnection(w)
	setupOAuthApp(w)
	setupOwnIntegration(w)
	setupRow(w)
	w.call("PUT", "/v1/tables/$tbl/rows", `{"values": {"email": "existing"}}`).wantStatus(http.StatusCreated)
	setupStateKey(w)
	setupFile(w)
	setupUpload(w)
	setupMember(w)
	setupInvitation(w)
}

// The document has exactly the routes of the program, with the same scopes and
// success statuses.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, route := range slices.Concat(routes(), sessionRoutes()) {
		known[routeName(route)] = true
		routeBody(t, route)
		operation := published().root().at("paths", route.Path, strings.ToLower(route.Method))
		if operation.value == nil {
			t.Errorf("%s is not documented", routeName(route))
			continue
		}
		if got := operation.at("x-required-scope").value; got != string(route.Scope) {
			t.Errorf("%s needs the scope %s, documented is %v", routeName(route), route.Scope, got)
		}
		if got := operation.at("x-session").value == true; got != strings.HasPrefix(route.Path, "/ui/") {
			t.Errorf("%s: for sessions only is documented: %t", routeName(route), got)
		}
		if operation.at("responses", fmt.Sprint(route.Status)).value == nil {
			t.Errorf("%s: status %d is not documented", routeName(route), route.Status)
		}
		if got := operation.at("x-first-workspace-only").value == true; got != operatorOnly[routeName(route)] {
			t.Errorf("%s: for the first workspace only is documented: %t", routeName(route), got)
		}
	}
	for _, door := range publicRoutes() {
		known[routeName(door)] = true
		operation := published().root().at("paths", door.Path, strings.ToLower(door.Method))
		if operation.at("x-door").value != true || operation.at("x-required-scope").value != string(door.Scope) {
			t.Errorf("%s is not documented as a door", routeName(door))
		}
	}
	paths := published().root().at("paths")
	for path := range paths.members() {
		for method := range paths.at(path).members() {
			if method != "parameters" && !known[strings.ToUpper(method)+" "+path] {
				t.Errorf("%s %s is documented and does not exist", strings.ToUpper(method), path)
			}
		}
	}
	for called := range routeBodies {
		if !known[called] {
			t.Errorf("routeBodies has %s, which does not exist", called)
		}
	}
}

// anyQuery lists the routes that accept any query parameter.
var anyQuery = map[string]bool{"GET /ui/v1/oidc/callback": true, "GET /ui/v1/oauth/callback": true}

// Every other route rejects an unknown query parameter before it does anything,
// and documents that response.
func TestUnknownQueryParametersAreRejected(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	createOneOfEach(w)
	owner := w.addUser("owner")
	for _, route := range slices.Concat(routes(), sessionRoutes()) {
		if anyQuery[routeName(route)] {
			continue
		}
		id, _, _, _ := collection(route)
		if id == "" {
			id = "x"
		}
		path, body := w.expand(routePath(route, id)), routeBody(t, route)
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "unknown=1"
		if !strings.HasPrefix(route.Path, "/ui/") {
			w.call(route.Method, path, body).wantStatus(http.StatusBadRequest, "invalid_request")
		}
		if strings.HasPrefix(route.Path, "/v1/") {
			path = "/ui" + path
		}
		if strings.HasPrefix(path, "/ui/") {
			owner.call(route.Method, path, body).wantStatus(http.StatusBadRequest, "invalid_request")
		}
	}
}

// documents lists the routes that only return a text of the program.
var documents = map[string]bool{
	"GET /v1/openapi.yaml": true, "GET /v1/openapi.json": true, "GET /v1/schemas/workflow.json": true, "GET /v1/schemas/integration.json": true, "GET /healthz": true,
}

// redirects lists the routes with a scope that redirect a browser also after a failure.
var redirects = map[string]bool{"GET /ui/v1/oauth/callback": true}

// Every route documents the failures that can happen on any route.
func TestCommonFailuresAreDocumented(t *testing.T) {
	t.Parallel()
	for _, route := range slices.Concat(routes(), sessionRoutes(), publicRoutes()) {
		statuses := []string{"500"}
		if !anyQuery[routeName(route)] {
			statuses = append(statuses, "400")
		}
		if route.Scope != auth.Public && !redirects[routeName(route)] {
			statuses = append(statuses, "401", "403", "429")
		}
		if !documents[routeName(route)] {
			statuses = append(statuses, "503")
		}
		for _, status := range statuses {
			if published().root().at("paths", route.Path, strings.ToLower(route.Method), "responses", status).value == nil {
				t.Errorf("%s: status %s is not documented", routeName(route), status)
			}
		}
	}
}

// readOnlyPosts lists the POSTs that change nothing.
var readOnlyPosts = map[string]bool{"POST /v1/expressions/evaluate": true, "OPTIONS /v1/files/uploads": true}

// createsMissing reports whether the route creates the object in its path if it
// does not exist.
func createsMissing(r transport.Route) bool { return r.Method == http.MethodPut }

// Reading requires read or admin; writing never requires only read.
func TestRouteScopes(t *testing.T) {
	t.Parallel()
	public := []string{"/v1/openapi.yaml", "/v1/openapi.json", "/v1/schemas/workflow.json", "/v1/schemas/integration.json", "/healthz", "/readyz"}
	for _, route := range routes() {
		reads := route.Method == http.MethodGet || readOnlyPosts[routeName(route)]
		switch {
		case route.Scope == auth.Public && !strings.Contains(strings.Join(public, " "), route.Path):
			t.Errorf("%s is public", routeName(route))
		case reads && (route.Scope == auth.Write || route.Scope == auth.Execute) && !strings.HasPrefix(route.Path, "/v1/files/uploads"): // they belong to an upload
			t.Errorf("%s reads and needs %s", routeName(route), route.Scope)
		case !reads && route.Scope == auth.Read:
			t.Errorf("%s writes and needs %s", routeName(route), route.Scope)
		}
	}
}
