package connection_test

import (
	"bytes"
	"maps"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
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
	if err := in.Apps.AddFromFile([]byte(`[{"integration": "slack", "client_id": "of the file", "client_secret": "s3cret", "fields": {"signing_secret": "s3cret"}}]`)); err != nil {
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
	if err := in.Apps.Delete(t.Context(), in.owner, app.ID); err != nil {
		t.Fatal(err)
	}
	if got := client(); got != "of the file" {
		t.Errorf("the app is that %s", got)
	}
}

// TestAppFields checks the fields of OAuth apps, which are required unless the integration
// says otherwise, and that secret ones are sealed.
func TestAppFields(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	catalog, err := integration.Load(fstest.MapFS{"shop/integration.yaml": {Data: []byte(`
id: shop
name: Shop
category: commerce
docs: https://shop.example/docs
base_url: https://shop.example
connection:
  auth:
    - kind: oauth2
      authorize_url: https://shop.example/authorize
      token_url: https://shop.example/token
      client_auth: body
      app_fields: {team: {title: Team}, signing_secret: {title: Signing secret, secret: true, optional: true}}
  hosts: [shop.example]
  test: {path: /me}
  learn: {label: "${{ test.email }}"}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	shops := in.assemble(in.client, catalog, "node_1")
	put := func(fields map[string]string) (connection.App, error) {
		app, _, err := putApp(t.Context(), shops.Apps, in.owner, connection.NewApp{Integration: "shop", ClientID: "c", ClientSecret: "s3cret", Fields: fields})
		return app, err
	}
	_, err = put(map[string]string{"signing_secret": "s3cret-too", "other": "x"})
	faulttest.Want(t, err, fault.InvalidRequest, "/fields/team", "/fields/other")
	app, err := put(map[string]string{"team": " one ", "signing_secret": "s3cret-too"})
	if want := map[string]string{"team": "one"}; err != nil || !maps.Equal(app.Fields, want) {
		t.Errorf("%v, %v", app.Fields, err)
	}
	sealed, err := in.store.Connections.AppFor(t.Context(), in.owner.Workspace.ID, "shop", "oauth2")
	if err != nil || bytes.Contains(sealed.Secret, []byte("s3cret")) || !maps.Equal(sealed.Fields, app.Fields) {
		t.Errorf("%+v, %v", sealed, err)
	}
	if _, err := shops.Connect(t.Context(), in.owner, connection.New{Name: "shop", Integration: "shop", Auth: "oauth2"}, redirect); err != nil {
		t.Error(err)
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
		"an unknown field":               {`[{"integration": "slack", "client_id": "c", "client_secret": "s3cret", "fields": {"signing": "s3cret"}}]`, "entry 1: fields/signing is not a field of an OAuth app for Slack"},
		"a short secret":                 {`[{"integration": "slack", "client_id": "c", "client_secret": "s3cret", "fields": {"signing_secret": "abc"}}]`, "entry 1: fields/signing_secret must have at least 4 characters"},
		"no secret":                      {`[{"integration": "slack", "client_id": "c"}]`, "client_secret"},
	} {
		if err := in.Apps.AddFromFile([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
