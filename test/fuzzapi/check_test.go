package fuzzapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/fuzzapi"
	"github.com/stepmill/stepmill/test/harness"
)

const (
	requestID = "req_01m7fcp3qae35rw9hmckwyqppc"
	validList = `{"data": [], "next_cursor": null}`
)

func envelope(code string) string {
	return fmt.Sprintf(`{"error": {"code": %q, "message": "m", "request_id": %q}}`, code, requestID)
}

// respond returns a server that sends one response, with the headers of a response of
// the service unless they are overridden.
func respond(t *testing.T, status int, body string, headers ...string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Request-Id", requestID)
		for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
			h.Set(name, "1")
		}
		for i := 0; i+1 < len(headers); i += 2 {
			if h.Del(headers[i]); headers[i+1] != "" {
				h.Set(headers[i], headers[i+1])
			}
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	t.Cleanup(server.Close)
	return server
}

func newChecker(t *testing.T) *fuzzapi.Checker {
	t.Helper()
	document, err := fuzzapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	known := fuzzapi.NewKnown("http://127.0.0.1:1")
	known.Learn("other", []byte(`{"id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`))
	return &fuzzapi.Checker{Document: document, Known: known, Secrets: []string{"canary-1"}, Paths: []string{"/data/stepmill"}}
}

// TestChecks feeds responses to the checks, most of which the service must not send.
func TestChecks(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	for name, tc := range map[string]struct {
		method, target string
		status         int
		body           string
		headers        []string
		want           string // the kind of the first problem
	}{
		"valid":                    {status: 200, body: validList},
		"valid error":              {status: 401, body: envelope("unauthorized"), headers: []string{"WWW-Authenticate", "Bearer"}},
		"busy":                     {status: 503, body: envelope("unavailable"), headers: []string{"Retry-After", "1"}},
		"unknown path":             {target: "/v1/nothing", status: 404, body: envelope("not_found")},
		"failed run of a hook":     {method: "POST", target: "/hooks/x", status: 500, body: envelope("run_failed")},
		"busy without Retry-After": {status: 503, body: envelope("unavailable"), want: "server error"},
		"internal error":           {status: 500, body: envelope("internal_error"), want: "server error"},
		"undeclared status":        {status: 418, body: envelope("not_found"), want: "undeclared status"},
		"undeclared route":         {target: "/v1/nothing", status: 200, body: validList, want: "undeclared route"},
		"page in the cache":        {target: "/ui;x", status: 304},
		"undeclared cached route":  {target: "/v1/nothing", status: 304, want: "undeclared route"},
		"the same with a session":  {target: "/ui/v1/nothing", status: 304, want: "undeclared route"},
		"undeclared method":        {method: "PUT", status: 200, body: validList, want: "undeclared route"},
		"body of another schema":   {status: 200, body: `{"data": {}}`, want: "body"},
		"body that is not JSON":    {status: 200, body: `{"data": [}`, want: "body"},
		"invalid UTF-8":            {status: 200, body: "{\"data\": [], \"next_cursor\": \"\xff\"}", want: "body"},
		"another content type":     {status: 200, body: validList, headers: []string{"Content-Type", "text/plain"}, want: "content type"},
		"missing header":           {status: 200, body: validList, headers: []string{"X-RateLimit-Limit", ""}, want: "header"},
		"header of another type":   {status: 200, body: validList, headers: []string{"X-RateLimit-Limit", "many"}, want: "header"},
		"no request id":            {status: 200, body: validList, headers: []string{"X-Request-Id", ""}, want: "request id"},
		"malformed error":          {status: 400, body: `{"message": "m"}`, want: "body"},
		"malformed unknown error":  {target: "/v1/nothing", status: 404, body: "404 page not found", want: "error format"},
		"another request id":       {status: 400, body: strings.Replace(envelope("invalid_request"), requestID, "req_2", 1), want: "request id"},
		"unknown error code":       {status: 400, body: envelope("oops"), want: "error code"},
		"code of another status":   {status: 400, body: envelope("not_found"), want: "error code"},
		"code of another route":    {status: 404, target: "/v1/runs/x", body: envelope("webhook_not_found"), want: "error code"},
		"empty message":            {status: 400, body: strings.Replace(envelope("invalid_request"), `"m"`, `" "`, 1), want: "error message"},
		"stack trace":              {status: 400, body: strings.Replace(envelope("invalid_request"), `"m"`, `"goroutine 7 [running]: main.go:12"`, 1), want: "leak"},
		"database error":           {status: 400, body: strings.Replace(envelope("invalid_request"), `"m"`, `"sqlite: constraint failed"`, 1), want: "leak"},
		"formatting mistake":       {status: 400, body: strings.Replace(envelope("invalid_request"), `"m"`, `"at %!d(string=x)"`, 1), want: "leak"},
		"secret":                   {status: 400, body: strings.Replace(envelope("invalid_request"), `"m"`, `"canary-1"`, 1), want: "leaked secret"},
		"path on the disk":         {status: 400, body: strings.Replace(envelope("invalid_request"), `"m"`, `"open /data/stepmill/x"`, 1), want: "leaked path"},
		"another workspace":        {target: "/v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/versions", status: 200, body: validList, want: "tenant"},
		"malformed request id":     {method: "DELETE", target: "/v1/webhooks/x", status: 204, headers: []string{"X-Request-Id", "x"}, want: "request id"},
		"plain text from net/http": {status: 400, body: "400 Bad Request", headers: []string{"Content-Type", "text/plain", "X-Request-Id", ""}, want: "request id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sender := fuzzapi.NewSender(respond(t, tc.status, tc.body, tc.headers...).URL)
			t.Cleanup(sender.Close)
			q := &fuzzapi.Request{As: &fuzzapi.Identity{Name: "admin", Workspace: "first"}, Method: "GET", Target: "/v1/workflows"}
			if tc.method != "" {
				q.Method = tc.method
			}
			if tc.target != "" {
				q.Target = tc.target
			}
			response, err := sender.Send(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			found := checker.Check(q, response)
			switch {
			case tc.want == "" && len(found) > 0:
				t.Errorf("found %v", found)
			case tc.want != "" && (len(found) == 0 || found[0].Kind != tc.want):
				t.Errorf("found %v, want %s", found, tc.want)
			}
		})
	}
}

