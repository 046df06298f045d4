package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// client sends requests with one key and fails the test if a response does not
// match the OpenAPI document.
type client struct {
	t      *testing.T
	server *server
	key    string // "" for none
	token  string // session token; "" for none
	// lenient accepts requests that the schema would reject.
	lenient bool
}

// withT returns the client for use in a subtest.
func (c client) withT(t *testing.T) client {
	c.t = t
	return c
}

// response is a response with its request.
type response struct {
	t       *testing.T
	server  *server
	request *http.Request
	sent    string
	lenient bool
	status  int
	header  http.Header
	body    []byte
}

// streamsBody reports whether a route takes the bytes of a file.
func streamsBody(method, path string) bool {
	return method == http.MethodPost && strings.HasSuffix(path, "/v1/files") || (method == http.MethodPost || method == http.MethodPatch) && strings.Contains(path, "/files/uploads")
}

// mediaOf returns the content type of the bodies that a route takes.
func mediaOf(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	if streamsBody(method, path) {
		if strings.Contains(path, "/uploads") {
			return "application/offset+octet-stream"
		}
		return "application/octet-stream"
	}
	if strings.Contains(path, "/tables/") && strings.Contains(path, "/import") {
		return "text/csv"
	}
	return "application/json"
}

// call sends a request. Headers are pairs of name and value; an empty value
// removes a header.
func (c client) call(method, path, body string, headers ...string) *response {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.server.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", mediaOf(method, path))
	}
	if strings.Contains(path, "/files/uploads") {
		request.Header.Set("Tus-Resumable", "1.0.0")
		switch method {
		case http.MethodPost:
			request.Header.Set("Upload-Length", "10")
		case http.MethodPatch:
			request.Header.Set("Upload-Offset", "0")
		}
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.token != "" {
		request.Header.Set("Cookie", "__Host-stepmill="+c.token)
	}
	for i := 0; i < len(headers); i += 2 {
		if request.Header.Del(headers[i]); headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	return c.send(request, body)
}

// send sends a request unchanged and checks what every response must have.
func (c client) send(request *http.Request, sent string) *response {
	c.t.Helper()
	a, err := c.exchange(request, sent)
	if err != nil {
		c.t.Fatalf("%s %s: %v", request.Method, request.URL.Path, err)
	}
	if err := a.check(); err != nil {
		c.t.Errorf("%s %s: %v", request.Method, request.URL, err)
	}
	return a
}

// exchange sends a request and reads the response. It is safe for use in other
// goroutines.
func (c client) exchange(request *http.Request, sent string) (*response, error) {
	got, err := c.server.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	a := &response{t: c.t, server: c.server, request: request, sent: sent, lenient: c.lenient, status: got.StatusCode, header: got.Header}
	if a.isStream() {
		return a, nil // reading it would not end
	}
	a.body, err = io.ReadAll(got.Body)
	return a, err
}

// isStream reports whether the response is a stream, whose body was not read.
func (a *response) isStream() bool { return a.header.Get("Content-Type") == "text/event-stream" }

// check compares the response with the OpenAPI document and with the rules for
// every response.
func (a *response) check() error {
	errs := []error{published().check(a)}
	if a.status >= http.StatusInternalServerError {
		errs = append(errs, fmt.Errorf("the service failed: %d %s", a.status, a.body))
	}
	policy := "default-src 'none'; frame-ancestors 'none'"
	if a.header.Get("ETag") != "" && (strings.Contains(a.request.URL.Path, "/v1/files/") || a.isIcon()) { // the bytes of a file
		policy = "sandbox; " + policy
	}
	for name, want := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                a.cacheControl(),
	} {
		if got := a.header.Get(name); got != want {
			errs = append(errs, fmt.Errorf("header %s is %q, want %q", name, got, want))
		}
	}
	for _, name := range []string{"Access-Control-Allow-Origin", "Set-Cookie", "Server"} {
		if name == "Set-Cookie" && published().sessionRoute(a) {
			continue // the document lists the exceptions
		}
		if got := a.header.Get(name); got != "" {
			errs = append(errs, fmt.Errorf("header %s is %q, want none", name, got))
		}
	}
	if a.status >= http.StatusBadRequest && a.request.Method != http.MethodHead {
		errs = append(errs, a.checkError())
	}
	return errors.Join(errs...)
}

