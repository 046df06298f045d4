package integration_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration"
)

// suite is an integration whose connections are used by mail and calendar.
const suite = `
id: suite
name: Suite
category: productivity
docs: https://suite.example/docs
connection:
  fields: {services: {title: Services, format: services}}
  auth:
    - kind: oauth2
      authorize_url: https://suite.example/authorize
      token_url: https://suite.example/token
      client_auth: body
      scopes: [openid]
    - {id: application, kind: oauth2, label: Application, token_url: "https://suite.example/token", client_auth: body, scopes: [.default]}
    - {kind: bearer, label: Token}
  hosts: [suite.example]
  test: {url: "https://suite.example/me"}
  learn: {label: "${{ test.email }}"}
`

func service(id, scopes string) string {
	return "id: " + id + "\nname: " + strings.ToUpper(id) + "\ncategory: productivity\ndocs: https://suite.example/docs\nconnection: {of: suite, scopes: " + scopes + "}\n"
}

func loadSuite(t *testing.T, changed string) (*integration.Catalog, error) {
	t.Helper()
	return integration.Load(fstest.MapFS{
		"calendar/integration.yaml": {Data: []byte(service("calendar", "[profile, events]"))},
		"mail/integration.yaml":     {Data: []byte(service("mail", "[profile, mail.send]"))},
		"suite/integration.yaml":    {Data: []byte(changed)},
	})
}

func TestServicesOfAConnection(t *testing.T) {
	t.Parallel()
	catalog, err := loadSuite(t, suite)
	if err != nil {
		t.Fatal(err)
	}
	choices := []integration.Choice{{Value: "calendar", Label: "CALENDAR"}, {Value: "mail", Label: "MAIL"}}
	for id, chosen := range map[string]string{"suite": "", "mail": "mail", "calendar": "calendar"} {
		i, err := catalog.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		field, _ := i.ServicesField()
		if diff := cmp.Diff(choices, field.Enum); diff != "" || field.Default != chosen {
			t.Errorf("%s: the default is %q (-want +got)\n%s", id, field.Default, diff)
		}
	}
	whole, err := catalog.Get("suite")
	if err != nil {
		t.Fatal(err)
	}
	way, _ := whole.Connection.Find("oauth2")
	for value, want := range map[string][]string{
		"":                {"openid"},
		"mail":            {"openid", "profile", "mail.send"},
		"mail, calendar":  {"openid", "profile", "events", "mail.send"},
		"mail calendar ":  {"openid", "profile", "events", "mail.send"},
		"mail no_longer_": {"openid", "profile", "mail.send"},
	} {
		if diff := cmp.Diff(want, whole.ScopesOf(way, map[string]string{"services": value})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
	application, _ := whole.Connection.Find("application")
	if diff := cmp.Diff([]string{".default"}, whole.ScopesOf(application, map[string]string{"services": "mail"})); diff != "" {
		t.Errorf("client credentials (-want +got):\n%s", diff)
	}
	field, _ := whole.ServicesField()
	for value, valid := range map[string]bool{"": false, "mail": true, "mail calendar": true, "mail,calendar": true, "Mail": false, "mail tables": false} {
		if err := field.Check(value); (err == nil) != valid {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestServicesFieldIsChecked(t *testing.T) {
	t.Parallel()
	for changed, want := range map[string]string{
		strings.Replace(suite, "  fields: {services: {title: Services, format: services}}\n", "", 1): "mail/integration.yaml:5:33: /connection/scopes: nobody could choose them: Suite needs a field with the format services",
		strings.Replace(suite, "format: services}", "format: services, default: mail}", 1):           "/connection/fields/services: a field with the format services has neither",
		strings.Replace(suite, "format: services}", "format: services, enum: [mail]}", 1):            "/connection/fields/services: a field with the format services has neither",
		strings.Replace(suite, "format: services}", "format: services, secret: true}", 1):            "/connection/fields/services: a field with the format services has neither",
	} {
		if _, err := loadSuite(t, changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
