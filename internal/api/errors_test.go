package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/fault"
)

func TestErrorCodesAreDocumented(t *testing.T) {
	t.Parallel()
	want := map[string]int{}
	for code, status := range fault.Codes() {
		want[string(code)] = status
	}
	if diff := cmp.Diff(want, published().codes); diff != "" {
		t.Errorf("x-error-codes (-in the program +in the document):\n%s", diff)
	}
	for code, status := range want {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(code) || status < 400 || fault.Code(code).Status() != status {
			t.Errorf("code %q has status %d", code, status)
		}
	}
}

// An error has a code, a message and the request id, and details if there are
// several problems.
func TestErrorEnvelope(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep)
	w.workflow("active")
	w.patch("active", `{"state": "active"}`)
	w.workflow("paused")
	w.patch("paused", `{"state": "paused"}`)
	w.runToEnd("run", "wf", "")
	reader := w.withScopes("read")
	w.call("POST", "/v1/workflows", `{"name": "a"}`, "Idempotency-Key", "envelope").wantStatus(201)
	large := `{"name": "` + strings.Repeat("x", 4<<20) + `"}`

	for _, tc := range []struct {
		call, body string
		headers    []string
		status     int
		code       string
		details    bool
	}{
		{"POST /v1/workflows", `{`, nil, 400, "invalid_json", false},
		{"POST /v1/workflows", `{"nmae": 1}`, nil, 400, "invalid_request", true},
		{"GET /v1/workflows?limit=0", "", nil, 400, "invalid_request", false},
		{"GET /v1/workflows?cursor=x", "", nil, 400, "invalid_cursor", false},
		{"GET /v1/workflows", "", []string{"Authorization", ""}, 401, "unauthorized", false},
		{"POST /v1/workflows", `{"name": "a"}`, []string{"Authorization", "Bearer " + reader.key}, 403, "insufficient_scope", false},
		{"GET /v1/workflows/none", "", nil, 404, "workflow_not_found", false},
		{"GET /v1/nothing", "", nil, 404, "not_found", false},
		{"PUT /v1/workflows", "", nil, 405, "method_not_allowed", false},
		{"DELETE /v1/workflows/$active", "", nil, 409, "workflow_active", false},
		{"POST /v1/workflows/$paused/runs", "", nil, 409, "workflow_paused", false},
		{"POST /v1/runs/$run/cancel", "", nil, 409, "run_not_running", false},
		{"PATCH /v1/workflows/$wf", `{}`, []string{"If-Match", `"0"`}, 412, "version_conflict", false},
		{"POST /v1/workflows", large, nil, 413, "payload_too_large", false},
		{"POST /v1/workflows", `{}`, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", false},
		{"PATCH /v1/workflows/$wf", `{"steps": [{"id": "a", "uses": "b.c"}]}`, nil, 422, "workflow_invalid", true},
		{"POST /v1/webhooks", `{"url": "http://10.0.0.1", "events": ["run.failed"]}`, nil, 422, "webhook_url_not_allowed", true},
		{"POST /v1/workflows", `{"name": "b"}`, []string{"Idempotency-Key", "envelope"}, 422, "idempotency_key_reused", false},
	} {
		t.Run(fmt.Sprintf("%d %s", tc.status, tc.code), func(t *testing.T) {
			method, path := splitCall(tc.call)
			a := w.withT(t).call(method, path, tc.body, tc.headers...).wantStatus(tc.status, tc.code)
			wantKeys(t, a.object(), "error")
			keys := "code message request_id"
			if tc.details {
				keys += " details"
			}
			wantKeys(t, a.object()["error"].(map[string]any), keys)
			if tc.details {
				for _, detail := range a.object()["error"].(map[string]any)["details"].([]any) {
					wantKeys(t, detail.(map[string]any), "pointer message")
				}
			}
			if !regexp.MustCompile(`^req_[0-9a-z]{26}$`).MatchString(a.header.Get("X-Request-Id")) {
				t.Errorf("the request id is %q", a.header.Get("X-Request-Id"))
			}
			if got := a.header.Get("WWW-Authenticate"); (got == "Bearer") != (tc.status == 401) {
				t.Errorf("WWW-Authenticate is %q", got)
			}
			if got := a.header.Get("Retry-After"); got != "" {
				t.Errorf("Retry-After is %q", got)
			}
		})
	}
}

