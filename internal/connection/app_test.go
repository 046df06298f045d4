package connection_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
)

// TestAppOfConsent checks which OAuth app a consent is asked for with: that of the
// workspace, then a shared one, then that of the operator's file.
func TestAppOfConsent(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	client := func() string {
		t.Helper()
		address, err := in.Connect(t.Context(), in.owner, connection.New{Name: "team", Integration: "slack", Auth: "oauth2"}, redirect)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("client_id")
	}
	_, err := in.Connect(t.Context(), in.owner, connection.New{Name: "team", Integration: "slack", Auth: "oauth2"}, redirect)
	faulttest.Want(t, err, fault.OAuthAppMissing)
	if err := in.AddFileApps([]byte(`[{"integration": "slack", "client_id": "of the file", "client_secret": "s3cret"}]`)); err != nil {
		t.Fatal(err)
	}
	if got := client(); got != "of the file" {
		t.Errorf("the app is that %s", got)
	}
	app, _, err := in.PutApp(t.Context(), in.owner, connection.NewApp{Integration: "slack", ClientID: "of the workspace", ClientSecret: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	if got := client(); got != "of the workspace" {
		t.Errorf("the app is that %s", got)
	}
	if err := in.DeleteApp(t.Context(), in.owner, app.ID); err != nil {
		t.Fatal(err)
	}
	if got := client(); got != "of the file" {
		t.Errorf("the app is that %s", got)
	}
}

func TestUnusableFileApps(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":                        {"slack: s3cret", "list of apps"},
		"an object":                      {`{"integration": "slack"}`, "list of apps"},
		"an unknown integration":         {`[{"integration": "slak", "client_id": "c", "client_secret": "s3cret"}]`, `entry 1: there is no integration "slak"`},
		"an integration without consent": {`[{"integration": "stripe", "client_id": "c", "client_secret": "s3cret"}]`, "does not use OAuth apps"},
		"no secret":                      {`[{"integration": "slack", "client_id": "c"}]`, "client_secret"},
	} {
		if err := in.AddFileApps([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
