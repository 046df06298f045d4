package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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