// Unknown paths and methods get an error like any other.
func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/workflows", "/v1/nothing", "/v1/workflows/", "/v1/workflows/$wf/", "/v1/workflows/$wf/nothing", "//v1/workflows", "/v1//workflows",
		"/v1/./workflows", "/v1/../v1/workflows", "/v1/workflows/..", "/v1/workflows/../api-keys", "/v1/%2e%2e/v1/workflows", "/v1/workflows/%2e%2e/api-keys",
		"/v1/workflows/%2E", "/v1/workflows%2f$wf", "/v1/workflows/$wf%2fruns/x/y", "/v1/workflows/a%2f%2fb", "/V1/workflows", "/v1/Workflows", "/healthz/", "/healthz/x", "/v1/workflows;x", "/v1/workflows/..;/api-keys",
		"/metrics", "/debug/pprof/", "/debug/vars", "/configs", "/.git/config", "/ui/v2/workflows", "/hooks/x", "/v1/health", "/v1/ready", "/v1/openapi", "/v1/openapi.yml",
	} {
		a := w.call("GET", path, "")
		if a.status != http.StatusNotFound || a.header.Get("Location") != "" || a.header.Get("Allow") != "" {
			t.Errorf("GET %s: got %d %s", path, a.status, a.body)
		}
	}
	for path, allow := range map[string]string{
		"/v1/workflows":                          "GET, HEAD, POST",
		"/v1/workflows/$wf":                      "GET, HEAD, PATCH, DELETE",
		"/v1/workflows/$wf/validate":             "POST",
		"/v1/workflows/$wf/versions/1":           "GET, HEAD",
		"/v1/workflows/$wf/versions/1/restore":   "POST",
		"/v1/runs/run_x/cancel":                  "POST",
		"/healthz":                               "GET, HEAD",
		"/v1/workflows/$wf/runs?unknown=ignored": "GET, HEAD, POST",
	} {
		for _, method := range []string{"PUT", "OPTIONS", "TRACE", "PROPFIND", "get", "QUERY"} {
			a := w.call(method, path, "").wantStatus(405, "method_not_allowed")
			if got := a.header.Get("Allow"); got != allow {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got, allow)
			}
		}
	}
}

// Without a key, responses do not reveal which paths below /v1 exist.
func TestUnauthenticatedPathsAreIndistinguishable(t *testing.T) {
	t.Parallel()
	anyone := sharedServer(t).anonymous(t)
	for _, call := range []string{"GET /v1/nothing", "PUT /v1/workflows", "GET /v1/workflows/none", "POST /v1/openapi.yaml", "GET /v1/..%2fhealthz", "OPTIONS /v1/workflows"} {
		method, path := splitCall(call)
		anyone.call(method, path, "").wantStatus(401, "unauthorized")
	}
	for _, call := range []string{"POST /", "GET /metrics", "GET /v2/workflows", "GET //v1/workflows", "GET /ui/v2/workflows"} {
		method, path := splitCall(call)
		anyone.call(method, path, "").wantStatus(404, "not_found")
	}
	anyone.call("DELETE", "/healthz", "").wantStatus(405, "method_not_allowed")
}

func TestHeadEqualsGetWithoutBody(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep)
	w.runToEnd("run", "wf", "")
	// Counts, durations and the last use of a key change between two requests.
	changes := map[string]bool{"/v1/usage": true, "/v1/workflows/$wf/runs": true, "/v1/api-keys": true}
	for _, path := range []string{
		"/v1/workflows", "/v1/workflows/$wf", "/v1/workflows/$wf/versions", "/v1/workflows/$wf/versions/1", "/v1/workflows/$wf/runs", "/v1/runs/$run", "/v1/webhooks",
		"/v1/api-keys", "/v1/workspaces", "/v1/usage", "/v1/audit", "/v1/nodes", "/v1/openapi.yaml", "/v1/openapi.json", "/healthz", "/readyz", "/v1/workflows/none", "/nothing",
	} {
		get, head := w.call("GET", path, ""), w.call("HEAD", path, "")
		if head.status != get.status || len(head.body) != 0 {
			t.Errorf("HEAD %s: got %d with %d bytes, want %d", path, head.status, len(head.body), get.status)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "ETag"} {
			if name == "Content-Length" && changes[path] {
				continue
			}
			if got, want := head.header.Get(name), get.header.Get(name); got != want {
				t.Errorf("HEAD %s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	w.call("HEAD", "/v1/workflows/$wf/validate", "").wantStatus(405)
}

// A request id from a client is neither used nor repeated in headers or logs.
func TestClientRequestIDsAreIgnored(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	seen := map[string]bool{}
	for range 20 {
		id := w.call("GET", "/v1/workflows", "", "X-Request-Id", "req_mine").wantStatus(200).header.Get("X-Request-Id")
		if seen[id] || id == "req_mine" {
			t.Errorf("the request id is %q", id)
		}
		seen[id] = true
	}
}
