package connection_test

import (
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
)

// newSuite returns a node whose catalog has a suite with the services mail and calendar,
// and what it sends to them.
func newSuite(t *testing.T) (*installation, *recorder) {
	t.Helper()
	in, services := newInstallation(t), &recorder{}
	in.client = services
	service := func(id, scope string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("id: " + id + "\nname: " + id + "\ncategory: productivity\ndocs: https://suite.example\nconnection: {of: suite, scopes: [" + scope + "]}\n")}
	}
	catalog, err := integration.Load(fstest.MapFS{
		"mail/integration.yaml": service("mail", "mail.send"), "calendar/integration.yaml": service("calendar", "events"),
		"suite/integration.yaml": {Data: []byte(`
id: suite
name: Suite
category: productivity
docs: https://suite.example
connection:
  fields: {services: {title: Services, format: services}}
  auth:
    - {kind: oauth2, authorize_url: "https://suite.example/authorize", token_url: "https://suite.example/token", client_auth: body, scopes: [openid]}
    - {kind: service_account, label: Service account, token_url: "https://suite.example/token", scopes: [openid]}
  hosts: [suite.example]
  test: {url: "https://suite.example/me"}
  learn: {label: "${{ test.email }}"}
`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.parts = in.assemble(services, catalog, "node_1")
	return in, services
}

// connectSuite begins a consent and returns the scopes that it asks for, and what the
// browser comes back with.
func (in *installation) connectSuite(wanted connection.New) (scope string, callback url.Values) {
	in.t.Helper()
	address, err := in.Connect(in.t.Context(), in.owner, wanted, redirect)
	if err != nil {
		in.t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		in.t.Fatal(err)
	}
	return u.Query().Get("scope"), url.Values{"state": {u.Query().Get("state")}, "code": {"code"}}
}

// A consent asks for the scopes of the services that were chosen. A connection made for a
// service is one of the suite, and so is an OAuth app.
func TestConsentAsksForTheScopesOfServices(t *testing.T) {
	t.Parallel()
	in, _ := newSuite(t)
	app, _, err := in.PutApp(t.Context(), in.owner, connection.NewApp{Integration: "mail", ClientID: "client", ClientSecret: clientSecret})
	if err != nil || app.Integration != "suite" {
		t.Fatalf("the app is one of %s, %v", app.Integration, err)
	}
	for _, tc := range []struct {
		integration, services, want string
	}{
		{"suite", "calendar", "openid events"},
		{"suite", "mail, calendar", "openid events mail.send"},
		{"mail", "", "openid mail.send"},
		{"mail", "mail calendar", "openid events mail.send"},
	} {
		name := strings.NewReplacer(" ", "", ",", "").Replace(tc.integration + tc.services)
		wanted := connection.New{Name: name, Integration: tc.integration, Auth: integration.OAuth2, Fields: map[string]string{"services": tc.services}}
		scope, callback := in.connectSuite(wanted)
		if scope != tc.want {
			t.Errorf("%s, %q: asks for %q, want %q", tc.integration, tc.services, scope, tc.want)
		}
		c, err := in.Complete(t.Context(), in.owner, callback)
		if err != nil {
			t.Fatal(err)
		}
		if c.Integration != "suite" || c.Fields["services"] == "" {
			t.Errorf("the connection is %s with %v", c.Integration, c.Fields)
		}
	}
	for _, services := range []string{"", "tables"} {
		_, err := in.Connect(t.Context(), in.owner, connection.New{Name: "new", Integration: "suite", Auth: integration.OAuth2, Fields: map[string]string{"services": services}}, redirect)
		faulttest.Want(t, err, fault.InvalidRequest, "/fields/services")
	}
}

// Other services need another consent.
func TestChangeOfServicesNeedsAConsent(t *testing.T) {
	t.Parallel()
	in, _ := newSuite(t)
	if _, _, err := in.PutApp(t.Context(), in.owner, connection.NewApp{Integration: "suite", ClientID: "client", ClientSecret: clientSecret}); err != nil {
		t.Fatal(err)
	}
	_, callback := in.connectSuite(connection.New{Name: "office", Integration: "mail", Auth: integration.OAuth2})
	made, err := in.Complete(t.Context(), in.owner, callback)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := in.Update(t.Context(), in.owner, made.ID, connection.Patch{Fields: map[string]string{"services": "mail calendar"}})
	if err != nil || changed.Status != connection.NeedsReconnect {
		t.Fatalf("the status is %s, %v", changed.Status, err)
	}
	address, err := in.Reconnect(t.Context(), in.owner, made.ID, redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(address); err != nil || u.Query().Get("scope") != "openid events mail.send" {
		t.Errorf("asks for %s, %v", address, err)
	}
}

// The assertion of a service account has the scopes of the services.
func TestServiceAccountAsksForTheScopesOfServices(t *testing.T) {
	t.Parallel()
	in, services := newSuite(t)
	keyFile, public := connection.NewKeyFile(t)
	made, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "robot", Integration: "calendar", Auth: integration.ServiceAccount, Fields: map[string]string{"key": keyFile},
	})
	if err != nil || made.Integration != "suite" {
		t.Fatalf("the connection is one of %s, %v", made.Integration, err)
	}
	if _, err := in.Test(t.Context(), in.owner, made.ID); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(services.take()[0], "assertion=")
	text, _, _ := strings.Cut(body, "&")
	assertion, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Scope string `json:"scope"`
	}
	if err := assertion.Claims(public, &claims); err != nil || claims.Scope != "openid events" {
		t.Errorf("asks for %q, %v", claims.Scope, err)
	}
}
