package integrations_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
)

// What connections learn from the answers of services. The answers are shortened
// samples of the services' documentation.
func TestLearn(t *testing.T) {
	t.Parallel()
	const sites = `[{"id": "1324", "name": "Acme", "url": "https://acme.atlassian.net"}, {"id": "77", "url": "https://other.atlassian.net"}]`
	const indexes = `{"indexes": [{"name": "articles", "host": "articles-4zo0ijk.svc.aped-4627-b74a.pinecone.io"}, {"name": "news", "host": "news-4zo0ijk.svc.aped-4627-b74a.pinecone.io"}]}`
	const tenants = `[{"tenantId": "fe79", "tenantName": "Demo Company (NZ)"}]`
	for _, tc := range []struct {
		integration, auth string
		fields            map[string]string
		callback          map[string]string
		token, test       string
		want              map[string]string
	}{
		{
			integration: "atlassian", auth: "oauth2", fields: map[string]string{"site": "Acme"}, test: sites,
			want: map[string]string{"cloud_id": "1324", "label": "Acme.atlassian.net"},
		},
		{
			integration: "atlassian", auth: "basic", fields: map[string]string{"site": "acme"}, test: `{"displayName": "Ada"}`,
			want: map[string]string{"label": "Ada"},
		},
		{
			integration: "google", auth: "oauth2", test: `{"sub": "110", "email": "ada@example.com"}`,
			want: map[string]string{"label": "ada@example.com", "account": "110"},
		},
		{
			integration: "hubspot", auth: "oauth2", test: `{"portalId": 1234567, "uiDomain": "app.hubspot.com"}`,
			want: map[string]string{"label": "app.hubspot.com 1234567", "account": "1234567"},
		},
		{
			integration: "linear", auth: "api_key", test: `{"data": {"viewer": {"email": "ada@example.com"}, "organization": {"id": "o1", "name": "Acme"}}}`,
			want: map[string]string{"label": "ada@example.com @ Acme", "account": "o1"},
		},
		{
			integration: "mailchimp", auth: "oauth2", test: `{"dc": "us6", "accountname": "Acme"}`,
			want: map[string]string{"dc": "us6", "label": "Acme"},
		},
		{
			integration: "mailchimp", auth: "basic", fields: map[string]string{"dc": "us6"}, test: `{"account_id": "8d", "account_name": "Acme"}`,
			want: map[string]string{"label": "Acme", "account": "8d"},
		},
		{
			integration: "microsoft", auth: "client_credentials", test: `{"value": [{"id": "84841066", "displayName": "Contoso"}]}`,
			want: map[string]string{"label": "Contoso", "account": "84841066"},
		},
		{
			integration: "pinecone", auth: "api_key", test: indexes,
			want: map[string]string{"index_host": "articles-4zo0ijk.svc.aped-4627-b74a.pinecone.io", "label": "articles"},
		},
		{
			integration: "pinecone", auth: "api_key", fields: map[string]string{"index": "news"}, test: indexes,
			want: map[string]string{"index_host": "news-4zo0ijk.svc.aped-4627-b74a.pinecone.io", "label": "news"},
		},
		{
			integration: "pinecone", auth: "api_key", test: `{"indexes": []}`,
			want: map[string]string{"label": "API key"},
		},
		{
			integration: "pipedrive", auth: "oauth2", token: `{"api_domain": "https://acme.pipedrive.com"}`, test: `{"data": {"email": "ada@example.com", "company_id": 12}}`,
			want: map[string]string{"api_domain": "https://acme.pipedrive.com", "label": "ada@example.com", "account": "12"},
		},
		{
			integration: "quickbooks", auth: "oauth2", callback: map[string]string{"realmId": "9341"}, test: `{"CompanyInfo": {"CompanyName": "Acme"}}`,
			want: map[string]string{"realm_id": "9341", "account": "9341", "label": "Acme"},
		},
		{
			integration: "salesforce", auth: "oauth2", token: `{"instance_url": "https://acme.my.salesforce.com", "id": "https://login.salesforce.com/id/00D/005"}`, test: `{}`,
			want: map[string]string{"instance_url": "https://acme.my.salesforce.com", "account": "https://login.salesforce.com/id/00D/005", "label": "https://acme.my.salesforce.com"},
		},
		{
			integration: "slack", auth: "user", test: `{"ok": true, "user": "ada", "team": "Acme", "team_id": "T1"}`,
			want: map[string]string{"label": "ada @ Acme", "account": "T1"},
		},
		{
			integration: "twitter", auth: "bearer", test: `{"data": {"username": "XDevelopers"}}`,
			want: map[string]string{"label": "App-only access"},
		},
		{
			integration: "xero", auth: "oauth2", test: tenants,
			want: map[string]string{"tenant": "fe79", "account": "fe79", "label": "Demo Company (NZ)"},
		},
		{
			integration: "zoho", auth: "oauth2", fields: map[string]string{"domain": "zoho.com"}, callback: map[string]string{"location": "eu"},
			token: `{"api_domain": "https://www.zohoapis.eu"}`, test: `{"users": [{"id": "1", "email": "ada@example.com"}]}`,
			want: map[string]string{"domain": "zoho.eu", "api_domain": "https://www.zohoapis.eu", "label": "ada@example.com", "account": "1"},
		},
		{
			integration: "zoho", auth: "oauth2", fields: map[string]string{"domain": "zoho.in"}, callback: map[string]string{"location": "mars"}, token: `{}`, test: `{"users": []}`,
			want: map[string]string{"domain": "zoho.in"},
		},
	} {
		i, a := find(t, tc.integration, tc.auth)
		env := integration.Env{Connection: tc.fields, Callback: tc.callback, Token: decode(t, tc.token), Test: decode(t, tc.test)}
		if diff := cmp.Diff(tc.want, learn(t, i, a, env)); diff != "" {
			t.Errorf("%s, %s: (-want +got)\n%s", tc.integration, tc.auth, diff)
		}
	}
}

