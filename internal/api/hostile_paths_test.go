package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hostilePaths lists the responses to unusual request targets: status, error code
// and the methods in Allow. They are the same with a key on /v1 and with a session
// on /ui/v1. A caller without credentials cannot tell which paths exist.
var hostilePaths = []struct{ request, authenticated, anonymous string }{
	{"GET /v1/actions", "200", "401 unauthorized"},
	{"HEAD /v1/actions", "200", "401"},
	{"OPTIONS /v1/actions", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"CONNECT /v1/actions", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"get /v1/actions", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"GET /v1/actions/", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions//", "404 not_found", "401 unauthorized"},
	{"GET /v1//actions", "404 not_found", "401 unauthorized"},
	{"GET //v1/actions", "404 not_found", "404 not_found"},
	{"GET ///v1/actions", "404 not_found", "404 not_found"},
	{"GET /v1/./actions", "404 not_found", "401 unauthorized"},
	{"GET /v1/../v1/actions", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/.", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/..", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/../actions", "404 not_found", "401 unauthorized"},
	{"GET /v1/%2e/actions", "404 not_found", "401 unauthorized"},
	{"GET /v1/%2e%2e/v1/actions", "404 not_found", "401 unauthorized"},
	{"GET /v1/%61ctions", "200", "401 unauthorized"},
	{"GET /%76%31/actions", "200", "401 unauthorized"},
	{"GET /v1%2Factions", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions%2F", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions%2Fdata.set", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/data.set", "200", "401 unauthorized"},
	{"GET /v1/actions/data%2Eset", "200", "401 unauthorized"},
	{"GET /v1/actions/%64ata.set", "200", "401 unauthorized"},
	{"GET /v1/actions/data.set/", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/data.set%2F", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/data.set%2Fx", "404 action_not_found", "401 unauthorized"},
	{"GET /v1/actions/%2Fdata.set", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/a%2F%2Fb", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/a%2F..%2Fdata.set", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/%2E%2E", "404 not_found", "401 unauthorized"},
	{"GET /v1/actions/%252E%252E", "404 action_not_found", "401 unauthorized"},
	{"GET /v1/actions/%00", "404 action_not_found", "401 unauthorized"},
	{"GET /v1/actions/%FF", "404 action_not_found", "401 unauthorized"},
	{"GET /v1/actions/%20", "404 action_not_found", "401 unauthorized"},
	{"GET /v1/actions/{name}", "404 action_not_found", "401 unauthorized"},
	{"GET /v1/actions/data.set;v=1", "404 action_not_found", "401 unauthorized"},
	{"GET /v1/actions/data.set?x", "400 invalid_request", "401 unauthorized"},
	{"GET /v1/actions?", "200", "401 unauthorized"},
	{"GET /v1/actions/x/y", "404 not_found", "401 unauthorized"},
	{"DELETE /v1/actions/data.set", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"POST /v1/actions/a%2Fb", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"PUT /v1/workflows", "405 method_not_allowed [GET, HEAD, POST]", "401 unauthorized"},
	{"PUT /v1/workflows/", "404 not_found", "401 unauthorized"},
	{"GET /v1/workflows/import", "404 workflow_not_found", "401 unauthorized"},
	{"PUT /v1/workflows/import", "405 method_not_allowed [GET, HEAD, POST, PATCH, DELETE]", "401 unauthorized"},
	{"PUT /v1/workflows/%69mport", "405 method_not_allowed [GET, HEAD, POST, PATCH, DELETE]", "401 unauthorized"},
	{"DELETE /v1/workflows/import", "404 workflow_not_found", "401 unauthorized"},
	{"HEAD /v1/workflows/import", "404", "401"},
	{"HEAD /v1/workflows/x/validate", "405 [POST]", "401"},
	{"GET /v1/workflows/x/validate", "405 method_not_allowed [POST]", "401 unauthorized"},
	{"GET /v1/events/stream/x", "404 not_found", "401 unauthorized"},
	{"PUT /v1/events/stream", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"PUT /v1/runs/x/steps/y", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"PUT /v1/runs/x/steps/y%2Frounds", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"PUT /v1/runs/x%2Fsteps", "405 method_not_allowed [GET, HEAD]", "401 unauthorized"},
	{"GET /v1/Actions", "404 not_found", "401 unauthorized"},
	{"GET /V1/actions", "404 not_found", "404 not_found"},
	{"GET /v1", "404 not_found", "401 unauthorized"},
	{"GET /v1/", "404 not_found", "401 unauthorized"},
	{"GET /v1x", "404 not_found", "401 unauthorized"},
	{"GET /v10/actions", "404 not_found", "401 unauthorized"},
	{"GET /v1%", "400", "400"},
	{"OPTIONS *", "404 not_found", "404 not_found"},
	{"OPTIONS /", "404 not_found", "404 not_found"},
	{"POST /", "404 not_found", "404 not_found"},
	{"GET http://example.com/v1/actions", "200", "401 unauthorized"},
	{"GET http://example.com//v1/actions", "404 not_found", "404 not_found"},
	{"GET http://example.com", "404 not_found", "404 not_found"},
	{"GET http:v1/actions", "404 not_found", "404 not_found"},
	{"CONNECT example.com:443", "404 not_found", "404 not_found"},
	{"HEAD /healthz", "200", "200"},
	{"HEAD /healthz/", "404", "404"},
	{"DELETE /healthz", "405 method_not_allowed [GET, HEAD]", "405 method_not_allowed [GET, HEAD]"},
	{"OPTIONS /healthz", "405 method_not_allowed [GET, HEAD]", "405 method_not_allowed [GET, HEAD]"},
	{"GET /healthz/../v1/actions", "404 not_found", "404 not_found"},
	{"GET /health%7A", "200", "200"},
	{"GET /hooks/../v1/actions", "404 not_found", "404 not_found"},
	{"GET /hooks%2Fx", "404 not_found", "404 not_found"},
	{"PUT /approve/x", "405 [GET, POST]", "405 [GET, POST]"},
	{"POST /callback/../v1/actions", "404 not_found", "404 not_found"},
	{"GET /callback/x", "405 method_not_allowed [POST]", "405 method_not_allowed [POST]"},
	{"GET /v1/actions/\\", "404 action_not_found", "401 unauthorized"},
	{"GET /v1\\actions", "404 not_found", "401 unauthorized"},
}

// sessionPaths lists responses to a signed-in user where the mounts differ.
var sessionPaths = []struct{ request, want string }{
	{"GET /ui/actions", "404 not_found"},
	{"GET /ui//v1/actions", "404 not_found"},
	{"GET /ui/ui/v1/actions", "404 not_found"},
	{"GET /ui%2Fv1/actions", "404 not_found"},
	{"GET /ui/%76%31/actions", "200"},
	{"GET /u%69/v1/actions", "200"},
	{"GET /ui/v1", "404 not_found"},
	{"GET /ui/v1/session/", "404 not_found"},
	{"PUT /ui/v1/session", "405 method_not_allowed [GET, HEAD, POST, PATCH, DELETE]"},
	{"PUT /ui/v1/invitations/look", "405 method_not_allowed [GET, HEAD, POST, DELETE]"},
	{"HEAD /ui/v1/oidc/start/x", "404"},
	{"GET /v1/session", "401 unauthorized"},
	{"GET /v1/actions", "401 unauthorized"},
}

// Unusual paths reach the right route or none, on both mounts, and are never
// redirected.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	key, cookie := "Authorization: Bearer "+w.key+"\r\n", "Cookie: __Host-stepmill="+w.addUser("owner").token+"\r\n"
	for _, tc := range sessionPaths {
		method, target, _ := strings.Cut(tc.request, " ")
		if got := w.server.outcome(t, method, target, cookie); got != tc.want {
			t.Errorf("%s with a session: got %s, want %s", tc.request, got, tc.want)
		}
	}
	for _, tc := range hostilePaths {
		method, target, _ := strings.Cut(tc.request, " ")
		callers := map[string][2]string{
			"with a key": {target, key}, "with a cookie that /v1 ignores": {target, key + cookie}, "without a key": {target, ""},
		}
		if strings.HasPrefix(target, "/v1") {
			callers["with a session"] = [2]string{"/ui" + target, cookie}
			callers["without a session"] = [2]string{"/ui" + target, ""}
			callers["without a session, with a key"] = [2]string{"/ui" + target, key}
		}
		for who, caller := range callers {
			want := tc.authenticated
			if strings.HasPrefix(who, "without") {
				want = tc.anonymous
			}
			if got := w.server.outcome(t, method, caller[0], caller[1]); got != want {
				t.Errorf("%s %s %s: got %s, want %s", method, caller[0], who, got, want)
			}
		}
	}
}

// outcome sends a request with its target unchanged, and returns the status, the
// error code and the allowed methods of the response.
func (s *server) outcome(t *testing.T, method, target, headers string) string {
	t.Helper()
	conn := s.dial(t, time.Minute)
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nConnection: close\r\n%s\r\n", method, target, headers); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer response.Body.Close()
	out := []string{fmt.Sprint(response.StatusCode)}
	var body struct{ Error struct{ Code string } }
	if err := json.NewDecoder(response.Body).Decode(&body); err == nil && body.Error.Code != "" {
		out = append(out, body.Error.Code)
	}
	if allow := response.Header.Get("Allow"); allow != "" {
		out = append(out, "["+allow+"]")
	}
	if at := response.Header.Get("Location"); at != "" {
		out = append(out, "to "+at)
	}
	return strings.Join(out, " ")
}
