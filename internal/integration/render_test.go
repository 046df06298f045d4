package integration_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	i := parse(t, shop)
	for _, tc := range []struct {
		vars map[string]string
		want string // or the error
	}{
		{map[string]string{}, ""},
		{map[string]string{"shop": "Acme"}, "acme.shop.example"},
		{map[string]string{"shop": "acme", "api": ""}, "acme.shop.example"},
		{map[string]string{"shop": "acme", "api": "acme.shop.example"}, "acme.shop.example"},
		{map[string]string{"shop": "acme", "api": "https://API.shop.example:443/v2"}, "acme.shop.example api.shop.example"},
		{map[string]string{"api": "shop.example"}, "shop.example"},
		{map[string]string{"api": "shop.example.evil.example"}, "is not within shop.example"},
		{map[string]string{"api": "evilshop.example"}, "is not within shop.example"},
		{map[string]string{"api": "http://api.shop.example"}, "is not an https URL"},
		{map[string]string{"api": "https://user@api.shop.example"}, "is not an https URL"},
		{map[string]string{"api": "evil.example/.shop.example"}, "is not a host name"},
		{map[string]string{"api": "evil.example?.shop.example"}, "is not a host name"},
		{map[string]string{"shop": "evil.example/x"}, "is not a host name"},
	} {
		hosts, err := i.Hosts(tc.vars)
		got := strings.Join(hosts, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
			t.Errorf("%v: %s, want %s", tc.vars, got, tc.want)
		}
	}
}

func TestHostField(t *testing.T) {
	t.Parallel()
	if got := auth(t, parse(t, shop), "oauth2").HostField(); got != "" {
		t.Errorf("the host field is %q", got)
	}
	text := with(t, "token_url: https://${{ connection.region }}.shop.example", "token_url: https://${{ connection.sandbox }}")
	text = strings.Replace(text, "sandbox: {title: Sandbox,", "sandbox: {title: Sandbox, format: host,", 1)
	if got := auth(t, parse(t, text), "oauth2").HostField(); got != "sandbox" {
		t.Errorf("the host field is %q, want sandbox", got)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	i := parse(t, with(t, "test: {path: /me}", `test: {path: "/users/${{ connection.region }}", query: {q: "${{ connection.region }}", none: "${{ connection.tenant }}"}}`))
	bearer := auth(t, i, "bearer")
	for _, tc := range []struct{ shop, region, want string }{
		{"acme", "us", "https://acme.shop.example/api/users/us?q=us"},
		{"acme", "a/b?c", "https://acme.shop.example/api/users/a%2Fb%3Fc?q=a%2Fb%3Fc"},
		{"acme", "..", "a value has dots only"},
		{"acme", "", "a value is not text"},
		{"evil.example/", "us", "is not"},
		{"evil@x", "us", "is not"},
	} {
		env := integration.Env{Connection: map[string]string{"shop": tc.shop, "region": tc.region}}
		var got string
		request, err := i.Render(bearer.Test, env)
		if err != nil {
			got = err.Error()
		} else {
			got = request.URL
		}
		if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
			t.Errorf("%s, %s: %s, want %s", tc.shop, tc.region, got, tc.want)
		}
	}
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	i := parse(t, shop)
	oauth := auth(t, i, "oauth2")
	env := integration.Env{Token: map[string]any{"api": "https://api.shop.example"}, Test: map[string]any{"tenant": 7}}
	if text, ok, err := oauth.Learn["tenant"].Text(env); text != "7" || !ok || err != nil {
		t.Errorf("tenant is %q, %t, %v", text, ok, err)
	}
	if text, ok, err := oauth.Learn["code"].Text(env); text != "" || ok || err != nil {
		t.Errorf("code is %q, %t, %v", text, ok, err)
	}
	if _, _, err := oauth.Learn["tenant"].Text(integration.Env{Test: map[string]any{"tenant": []any{}}}); err == nil {
		t.Error("a list became text")
	}
	header := oauth.Apply.Headers["Authorization"]
	if text, _, err := header.Text(integration.Env{Token: "t0"}); text != "Bearer t0" || err != nil {
		t.Errorf("the header is %q, %v", text, err)
	}
	if got := oauth.TokenURL.Variables(); !slices.Equal(got, []string{"region"}) {
		t.Errorf("the token URL reads %q", got)
	}
	u, err := oauth.TokenURL.URL(integration.Env{Connection: map[string]string{"region": "eu"}})
	if err != nil || u.String() != "https://eu.shop.example/token" {
		t.Errorf("the token URL is %v, %v", u, err)
	}
}

func TestErrorRule(t *testing.T) {
	t.Parallel()
	i := parse(t, with(t, "test: {path: /me}", `test:
    method: POST
    path: /me
    json: {shop: "${{ connection.shop }}"}
    errors: [{when: "status == 200 && body.ok == false", kind: denied, code: "${{ body.error }}", message: "${{ headers.warning }}"}]`))
	test := auth(t, i, "bearer").Test
	env := integration.Env{
		Connection: map[string]string{"shop": "acme"}, Status: 200,
		Headers: map[string]string{"warning": "no"}, Body: map[string]any{"ok": false, "error": "bad_token"},
	}
	rule := test.Errors[0]
	if ok, err := rule.When.Holds(env); !ok || err != nil {
		t.Fatalf("the rule holds: %t, %v", ok, err)
	}
	code, _, _ := rule.Code.Text(env)
	message, _, _ := rule.Message.Text(env)
	if rule.Kind != "denied" || code != "bad_token" || message != "no" {
		t.Errorf("the error is %s, %s, %s", rule.Kind, code, message)
	}
	body, err := test.JSON.Eval(env)
	if object, ok := body.(map[string]any); err != nil || !ok || object["shop"] != "acme" {
		t.Errorf("the body is %v, %v", body, err)
	}
}

func TestFieldCheck(t *testing.T) {
	t.Parallel()
	fields := parse(t, with(t, "region: {", `host: {title: Host, format: host, optional: true}
    number: {title: Number, pattern: "[0-9]+", optional: true, example: "12"}
    key: {title: Key, format: json, secret: true, optional: true}
    region: {`)).Connection.Fields
	for _, tc := range []struct{ field, value, want string }{
		{"shop", "", "is required"},
		{"shop", "acme", ""},
		{"shop", "Acme-2", ""},
		{"shop", "acme.com", "must be a single part of a host name, such as acme"},
		{"shop", "a\nb", "must be a single line"},
		{"shop", "-a", "must be a single part"},
		{"region", "", ""},
		{"region", "eu", ""},
		{"region", "asia", "must be one of us, eu"},
		{"host", "", ""},
		{"host", "git.example.com:8443", ""},
		{"host", "https://git.example.com", "must be a host name"},
		{"host", "git.example.com:0", "must be a host name"},
		{"host", "git.example.com/x", "must be a host name"},
		{"host", "user@git.example.com", "must be a host name"},
		{"number", "12", ""},
		{"number", "12a", "must have the form [0-9]+, such as 12"},
		{"number", "12\n", "must be a single line"},
		{"key", "{\n\"a\": 1}", ""},
		{"key", "[1]", "must be a JSON object"},
		{"key", "{", "must be a JSON object"},
		{"number", strings.Repeat("1", 20<<10), "must be at most 16 KiB long"},
		{"number", "\xff", "must be valid UTF-8"},
	} {
		i := slices.IndexFunc(fields, func(f integration.Field) bool { return f.Name == tc.field })
		err := fields[i].Check(tc.value)
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s %.20q: %v, want %q", tc.field, tc.value, err, tc.want)
		}
	}
}
