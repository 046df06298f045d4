package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration"
)

// shop is a manifest that most tests change in one place.
const shop = `
id: shop
name: Shop
category: commerce
docs: https://shop.example/docs
keywords: [store]
base_url: https://${{ connection.shop }}.shop.example/api
headers: {Shop-Tenant: "${{ connection.tenant }}"}
connection:
  fields:
    shop: {title: Shop, format: host_label, example: acme}
    region: {title: Region, default: us, enum: [{value: us, label: United States}, eu]}
  auth:
    - kind: bearer
      label: Token
    - kind: oauth2
      fields: {sandbox: {title: Sandbox, optional: true}}
      authorize_url: https://${{ connection.region }}.shop.example/authorize
      token_url: https://${{ connection.region }}.shop.example/token
      client_auth: body
      scopes: [read, write]
      test: {path: "/tenants/${{ connection.sandbox }}"}
      learn: {tenant: "${{ test.tenant }}", api: "${{ token.api }}", code: "${{ callback.code }}"}
  hosts:
    - ${{ connection.shop }}.shop.example
    - {host: "${{ connection.api }}", within: [shop.example]}
  test: {path: /me}
  learn: {label: "${{ test.email }}"}
`

func parse(t *testing.T, text string) *integration.Integration {
	t.Helper()
	out, err := integration.Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// with returns the manifest with one part replaced.
func with(t *testing.T, old, changed string) string {
	t.Helper()
	if !strings.Contains(shop, old) {
		t.Fatalf("the manifest has no %s", old)
	}
	return strings.Replace(shop, old, changed, 1)
}

func auth(t *testing.T, i *integration.Integration, id string) *integration.Auth {
	t.Helper()
	out, ok := i.Connection.Find(id)
	if !ok {
		t.Fatalf("there is no entry %s", id)
	}
	return out
}

func fieldNames(fields []integration.Field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

func TestParse(t *testing.T) {
	t.Parallel()
	got := parse(t, shop)
	if got.ID != "shop" || got.Name != "Shop" || got.Category != "commerce" || !slices.Equal(got.Keywords, []string{"store"}) {
		t.Errorf("the identity is %s, %s, %s, %s", got.ID, got.Name, got.Category, got.Keywords)
	}
	if names := fieldNames(got.Connection.Fields); !slices.Equal(names, []string{"shop", "region"}) {
		t.Errorf("the fields are %q, not in the order of the file", names)
	}
	want := []integration.Choice{{Value: "us", Label: "United States"}, {Value: "eu", Label: "eu"}}
	if diff := cmp.Diff(want, got.Connection.Fields[1].Enum); diff != "" {
		t.Error(diff)
	}
	bearer, oauth := auth(t, got, "bearer"), auth(t, got, "oauth2")
	if names := fieldNames(got.Fields(bearer)); !slices.Equal(names, []string{"shop", "region", "token"}) {
		t.Errorf("bearer asks for %q", names)
	}
	if names := fieldNames(got.Fields(oauth)); !slices.Equal(names, []string{"shop", "region", "sandbox"}) {
		t.Errorf("oauth2 asks for %q", names)
	}
	if bearer.Test.Path.Source() != "/me" || oauth.Test.Path.Source() != "/tenants/${{ connection.sandbox }}" {
		t.Errorf("the tests are %q and %q", bearer.Test.Path.Source(), oauth.Test.Path.Source())
	}
	if len(bearer.Learn) != 1 || len(oauth.Learn) != 4 {
		t.Errorf("bearer learns %d variables, oauth2 %d", len(bearer.Learn), len(oauth.Learn))
	}
	for stage, want := range map[integration.Stage]string{integration.AtCallback: "code", integration.AtToken: "api"} {
		if learned := oauth.Learned(stage); len(learned) != 1 || learned[want].IsZero() {
			t.Errorf("stage %d gives %d variables, want %s", stage, len(learned), want)
		}
	}
	if bearer.NeedsConsent() || !oauth.NeedsConsent() || !oauth.PKCE {
		t.Error("only oauth2 needs consent, with PKCE")
	}
	if oauth.Label != "Sign in with Shop" || oauth.ScopeSeparator != " " || oauth.ScopeParam != "scope" || oauth.TokenBody != "form" {
		t.Errorf("the defaults are %q, %q, %q, %q", oauth.Label, oauth.ScopeSeparator, oauth.ScopeParam, oauth.TokenBody)
	}
}

// secretFields returns n secret fields.
func secretFields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf("s%d: {title: Secret, secret: true}", i)
	}
	return strings.Join(fields, ", ")
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ old, changed, want string }{
		{"id: shop", "id: Shop", "/id: must be the name of the folder"},
		{"name: Shop", "name: ''", "/name: is required"},
		{"category: commerce", "category: comerce", `/category: "comerce" is unknown (did you mean "commerce"?)`},
		{"docs: https://shop.example/docs", "docs: http://shop.example", "/docs: must be the https URL"},
		{"keywords:", "steps:", `line 6:1: /steps: unknown field "steps"`},
		{"title: Shop,", "titel: Shop,", `/connection/fields/shop/titel: unknown field "titel"`},
		{"title: Shop,", "", "/connection/fields/shop/title: is required"},
		{"format: host_label", "format: domain", "/connection/fields/shop/format"},
		{"example: acme", "example: acme.com", "/connection/fields/shop/example: does not fit its own field"},
		{"default: us", "default: asia", "/connection/fields/region/default: does not fit its own field: it must be one of us, eu"},
		{"sandbox: {", "label: {", "the name label is reserved"},
		{"sandbox: {", "shop: {", "the connection has a field of this name"},
		{"kind: bearer", "kind: beerer", `/connection/auth/0/kind: "beerer" is unknown (did you mean "bearer"?)`},
		{"kind: bearer", "kind: bearer\n      pkce: true", "/connection/auth/0/pkce: does not belong to an entry of the kind bearer"},
		{"kind: bearer", "kind: bearer\n      fields: {" + secretFields(33) + "}", "/connection/auth/0/fields: a connection has at most 32 secret fields, not 34"},
		{"kind: bearer", "kind: api_key", "/connection/auth/0/apply: is required for the kind api_key"},
		{"kind: bearer\n      label: Token", "kind: bearer", "/connection/auth/0/label: is required"},
		{"kind: bearer", "kind: oauth2\n      token_url: https://shop.example/t\n      client_auth: body", `the id "oauth2" is already in use`},
		{"kind: bearer", "kind: bearer\n      apply: {headers: {X: \"${{ token }}\"}}", "unknown name token; an expression can use connection, secret"},
		{"kind: bearer", "kind: bearer\n      apply: {headers: {X: \"${{ secret.password }}\"}}", "secret has no password"},
		{"kind: bearer", "kind: bearer\n      apply: {}", "says nothing"},
		{"kind: bearer", "kind: bearer\n      apply: {path: \"${{ connection.shop }}\"}", "needs {auth} in base_url"},
		{"client_auth: body", "client_auth: header", "/connection/auth/1/client_auth"},
		{"client_auth: body", "client_auth: body\n      token_body: xml", "/connection/auth/1/token_body"},
		{"client_auth: body", "client_auth: body\n      revoke_body: json", "belong to a revoke_url"},
		{"client_auth: body", "client_auth: body\n      exchange: {params: {}}", "needs a grant_type"},
		{"authorize_url: https://${{ connection.region }}.shop.example/authorize", "params: {a: b}", "belong to an authorize_url"},
		{"scopes: [read, write]", "scopes: [read, read]", "/connection/auth/1/scopes/1: is empty or repeated"},
		{"token_url: https://${{ connection.region }}", "token_url: https://${{ connection.sandbox }}", "its host reads connection.sandbox, which can have any value"},
		{"token_url: https://${{ connection.region }}", "token_url: https://${{ connection.api }}", "its host reads connection.api, which can have any value"},
		{"fields: {sandbox: {title: Sandbox, optional: true}}", "fields: {sandbox: {title: Sandbox, optional: true}, host: {title: Host, format: host}}\n      revoke_url: https://${{ connection.host }}/revoke", "/connection/auth/1/revoke_url: its host is chosen with connection.host, unlike that of token_url"},
		{"fields: {sandbox: {title: Sandbox, optional: true}}", "fields: {sandbox: {title: Sandbox, optional: true}, host: {title: Host, format: host}}\n      exchange: {url: 'https://${{ connection.host }}/x', params: {grant_type: a}}", "/connection/auth/1/exchange/url: its host is chosen with connection.host"},
		{"token_url: https://", "token_url: http://", "/connection/auth/1/token_url: must be an https URL"},
		{"token_url: https://", "token_url: https://a@", "/connection/auth/1/token_url: must be an https URL"},
		{", within: [shop.example]", "", "connection.api can have any value"},
		{"within: [shop.example]", "within: [example]", "is not a domain"},
		{"    - ${{ connection.shop }}.shop.example", "    - Shop.example", "is not a host name in lower case"},
		{"    - ${{ connection.shop }}.shop.example", "    - shop.example", "/base_url: its host ${{ connection.shop }}.shop.example is not in the hosts"},
		{"test: {path: /me}", "test: {path: me}", "/connection/test/path: must start with a slash"},
		{"test: {path: /me}", "test: {path: /me, url: 'https://shop.example'}", "needs either a path or a url"},
		{"test: {path: /me}", "test: {path: /me, json: {}, graphql: '{ a }'}", "a request has one body"},
		{"test: {path: /me}", "test: {path: /me, method: FETCH}", "/connection/test/method"},
		{"test: {path: /me}", "test: {path: /me, errors: [{when: 'boddy.ok', kind: failed}]}", `did you mean "body"`},
		{"test: {path: /me}", "test: {path: /me, errors: [{when: body.ok, kind: broken}]}", "/connection/test/errors/0/kind"},
		{"  test: {path: /me}\n", "", "/connection/auth/0: a connection needs a test"},
		{"  test: {path: /me}\n", "  test: {path: /me}\n  scopes: [read]\n", "/connection/scopes: belongs to shared connections"},
		{"label: \"${{ test.email }}\"", "other: \"${{ test.email }}\"", "a connection needs a label"},
		{"${{ test.email }}", "${{ secret.token }}", "/connection/learn/label: unknown name secret"},
		{"${{ test.email }}", "${{ body.email }}", "/connection/learn/label: unknown name body"},
		{"${{ test.email }}", "${{ connection.tenat }}", `did you mean "tenant"`},
		{"code: \"${{ callback.code }}\"", "code: \"${{ connection.api }}\"", "code reads connection.api, which is not known earlier"},
		{"Shop-Tenant:", "\"Shop Tenant\":", "/headers/Shop Tenant: is not the name of a header"},
		{"Shop-Tenant:", "Proxy-Tenant:", "/headers/Proxy-Tenant: cannot be set"},
		{"kind: bearer", "kind: bearer\n      apply: {headers: {host: \"${{ secret.token }}\"}}", "/connection/auth/0/apply/headers/host: cannot be set: it is taken from the URL"},
		{"kind: bearer", "kind: bearer\n      apply: {headers: {Upgrade: \"${{ secret.token }}\"}}", "/connection/auth/0/apply/headers/Upgrade: cannot be set"},
		{"kind: bearer", "kind: bearer\n      apply: {headers: {x-service-depth: \"${{ secret.token }}\"}}", "/connection/auth/0/apply/headers/x-service-depth: cannot be set"},
		{"kind: bearer", "kind: bearer\n      apply: {headers: {X-A: \"${{ secret.token }}\", x-a: \"\"}}", "/connection/auth/0/apply/headers/x-a: is there twice"},
		{"kind: bearer", "kind: bearer\n      apply: {basic: {user: \"a:b\", password: \"${{ secret.token }}\"}}", "/connection/auth/0/apply/basic/user: must not contain a colon"},
		{"id: shop", "id: &shop", "line 2:"},
	} {
		_, err := integration.Parse([]byte(with(t, tc.old, tc.changed)), nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s instead of %s: the error is %v, want %q", tc.changed, tc.old, err, tc.want)
		}
	}
}

