package fuzzapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// Problem is something that is wrong with a response. Problems of the same kind have
// the same cause, as far as can be told.
type Problem struct{ Kind, Text string }

func problem(kind, format string, args ...any) []Problem {
	return []Problem{{kind, fmt.Sprintf(format, args...)}}
}

// Checker checks responses.
type Checker struct {
	Document *Document
	Known    *Known
	// Secrets must not be in any response.
	Secrets []string
	// Paths are places on the disk of the server, which must not be in a response.
	Paths []string
}

// Check returns what is wrong with the response to a request.
func (c *Checker) Check(q *Request, a *Response) []Problem {
	if q.malformed() && isOwnReply(a) {
		return nil
	}
	op := c.Document.Find(q.Method, q.path())
	if op == nil && strings.HasPrefix(q.path(), "/hooks/") {
		op = c.Document.Find(http.MethodPost, q.path()) // its trigger allows methods
	}
	found := slices.Concat(c.checkStatus(q, a), c.checkLeaks(q, a), checkRequestID(a), c.checkTenant(q, a))
	if q.Raw != nil || op == nil {
		return append(found, c.checkUnknownRoute(q, a)...)
	}
	return append(found, c.checkOperation(op, q, a)...)
}

// ownStatuses are the statuses with which net/http rejects what is not valid HTTP.
var ownStatuses = []int{
	http.StatusBadRequest, http.StatusExpectationFailed, http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported,
}

// isOwnReply reports whether net/http responded in place of the service.
func isOwnReply(a *Response) bool {
	return a.Header.Get("X-Request-Id") == "" && slices.Contains(ownStatuses, a.Status)
}

// checkStatus rejects all 5xx, except that the service may be busy and that the run
// behind a hook may fail.
func (c *Checker) checkStatus(q *Request, a *Response) []Problem {
	switch {
	case a.Status < 500:
		return nil
	case a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
		return nil
	case strings.HasPrefix(q.path(), "/hooks/") && code(a) == "run_failed":
		return nil
	}
	return problem("server error", "status %d: %.1000s", a.Status, a.Body)
}

func checkRequestID(a *Response) []Problem {
	if !regexp.MustCompile(`^req_[0-9a-z]{26}$`).MatchString(a.Header.Get("X-Request-Id")) {
		return problem("request id", "X-Request-Id is %q", a.Header.Get("X-Request-Id"))
	}
	return nil
}

// leaks match what belongs into the log and not into a response.
var leaks = regexp.MustCompile(`goroutine \d+ \[|runtime error:|runtime\.gopanic|panic\(|[a-z_]+\.go:\d+|SQLITE_|SQLSTATE|sqlite3?:|constraint failed|no such (table|column)|syntax error at or near|<nil>|%!\w\(|0xc0[0-9a-f]{8}`)

// checkLeaks looks for texts that the request did not contain.
func (c *Checker) checkLeaks(q *Request, a *Response) []Problem {
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/javascript") {
		return nil // a file of the dashboard
	}
	sent := string(q.Body) + q.Target + string(q.Raw)
	if leak := leaks.Find(a.Body); leak != nil && !strings.Contains(sent, string(leak)) {
		return problem("leak", "the response contains %q: %.1000s", leak, a.Body)
	}
	for _, path := range c.Paths {
		if bytes.Contains(a.Body, []byte(path)) {
			return problem("leaked path", "the response contains %q: %.1000s", path, a.Body)
		}
	}
	for _, secret := range c.Secrets {
		if bytes.Contains(a.Body, []byte(secret)) && !strings.Contains(sent, secret) {
			return problem("leaked secret", "the response contains %q: %.1000s", secret, a.Body)
		}
	}
	return nil
}

var idInPath = regexp.MustCompile(`(wf|run|wh|key|dlv|inv)_[0-7][0-9a-hjkmnp-tv-z]{25}`)

// checkTenant checks that a key cannot reach what belongs to another workspace.
func (c *Checker) checkTenant(q *Request, a *Response) []Problem {
	if a.Status >= http.StatusMultipleChoices || q.As == nil || q.As.Session || !strings.HasPrefix(q.path(), "/v1/") {
		return nil
	}
	if q.Raw != nil && isPage(a) {
		return nil // it can be for another path
	}
	for _, id := range idInPath.FindAllString(q.path(), -1) {
		if owner := c.Known.owner(id); owner != "" && owner != q.As.Workspace {
			return problem("tenant", "%s reached %s of workspace %s: %.1000s", q.As.Name, id, owner, a.Body)
		}
	}
	return nil
}