// cacheControl returns the expected Cache-Control header: only public documents
// and icons may be cached.
func (a *response) cacheControl() string {
	documents := []string{"/v1/openapi.yaml", "/v1/openapi.json", "/v1/schemas/workflow.json", "/v1/schemas/integration.json"}
	if a.status < http.StatusBadRequest && slices.Contains(documents, strings.TrimPrefix(a.request.URL.Path, "/ui")) {
		return "no-cache"
	}
	if a.status < http.StatusBadRequest && a.isIcon() {
		return "private, max-age=86400"
	}
	return "no-store"
}

// isIcon reports whether the request is about the icon of an integration.
func (a *response) isIcon() bool { return strings.HasSuffix(a.request.URL.Path, "/icon") }

func (a *response) checkError() error {
	var body struct {
		Error struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		return fmt.Errorf("the error is not JSON: %w: %s", err, a.body)
	}
	id := a.header.Get("X-Request-Id")
	switch {
	case a.header.Get("Content-Type") != "application/json":
		return fmt.Errorf("the content type of the error is %q", a.header.Get("Content-Type"))
	case body.Error.RequestID != id || id == "":
		return fmt.Errorf("the request id is %q in the body and %q in the header", body.Error.RequestID, id)
	case published().codes[body.Error.Code] != a.status:
		return fmt.Errorf("code %q is documented with status %d, not %d", body.Error.Code, published().codes[body.Error.Code], a.status)
	}
	return nil
}

// code returns the code of an error, or "" for a success.
func (a *response) code() string {
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &body) // a body of another form has no code
	return body.Error.Code
}

// wantStatus fails the test unless the response has the status and, for an
// error, the code.
func (a *response) wantStatus(status int, code ...string) *response {
	a.t.Helper()
	if a.status != status || len(code) == 1 && a.code() != code[0] {
		a.t.Fatalf("%s %s: got %d %.600s, want %d %s", a.request.Method, a.request.URL, a.status, a.body, status, strings.Join(code, ""))
	}
	return a
}

// json returns the decoded body.
func (a *response) json() any {
	a.t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		a.t.Fatalf("%s %s: %v: %s", a.request.Method, a.request.URL, err, a.body)
	}
	return value
}

// object returns the body, which must be an object.
func (a *response) object() map[string]any {
	a.t.Helper()
	object, ok := a.json().(map[string]any)
	if !ok {
		a.t.Fatalf("%s %s: not an object: %s", a.request.Method, a.request.URL, a.body)
	}
	return object
}

// str returns a string member of the body.
func (a *response) str(name string) string {
	a.t.Helper()
	text, ok := a.object()[name].(string)
	if !ok {
		a.t.Fatalf("%s %s: %s is not text: %s", a.request.Method, a.request.URL, name, a.body)
	}
	return text
}

// items returns the data of a list.
func (a *response) items() []map[string]any {
	a.t.Helper()
	data, _ := a.object()["data"].([]any)
	out := make([]map[string]any, len(data))
	for i, item := range data {
		out[i], _ = item.(map[string]any)
	}
	return out
}

// column returns one member of each item of a list, as strings.
func (a *response) column(name string) []string {
	a.t.Helper()
	var out []string
	for _, item := range a.items() {
		out = append(out, fmt.Sprint(item[name]))
	}
	return out
}

// pointers returns the pointers of an error's details.
func (a *response) pointers() []string {
	a.t.Helper()
	var out []string
	details, _ := a.object()["error"].(map[string]any)["details"].([]any)
	for _, detail := range details {
		out = append(out, fmt.Sprint(detail.(map[string]any)["pointer"]))
	}
	return out
}

// message returns the message of an error.
func (a *response) message() string {
	a.t.Helper()
	failure, _ := a.object()["error"].(map[string]any)
	text, _ := failure["message"].(string)
	return text
}

// eventually polls until the condition is true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// splitCall splits "GET /path".
func splitCall(call string) (method, path string) {
	method, path, _ = strings.Cut(call, " ")
	return method, path
}