// TestMalformedRequestsMayBeRejectedByNetHTTP checks that only requests that are not
// valid HTTP may get a plain response.
func TestMalformedRequestsMayBeRejectedByNetHTTP(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	plain := &fuzzapi.Response{Status: 400, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("400 Bad Request")}
	for target, malformed := range map[string]bool{"/v1/workflows": false, "/v1/workflows?a b=c": true, "/v1/%zz": true} {
		q := &fuzzapi.Request{Method: "GET", Target: target}
		if found := checker.Check(q, plain); (len(found) == 0) != malformed {
			t.Errorf("%s: found %v", target, found)
		}
	}
}

// TestStreamedEvents checks events of a stream against their schemas.
func TestStreamedEvents(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	q := &fuzzapi.Request{As: &fuzzapi.Identity{Workspace: "first"}, Method: "GET", Target: "/v1/runs/run_x/events"}
	for data, valid := range map[string]bool{`{"reason": "finished"}`: true, `{"reason": "x"}`: false, `{`: false} {
		sender := fuzzapi.NewSender(respond(t, 200, "event: end\ndata: "+data+"\n\nevent: st", "Content-Type", "text/event-stream").URL)
		response, err := sender.Send(t.Context(), q)
		if err != nil || !response.Stream {
			t.Fatalf("%+v %v", response, err)
		}
		sender.Close()
		if found := checker.Check(q, response); (len(found) == 0) != valid {
			t.Errorf("%s: found %v", data, found)
		}
	}
}

// TestFuzzerReportsTheSmallestRequest runs the fuzzer against a server that fails if a
// body has a certain member.
func TestFuzzerReportsTheSmallestRequest(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	checker.Document.Operations = slices.DeleteFunc(checker.Document.Operations, func(op *fuzzapi.Operation) bool { return op.ID != "createWorkflow" })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 64<<10)
		n, _ := r.Body.Read(body)
		w.Header().Set("X-Request-Id", requestID)
		if r.URL.Path == "/v1/workflows" && strings.Contains(string(body[:n]), `"description"`) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	sender := fuzzapi.NewSender(server.URL)
	t.Cleanup(sender.Close)
	as := &fuzzapi.Identity{Name: "admin", Workspace: "first", Credential: func() fuzzapi.Field { return fuzzapi.Field{Name: "Authorization", Value: "Bearer k"} }}
	var smallest *fuzzapi.Request
	fuzzer := &fuzzapi.Fuzzer{Checker: checker, Sender: sender, Identities: []*fuzzapi.Identity{as}, Report: func(p fuzzapi.Problem, q *fuzzapi.Request) {
		if p.Kind == "server error" {
			smallest = q
		}
	}}
	left := 20_000
	fuzzer.Run(t.Context(), harness.Random(1, 0), func() bool { left--; return left > 0 && smallest == nil })
	if smallest == nil {
		t.Fatal("the failure was not found")
	}
	if len(smallest.Header) > 0 || len(smallest.Body) > len(`{"description":"x"}`) {
		t.Errorf("the request could be smaller: %s", smallest.Curl(server.URL))
	}
}

func TestCurl(t *testing.T) {
	t.Parallel()
	q := &fuzzapi.Request{Method: "POST", Target: "/v1/x?a=%20", Header: []fuzzapi.Field{{Name: "A", Value: "it's"}, {Name: "Content-Type", Value: "text/plain"}}, Body: []byte("a\xff'")}
	want := `curl -sS -i --path-as-is -X POST 'http://h:1/v1/x?a=%20' -H 'A: it'\''s' -H 'Content-Type: text/plain' --data-binary $'a\xff\''`
	if got := q.Curl("http://h:1"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	q = &fuzzapi.Request{Method: "GET", Target: "/a b"}
	want = `printf $'GET /a b HTTP/1.1\x0d\x0aHost: localhost\x0d\x0a\x0d\x0a' | nc -q 5 h 1`
	if got := q.Curl("http://h:1"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
