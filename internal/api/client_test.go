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

// client sends requests with one key, and fails the test when an answer is not
// what the published document promises.
type client struct {
	t      *testing.T
	server *server
	key    string // "" for none
	token  string // of a session; "" for none
	// loose accepts what the schema of a request is too strict for.
	loose bool
}

// on returns the client for use in a subtest.
func (c client) on(t *testing.T) client {
	c.t = t
	return c
}

// answer is a response with its request.
type answer struct {
	t       *testing.T
	server  *server
	request *http.Request
	sent    string
	loose   bool
	status  int
	header  http.Header
	body    []byte
}

// call sends a request. Headers are given as pairs of name and value; an empty
// value takes a header away.
func (c client) call(method, path, body string, headers ...string) *answer {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.server.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
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

// send sends a request as it is and checks what every answer has in common.
func (c client) send(request *http.Request, sent string) *answer {
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

// exchange sends a request and reads its answer. It is safe for use in other
// goroutines than the test's.
func (c client) exchange(request *http.Request, sent string) (*answer, error) {
	response, err := c.server.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	a := &answer{t: c.t, server: c.server, request: request, sent: sent, loose: c.loose, status: response.StatusCode, header: response.Header}
	if a.streamed() {
		return a, nil // it would not end
	}
	a.body, err = io.ReadAll(response.Body)
	return a, err
}

// streamed tells that the answer is a stream, of which nothing was read.
func (a *answer) streamed() bool { return a.header.Get("Content-Type") == "text/event-stream" }

// check holds the answer against the document and against the promises made
// for every response.
func (a *answer) check() error {
	errs := []error{published().check(a)}
	if a.status >= http.StatusInternalServerError {
		errs = append(errs, fmt.Errorf("the service failed: %d %s", a.status, a.body))
	}
	for name, want := range map[string]string{
		"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                a.caching(),
	} {
		if got := a.header.Get(name); got != want {
			errs = append(errs, fmt.Errorf("header %s is %q, want %q", name, got, want))
		}
	}
	for _, name := range []string{"Access-Control-Allow-Origin", "Set-Cookie", "Server"} {
		if name == "Set-Cookie" && published().sessionRoute(a) {
			continue // the document says which of them set one
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

// caching is what may be kept of an answer: the documents that are the same for
// everybody, nothing else.
func (a *answer) caching() string {
	documents := []string{"/v1/openapi.yaml", "/v1/openapi.json", "/v1/schemas/workflow.json"}
	if a.status < http.StatusBadRequest && slices.Contains(documents, strings.TrimPrefix(a.request.URL.Path, "/ui")) {
		return "no-cache"
	}
	return "no-store"
}

func (a *answer) checkError() error {
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

// code is the code of an error, "" for a success.
func (a *answer) code() string {
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &body) // a body of another form has no code
	return body.Error.Code
}

// want fails the test unless the answer has the status and, when it is an
// error, the code.
func (a *answer) want(status int, code ...string) *answer {
	a.t.Helper()
	if a.status != status || len(code) == 1 && a.code() != code[0] {
		a.t.Fatalf("%s %s: got %d %.600s, want %d %s", a.request.Method, a.request.URL, a.status, a.body, status, strings.Join(code, ""))
	}
	return a
}

// json returns the body decoded.
func (a *answer) json() any {
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
func (a *answer) object() map[string]any {
	a.t.Helper()
	object, ok := a.json().(map[string]any)
	if !ok {
		a.t.Fatalf("%s %s: not an object: %s", a.request.Method, a.request.URL, a.body)
	}
	return object
}

// text returns a member of the body that is text.
func (a *answer) text(name string) string {
	a.t.Helper()
	text, ok := a.object()[name].(string)
	if !ok {
		a.t.Fatalf("%s %s: %s is not text: %s", a.request.Method, a.request.URL, name, a.body)
	}
	return text
}

// items returns the data of a list.
func (a *answer) items() []map[string]any {
	a.t.Helper()
	data, _ := a.object()["data"].([]any)
	out := make([]map[string]any, len(data))
	for i, item := range data {
		out[i], _ = item.(map[string]any)
	}
	return out
}

// column returns one member of each item of a list, as text.
func (a *answer) column(name string) []string {
	a.t.Helper()
	var out []string
	for _, item := range a.items() {
		out = append(out, fmt.Sprint(item[name]))
	}
	return out
}

// message is the sentence of an error.
func (a *answer) message() string {
	a.t.Helper()
	failure, _ := a.object()["error"].(map[string]any)
	text, _ := failure["message"].(string)
	return text
}

// eventually asks again and again until the answer is yes.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// splitCall cuts "GET /path" in two.
func splitCall(call string) (method, path string) {
	method, path, _ = strings.Cut(call, " ")
	return method, path
}