// isPage reports whether a response is an HTML page, such as one of the dashboard.
func isPage(a *Response) bool { return strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") }

// checkUnknownRoute checks the response to a path or a method that is not documented,
// and to a request whose operation is not certain.
func (c *Checker) checkUnknownRoute(q *Request, a *Response) []Problem {
	if a.Status < http.StatusBadRequest {
		if isPage(a) || len(q.Raw) > 0 {
			return nil // a page of the dashboard, or the operation after all
		}
		isAPI := strings.HasPrefix(q.path(), "/v1/") || strings.HasPrefix(q.path(), "/ui/v1/")
		if a.Status == http.StatusNotModified && !isAPI {
			return nil // a page of the dashboard that the client has
		}
		return problem("undeclared route", "%s %.200s is not documented, but returned %d", q.Method, q.Target, a.Status)
	}
	if path, err := url.PathUnescape(q.path()); err == nil && strings.HasPrefix(path, "/approve/") {
		return nil // an HTML page
	}
	return c.checkError(q, a, nil)
}

// checkOperation checks the response against the document.
func (c *Checker) checkOperation(op *Operation, q *Request, a *Response) []Problem {
	declared := c.declared(op, q, a)
	if declared.value == nil {
		return problem("undeclared status", "status %d is not declared for %s: %.1000s", a.Status, op.ID, a.Body)
	}
	found := slices.Concat(checkHeaders(declared, a), checkBody(declared, q, a))
	if a.Status >= http.StatusBadRequest && declared.At("content", "application/json").value != nil {
		found = append(found, c.checkError(q, a, declared.At("x-error-codes").strings())...)
	}
	return found
}

// declared returns the declared response. Two errors differ below /ui/v1, where the
// document lists only what is not below /v1.
func (c *Checker) declared(op *Operation, q *Request, a *Response) Node {
	if strings.HasPrefix(q.path(), "/ui/v1") && !op.SessionOnly {
		switch code(a) {
		case "unauthorized":
			return c.Document.at("components", "responses", "NotSignedIn")
		case "cross_origin":
			return c.Document.at("components", "responses", "CrossOrigin")
		}
		if q.Method == http.MethodHead && (a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden) {
			return c.Document.at("components", "responses", "NotSignedIn") // there is no body with the code
		}
	}
	return op.node.At("responses", strconv.Itoa(a.Status))
}

func checkHeaders(declared Node, a *Response) []Problem {
	var found []Problem
	for name := range declared.At("headers").members() {
		spec := declared.At("headers", name)
		values := a.Header.Values(name)
		switch {
		case len(values) == 0 && spec.At("required").value == true:
			found = append(found, problem("header", "header %s is missing from status %d", name, a.Status)...)
		case len(values) > 1:
			found = append(found, problem("header", "header %s is there %d times", name, len(values))...)
		case len(values) == 1:
			if err := spec.At("schema").Validate(typed(spec.At("schema"), values[0])); err != nil {
				found = append(found, problem("header", "header %s: %q: %v", name, values[0], err)...)
			}
		}
	}
	return found
}

// typed converts a header to the type of its schema.
func typed(schema Node, text string) any {
	switch kind := schema.At("type").text(); {
	case kind == "boolean" && (text == "true" || text == "false"):
		return text == "true"
	case kind == "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return text
}

func checkBody(declared Node, q *Request, a *Response) []Problem {
	content := declared.At("content")
	if q.Method == http.MethodHead || len(content.members()) == 0 {
		if len(a.Body) > 0 {
			return problem("body", "status %d has no body, but there is one: %.1000s", a.Status, a.Body)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || content.At(media).value == nil {
		return problem("content type", "content type %q is not declared for status %d", a.Header.Get("Content-Type"), a.Status)
	}
	if a.Stream {
		return checkEvents(content.At(media, "x-sse-events"), a.Body)
	}
	if media != "application/json" && content.At(media, "schema", "type").text() == "string" {
		return nil
	}
	value, err := decode(media, a.Body)
	if err != nil {
		return problem("body", "the body is not %s: %v: %.1000s", media, err, a.Body)
	}
	if err := content.At(media, "schema").Validate(value); err != nil {
		return problem("body", "the body of status %d does not match its schema: %v: %.2000s", a.Status, err, a.Body)
	}
	return nil
}

func decode(media string, body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, fmt.Errorf("invalid UTF-8")
	}
	if media == "application/yaml" {
		var value any
		if err := yaml.Unmarshal(body, &value); err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		body = text
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(body))
}

// checkEvents checks the complete events at the beginning of a stream.
func checkEvents(declared Node, stream []byte) []Problem {
	events := strings.Split(string(stream), "\n\n")
	for _, event := range events[:len(events)-1] {
		name, data := "", ""
		for line := range strings.SplitSeq(event, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "event":
				name = value
			case "data":
				data = value
			}
		}
		schema := declared.At(name, "data")
		if name == "" || schema.value == nil {
			continue // a heartbeat, or an event that was added later
		}
		value, err := decode("application/json", []byte(data))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			return problem("event", "event %s does not match its schema: %v: %.1000s", name, err, event)
		}
	}
	return nil
}

type errorBody struct {
	Error struct {
		Code, Message string
		RequestID     string `json:"request_id"`
	}
}

func code(a *Response) string {
	var body errorBody
	_ = json.Unmarshal(a.Body, &body) // without an error there is no code
	return body.Error.Code
}

func message(a *Response) string {
	var body errorBody
	_ = json.Unmarshal(a.Body, &body) // without an error there is no message
	return body.Error.Message
}

// checkError checks that a response is an error in the format of the API. If codes are
// given, it has one of them.
func (c *Checker) checkError(q *Request, a *Response, codes []string) []Problem {
	if q.Method == http.MethodHead {
		return nil
	}
	value, err := decode("application/json", a.Body)
	if err == nil {
		err = c.Document.at("components", "schemas", "Error").Validate(value)
	}
	if err != nil {
		return problem("error format", "status %d is not an error of the API: %v: %.1000s", a.Status, err, a.Body)
	}
	var body errorBody
	_ = json.Unmarshal(a.Body, &body) // it is valid
	switch e := body.Error; {
	case e.RequestID != a.Header.Get("X-Request-Id"):
		return problem("request id", "request_id is %q, X-Request-Id %q", e.RequestID, a.Header.Get("X-Request-Id"))
	case c.Document.codes[e.Code] != a.Status:
		return problem("error code", "code %q does not have status %d: %.1000s", e.Code, a.Status, a.Body)
	case codes != nil && !slices.Contains(codes, e.Code):
		return problem("error code", "code %q is not declared for status %d, only %v: %.1000s", e.Code, a.Status, codes, a.Body)
	case strings.TrimSpace(e.Message) == "" || strings.ContainsFunc(e.Message, unicode.IsControl):
		return problem("error message", "the message is not readable: %.1000s", a.Body)
	}
	return nil
}