func TestErrorsOfTests(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		integration, auth string
		fields            map[string]string
		status            int
		body              string
		want              string
	}{
		{"atlassian", "oauth2", map[string]string{"site": "acme"}, 200, `[{"url": "https://acme.atlassian.net"}]`, ""},
		{"atlassian", "oauth2", map[string]string{"site": "acme"}, 200, `[]`, "not_found: The credential gives no access to acme.atlassian.net."},
		{"atlassian", "oauth2", map[string]string{"site": "acme"}, 401, `{"code": 401}`, ""},
		{"slack", "oauth2", nil, 200, `{"ok": false, "error": "invalid_auth"}`, "failed: invalid_auth"},
		{"slack", "bearer", nil, 200, `{"ok": true}`, ""},
		{"xero", "oauth2", nil, 200, `[{"tenantName": "A"}]`, ""},
		{"xero", "oauth2", nil, 200, `[{"tenantName": "A"}, {"tenantName": "B"}]`, "invalid: The sign-in gives access to 2 organisations: enter the name of one."},
		{"xero", "oauth2", map[string]string{"organisation": "B"}, 200, `[{"tenantName": "A"}, {"tenantName": "B"}]`, ""},
		{"xero", "oauth2", map[string]string{"organisation": "C"}, 200, `[{"tenantName": "A"}]`, "not_found: The sign-in gives no access to the organisation C."},
		{"xero", "oauth2", nil, 401, `{"Title": "Unauthorized"}`, ""},
	} {
		_, a := find(t, tc.integration, tc.auth)
		env := integration.Env{Connection: tc.fields, Status: tc.status, Body: decode(t, tc.body)}
		got := ""
		for _, rule := range a.Test.Errors {
			holds, err := rule.When.Holds(env)
			if err != nil {
				t.Errorf("%s, %s: %v", tc.integration, tc.body, err)
			}
			if holds {
				message, _, _ := rule.Message.Text(env)
				got = rule.Kind + ": " + message
				break
			}
		}
		if got != tc.want {
			t.Errorf("%s, %d %s: the error is %q, want %q", tc.integration, tc.status, tc.body, got, tc.want)
		}
	}
}

func find(t *testing.T, id, auth string) (*integration.Integration, *integration.Auth) {
	t.Helper()
	i, err := catalog(t).Get(id)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := i.Connection.Find(auth)
	if !ok {
		t.Fatalf("%s has no %s", id, auth)
	}
	return i, a
}

// learn evaluates the stages in order, each with what the earlier ones gave.
func learn(t *testing.T, i *integration.Integration, a *integration.Auth, env integration.Env) map[string]string {
	t.Helper()
	got, vars := map[string]string{}, map[string]string{}
	maps.Copy(vars, env.Connection)
	env.Connection = vars
	for _, stage := range []integration.Stage{integration.AtCallback, integration.AtToken, integration.AtTest} {
		for name, template := range a.Learned(stage) {
			text, ok, err := template.Text(env)
			if err != nil {
				t.Errorf("%s, %s: %v", i.ID, name, err)
			}
			if ok {
				got[name] = text
			}
		}
		maps.Copy(vars, got)
	}
	return got
}

func decode(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	value, err := expr.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
