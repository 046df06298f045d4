package connection

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

// way returns a way to authenticate of a built-in integration.
func way(t *testing.T, service, id string) *opened {
	t.Helper()
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	found, ok := catalog.Find(service)
	if !ok {
		t.Fatal(service)
	}
	auth, ok := found.Connection.Find(id)
	if !ok {
		t.Fatal(id)
	}
	return &opened{Connection: Connection{Integration: service}, secrets: secrets{ClientID: "1234.5678"}, service: found, auth: auth}
}

// A service refuses tokens with the errors of RFC 6749 and with those that its manifest
// names. Client credentials are only refused themselves.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		service, way string
		status       int
		code         string
		refuses      bool
	}{
		{"slack", "oauth2", 200, "invalid_refresh_token", true},
		{"slack", "oauth2", 200, "ratelimited", false},
		{"slack", "oauth2", 429, "invalid_refresh_token", false},
		{"github", "oauth2", 200, "bad_refresh_token", true},
		{"hubspot", "oauth2", 400, "BAD_REFRESH_TOKEN", true},
		{"facebook", "oauth2", 400, "190", true},
		{"zoho", "oauth2", 200, "invalid_code", true},
		{"google", "oauth2", 400, "invalid_code", false},
		{"google", "oauth2", 400, "invalid_grant", true},
		{"google", "service_account", 400, "invalid_grant", true},
		{"zendesk", "client_credentials", 400, "invalid_grant", false},
		{"zendesk", "client_credentials", 400, "invalid_scope", false},
		{"zendesk", "client_credentials", 401, "invalid_client", true},
		{"zendesk", "client_credentials", 400, "unauthorized_client", true},
	} {
		failure := tokenError{status: test.status, code: test.code}
		if got := failure.refuses(way(t, test.service, test.way).auth); got != test.refuses {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func TestAdviceNamesTheApp(t *testing.T) {
	t.Parallel()
	failure := tokenError{status: 401, code: "invalid_client"}
	if got := failure.advice(way(t, "slack", "oauth2")); !strings.Contains(got, `the OAuth app "1234.5678" for Slack`) {
		t.Error(got)
	}
}