func TestParseRejectsLargeManifest(t *testing.T) {
	t.Parallel()
	if _, err := integration.Parse([]byte(shop+strings.Repeat("#", 256<<10)), nil); err == nil || !strings.Contains(err.Error(), "longer than 256 KiB") {
		t.Errorf("the error is %v", err)
	}
}

func TestDefaultsOfKinds(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"kind: bearer\n      label: Token": "token",
		"kind: basic\n      label: L":      "username password",
		"kind: basic\n      label: L\n      fields: {email: {title: E}}\n      apply: {basic: {user: \"${{ connection.email }}\"}}":    "email",
		"kind: basic\n      label: L\n      fields: {username: {title: E}, extra: {title: X}}":                                         "username password extra",
		"kind: aws_sigv4\n      label: L\n      service: s3":                                                                           "access_key_id secret_access_key region session_token",
		"kind: client_certificate\n      label: L":                                                                                     "client_certificate client_key",
		"kind: digest\n      label: L":                                                                                                 "username password",
		"kind: service_account\n      label: L\n      token_url: https://shop.example/t\n      scopes: [a]":                            "key subject",
		"kind: api_key\n      label: L\n      fields: {k: {title: K, secret: true}}\n      apply: {query: {key: \"${{ secret.k }}\"}}": "k",
	} {
		got := parse(t, with(t, "kind: bearer\n      label: Token", entry))
		if names := strings.Join(fieldNames(got.Connection.Auth[0].Fields), " "); names != want {
			t.Errorf("%s\nhas the fields %s, want %s", entry, names, want)
		}
	}
	if len(integration.Kinds()) != 8 {
		t.Errorf("the kinds are %q", integration.Kinds())
	}
}

func TestAuthOptions(t *testing.T) {
	t.Parallel()
	got := auth(t, parse(t, with(t, "client_auth: body", `id: user
      client_auth: basic
      app_fields: {signing_secret: {title: S, secret: true, optional: true}}
      revoke_url: https://shop.example/revoke
      revoke_body: json
      revoke_param: refresh_token
      pkce: false
      scope_param: user_scope
      scope_separator: ","
      token_params: {expiring: "1"}
      token_at: user
      exchange: {params: {grant_type: long, code: "${{ token }}"}}`)), "user")
	if got.PKCE || got.ClientAuth != "basic" || got.RevokeBody != "json" || got.RevokeParam != "refresh_token" || got.TokenBody != "form" || got.ScopeParam != "user_scope" || got.TokenAt != "user" {
		t.Errorf("the entry is %+v", got)
	}
	if text, _, err := got.Exchange.Params["code"].Text(integration.Env{Token: "t0"}); text != "t0" || err != nil {
		t.Errorf("the exchange sends %q, %v", text, err)
	}
	if got.Exchange.URL.Source() != got.TokenURL.Source() || len(got.AppFields) != 1 || got.TokenParams["expiring"].Source() != "1" {
		t.Errorf("the entry is %+v", got)
	}
}
