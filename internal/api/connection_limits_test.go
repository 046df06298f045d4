package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
)

// customKeys returns the body of a request for a connection with secrets of these
// lengths, named k00, k01 and so on.
func customKeys(lengths ...int) string {
	fields, headers := map[string]string{}, map[string]string{}
	for i, length := range lengths {
		name := fmt.Sprintf("k%02d", i)
		fields[name], headers["X-"+name] = strings.Repeat("x", length), "${{ secret."+name+" }}"
	}
	body, err := json.Marshal(map[string]any{
		"name": "shop", "auth": "api_key", "fields": fields,
		"definition": map[string]any{"hosts": []string{"api.example.com"}, "apply": map[string]any{"headers": headers}},
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// times returns n equal numbers.
func times(n, length int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = length
	}
	return out
}

func TestLimitsOfSecrets(t *testing.T) {
	const kib = 1 << 10
	rejected := func(name, body, pointer string) scenario {
		return scenario{name: name, request: "POST /v1/connections", body: body, status: 400, code: "invalid_request", pointers: []string{pointer}}
	}
	runScenarios(t, []scenario{
		{name: "32 secrets of 256 KiB together", request: "POST /v1/connections", body: customKeys(times(32, 8*kib)...), status: 201, audit: "connection.created"},
		{name: "secrets of 64 KiB", request: "POST /v1/connections", body: customKeys(times(4, 64*kib)...), status: 201, audit: "connection.created"},
		rejected("33 secrets", customKeys(times(33, 8)...), "/fields/k32"),
		rejected("a secret longer than 64 KiB", customKeys(8, 64*kib+1), "/fields/k01"),
		rejected("secrets of more than 256 KiB together", customKeys(append(times(4, 64*kib), 8)...), "/fields/k04"),
		rejected("a longer field that is not secret",
			`{"name": "a", "auth": "basic", "fields": {"username": "`+strings.Repeat("x", 16*kib+1)+`", "password": "abcd"}, "definition": {"hosts": ["a.example"]}}`, "/fields/username"),
		{
			name: "a change that makes the secrets too long",
			setup: func(w *testWorkspace) {
				w.create("conn", "/v1/connections", customKeys(append(times(4, 60*kib), 8)...))
			}, request: "PATCH /v1/connections/$conn",
			body: `{"fields": {"k04": "` + strings.Repeat("y", 17*kib) + `"}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/k04"},
		},
	})
}

// Connections set the headers that steps can set.
func TestHeadersOfConnections(t *testing.T) {
	body := func(header, value string) string {
		return `{"name": "shop", "auth": "api_key", "fields": {"key": "s3cret"}, "definition": {"hosts": ["a.example"], "apply": {"headers": {"X-Key": "${{ secret.key }}", "` + header + `": "` + value + `"}}}}`
	}
	var scenarios []scenario
	for _, header := range []string{
		"Host", "content-length", "Connection", "Expect", "HTTP2-Settings", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "upgrade",
		"Proxy-Authorization", "proxy-connection", action.DepthHeader, "x-service-other", "X Key", "X-Käy", "x-key",
	} {
		scenarios = append(scenarios, scenario{
			name: header + " is rejected", request: "POST /v1/connections", body: body(header, "${{ secret.key }}"), status: 400, code: "invalid_request", pointers: []string{"/definition/apply/headers/" + header},
		})
	}
	for _, header := range []string{"Authorization", "Cookie", "api_key", "X-Proxy", "User-Agent", "Idempotency-Key"} {
		scenarios = append(scenarios, scenario{
			name: header + " is accepted", request: "POST /v1/connections", body: body(header, "v1 ${{ secret.key }}"), status: 201, audit: "connection.created",
		})
	}
	runScenarios(t, append(scenarios,
		scenario{
			name: "a line break", request: "POST /v1/connections", body: body("X-Other", `a\nb`), status: 400, code: "invalid_request", pointers: []string{"/definition/apply/headers/X-Other"},
		},
		scenario{
			name: "a change", setup: setupConnection, request: "PATCH /v1/connections/$conn", status: 400, code: "invalid_request", pointers: []string{"/definition/apply/headers/Host"},
			body: `{"fields": {"token": "another"}, "definition": {"hosts": ["a.example"], "apply": {"headers": {"Host": "${{ secret.token }}"}}}}`,
		},
	))
}

func TestDefinitionsThatCannotWork(t *testing.T) {
	basic := func(fields, definition string) string {
		return `{"name": "shop", "auth": "basic", "fields": ` + fields + `, "definition": {"hosts": ["a.example", "b.example:8443"]` + definition + `}}`
	}
	const ada = `{"username": "ada", "password": "s3cret"}`
	rejected := func(name, body, pointer string) scenario {
		return scenario{name: name, request: "POST /v1/connections", body: body, status: 400, code: "invalid_request", pointers: []string{pointer}}
	}
	accepted := func(name, body string) scenario {
		return scenario{name: name, request: "POST /v1/connections", body: body, status: 201, audit: "connection.created"}
	}
	long := func(length int) string {
		body := basic(ada, `, "test_url": "https://a.example/`)
		rest := len(body) - strings.Index(body, `{"hosts"`) - len("}}") + len(`"}`)
		return strings.Replace(body, "https://a.example/}}", "https://a.example/"+strings.Repeat("x", length-rest)+`"}}`, 1)
	}
	runScenarios(t, []scenario{
		accepted("a test on a host", basic(ada, `, "test_url": "https://B.example:8443/me"`)),
		rejected("a test on another host", basic(ada, `, "test_url": "https://c.example/me"`), "/definition/test_url"),
		rejected("a test on another port", basic(ada, `, "test_url": "https://a.example:8443/me"`), "/definition/test_url"),
		rejected("a test without TLS", basic(ada, `, "test_url": "http://a.example/me"`), "/definition/test_url"),
		rejected("a user name with a colon", basic(`{"username": "a:da", "password": "s3cret"}`, ""), "/fields/username"),
		accepted("a password with a colon", basic(`{"username": "ada", "password": "s3:ret"}`, "")),
		rejected("an applied user name with a colon", `{"name": "shop", "auth": "api_key", "fields": {"user": "a:da", "key": "s3cret"},
			"definition": {"hosts": ["a.example"], "apply": {"basic": {"user": "${{ secret.user }}", "password": "${{ secret.key }}"}}}}`, "/fields/user"),
		rejected("an applied user name with a literal colon", `{"name": "shop", "auth": "api_key", "fields": {"key": "s3cret"},
			"definition": {"hosts": ["a.example"], "apply": {"basic": {"user": "a:da", "password": "${{ secret.key }}"}}}}`, "/definition/apply/basic/user"),
		rejected("a user name that an expression gives a colon", `{"name": "shop", "auth": "api_key", "fields": {"key": "s3cret"},
			"definition": {"hosts": ["a.example"], "apply": {"basic": {"user": "${{ 'a:' + secret.key }}", "password": ""}}}}`, "/definition/apply/basic/user"),
		rejected("a user name with a colon at an integration",
			`{"name": "desk", "integration": "zendesk", "auth": "basic", "fields": {"subdomain": "acme", "email": "a:da@example.com", "token": "s3cret"}}`, "/fields/email"),
		{
			name: "a change of the user name", request: "PATCH /v1/connections/$conn", body: `{"fields": {"username": "a:da", "password": "s3cret"}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/username"},
			setup: func(w *testWorkspace) { w.create("conn", "/v1/connections", basic(ada, "")) },
		},
		accepted("a definition of 64 KiB", long(64<<10)),
		rejected("a longer definition", long(64<<10+1), "/definition"),
		{
			name: "a change to a longer definition", request: "PATCH /v1/connections/$conn", body: `{"fields": {"password": "s3cret"}, "definition": {"hosts": ["a.example"], "test_url": "https://a.example/` + strings.Repeat("x", 64<<10) + `"}}`,
			status: 400, code: "invalid_request", pointers: []string{"/definition"}, setup: func(w *testWorkspace) { w.create("conn", "/v1/connections", basic(ada, "")) },
		},
	})
}
