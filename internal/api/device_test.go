package api_test

import (
	"strings"
	"testing"
)

// A person connects a service with a code, in a session. The address of the dashboard
// does not matter, because nobody is sent back to it.
func TestDeviceRoutes(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	owner := w.addUser("owner")
	setupConnection(w)
	device := func(name, definition string) string {
		return w.expand(`{"name": "` + name + `", "auth": "oauth2", "fields": {"client_id": "c"},
			"definition": {"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", ` + definition + `}}`)
	}
	const (
		connect = "/ui/v1/connections/connect-device"
		poll    = "/ui/v1/connections/poll-device"
		inside  = `"grant": "device_code", "device_url": "http://127.0.0.1:9/device"`
	)
	invalid := func(a *response, pointer string) {
		t.Helper()
		if a.wantStatus(400, "invalid_request"); !strings.Contains(string(a.body), `"`+pointer+`"`) {
			t.Errorf("%s does not point at %s", a.body, pointer)
		}
	}
	refused := owner.call("POST", connect, device("crm", inside), "Origin", "http://localhost:1", "Sec-Fetch-Site", "same-origin").wantStatus(409, "consent_refused")
	if !strings.Contains(string(refused.body), "Check device_url") {
		t.Errorf("%s", refused.body)
	}
	owner.call("POST", connect, device("$conn_name", inside)).wantStatus(409, "connection_exists")
	invalid(owner.call("POST", connect, device("crm", `"grant": "device_code"`)), "/definition/device_url")
	invalid(owner.call("POST", connect, device("crm", `"authorize_url": "https://id.example.com/"`)), "/definition/grant")
	invalid(owner.call("POST", connect, `{"name": "team", "integration": "slack", "auth": "oauth2"}`), "/definition/grant")
	invalid(owner.call("POST", "/ui/v1/connections/connect", device("crm", inside)), "/definition/grant")
	invalid(w.call("POST", "/v1/connections", device("crm", inside)), "/auth")
	w.addUser("viewer").call("POST", connect, device("crm", inside)).wantStatus(403, "insufficient_scope")

	invalid(owner.call("POST", w.expand("/ui/v1/connections/$conn/reconnect-device"), ""), "/definition/grant")
	owner.call("POST", "/ui/v1/connections/conn_01m7facgqmf46bs8r42wfv2z13/reconnect-device", "").wantStatus(404, "connection_not_found")

	owner.call("POST", poll, `{"state": "unknown"}`).wantStatus(409, "consent_expired")
	invalid(owner.call("POST", poll, `{}`), "/state")
	w.addUser("viewer").call("POST", poll, `{"state": "unknown"}`).wantStatus(403, "insufficient_scope")
}
