package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/transport"
)

// vector is a body that every route rejects.
type vector struct {
	name    string
	body    string
	headers []string
	status  int
	code    string
}

func malformed(name, body string) vector {
	return vector{name: name, body: body, status: http.StatusBadRequest, code: "invalid_json"}
}

func wrongShape(name, body string) vector {
	return vector{name: name, body: body, status: http.StatusBadRequest, code: "invalid_request"}
}

func mediaType(name, body string, headers ...string) vector {
	return vector{name: name, body: body, headers: headers, status: http.StatusUnsupportedMediaType, code: "unsupported_media_type"}
}

// vectors returns the bodies to send to every route that accepts, or could
// accept, a body.
func vectors() []vector {
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write([]byte(`{"name": "n"}`)) // a buffer takes everything
	_ = zip.Close()
	const plain = `{"name": "n"}`
	list := []vector{
		malformed("no JSON", "hello"),
		malformed("white space", " \n\t"),
		malformed("an object cut short", `{"name": "n"`),
		malformed("a text cut short", `{"name": "n`),
		malformed("single quotes", `{'name': 'n'}`),
		malformed("a key without quotes", `{name: "n"}`),
		malformed("a trailing comma", `{"name": "n",}`),
		malformed("a comment", `{"name": "n" /* c */}`),
		malformed("NaN", `{"name": NaN}`),
		malformed("a leading zero", `{"name": 01}`),
		malformed("hexadecimal", `{"name": 0x1}`),
		malformed("a byte order mark", "\xEF\xBB\xBF"+plain),
		malformed("UTF-16", "\xFF\xFE{\x00}\x00"),
		malformed("invalid UTF-8", "{\"name\": \"\xff\"}"),
		malformed("an overlong encoding", "{\"name\": \"\xc0\xaf\"}"),
		malformed("a surrogate in UTF-8", "{\"name\": \"\xed\xa0\x80\"}"),
		malformed("a lone surrogate escaped", `{"name": "\ud800"}`),
		malformed("a NUL", "{\"name\": \"a\x00b\"}"),
		malformed("a NUL after the end", plain+"\x00"),
		malformed("a raw line break in a text", "{\"name\": \"a\nb\"}"),
		malformed("an unknown escape", `{"name": "\x41"}`),
		malformed("a duplicate key", `{"name": "a", "name": "b"}`),
		malformed("a duplicate key written in another way", `{"name": "a", "n\u0061me": "b"}`),
		malformed("trailing data", plain+" "+plain),
		malformed("trailing text", plain+"x"),
		malformed("several lines", plain+"\n"+plain),
		malformed("XML", `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>`),
		wrongShape("null", "null"),
		wrongShape("an array", "[]"),
		wrongShape("an array of objects", "["+plain+"]"),
		wrongShape("a text", `"name"`),
		wrongShape("a number", "5"),
		wrongShape("a truth value", "true"),
		wrongShape("depth 10,000 of arrays", strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)),
		wrongShape("depth 10,000 of objects", strings.Repeat(`{"a":`, 10_000)+"1"+strings.Repeat("}", 10_000)),
		wrongShape("a key of 1 MiB", `{"`+strings.Repeat("k", 1<<20)+`": 1}`),
		wrongShape("20,000 keys", `{`+manyKeys(20_000)+`}`),
		wrongShape("a number of 100,000 digits", `{"number": `+strings.Repeat("9", 100_000)+`}`),
		wrongShape("a million elements", "["+strings.Repeat("0,", 999_999)+"0]"),
		wrongShape("a key with tildes at the cut", `{"`+strings.Repeat("~", 300)+`": 1}`),
		wrongShape("a key with wide characters at the cut", `{"x`+strings.Repeat("😀", 200)+`": 1}`),
		wrongShape("a key with a NUL", `{"a\u0000b": 1}`),
		wrongShape("prototype pollution", `{"__proto__": {"admin": true}, "constructor": {"prototype": {}}}`),
		mediaType("no media type", plain, "Content-Type", ""),
		mediaType("compressed", zipped.String(), "Content-Encoding", "gzip"),
		mediaType("said to be compressed", plain, "Content-Encoding", "gzip"),
		mediaType("compressed twice", plain, "Content-Encoding", "gzip, identity"),
		mediaType("an unknown encoding", plain, "Content-Encoding", "br"),
	}
	for _, media := range []string{
		"text/plain", "text/json", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/octet-stream", "text/html", "*/*",
		"application/json; charset=iso-8859-1", "application/json; charset=utf-16", "application/jsonx", "application/vnd.api+json", "application/json, text/plain", "json", ";", "application/json; =",
	} {
		list = append(list, mediaType("the media type "+media, plain, "Content-Type", media))
	}
	for _, field := range []string{"id", "workspace_id", "created_at", "updated_at", "deleted_at", "version_", "revision", "first", "secret", "Name", "NAME", "name ", " name", "na\u200bme", "ñame", ""} {
		key, _ := json.Marshal(field)
		list = append(list, wrongShape(fmt.Sprintf("the unknown member %q", field), `{`+string(key)+`: "x"}`))
	}
	return list
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":0`, i)
	}
	return strings.Join(keys, ",")
}

// writes reports whether a route can change something.
func writes(r transport.Route) bool { return r.Method != http.MethodGet }

// newServerWithData starts a server with one object of each kind, which
// requests must not change.
func newServerWithData(t *testing.T) (*server, *testWorkspace) {
	t.Helper()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	createOneOfEach(w)
	return s, w
}

// authorizedClient returns a client that may call the route.
func authorizedClient(w *testWorkspace, route transport.Route) client {
	if operatorOnly[routeName(route)] {
		return w.server.operator(w.t)
	}
	return w.client
}

// Every route rejects invalid bodies in the same way, without any effect.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	s, w := newServerWithData(t)
	before := s.tableContents(t)
	all := vectors()
	for _, route := range routes() {
		if !writes(route) || mediaOf(route.Method, route.Path) != "application/json" {
			continue
		}
		t.Run(routeName(route), func(t *testing.T) {
			id, _, _, _ := collection(route)
			c := authorizedClient(w.withT(t), route)
			for _, v := range all {
				if v.code == "invalid_request" && strings.HasPrefix(route.Path, "/v1/integrations") && route.Method != http.MethodDelete && strictjson.DecodeBody([]byte(v.body), &map[string]json.RawMessage{}) == nil {
					v.status, v.code = http.StatusUnprocessableEntity, "integration_invalid" // the body is a document
				}
				if v.status == http.StatusBadRequest && routeName(route) == "POST /v1/integrations/from-openapi" {
					v.status, v.code = http.StatusUnprocessableEntity, "integration_invalid" // of any document
				}
				a := c.call(route.Method, w.expand(routePath(route, id)), v.body, v.headers...)
				if a.status != v.status || a.code() != v.code {
					t.Errorf("%s: got %d %.300s, want %d %s", v.name, a.status, a.body, v.status, v.code)
				}
				if len(a.body) > 16<<10 {
					t.Errorf("%s: the response has %d bytes", v.name, len(a.body))
				}
			}
		})
	}
	if diff := cmp.Diff(before, s.tableContents(t)); diff != "" {
		t.Errorf("the store changed (-before +after):\n%s", diff)
	}
}

// An empty body is rejected where one is required.
func TestMissingBodies(t *testing.T) {
	t.Parallel()
	s, w := newServerWithData(t)
	before := s.tableContents(t)
	for _, route := range routes() {
		if body := published().root().at("paths", route.Path, strings.ToLower(route.Method), "requestBody", "required"); body.value != true || mediaOf(route.Method, route.Path) != "application/json" {
			continue
		}
		id, _, _, _ := collection(route)
		authorizedClient(w, route).call(route.Method, w.expand(routePath(route, id)), "").wantStatus(400, "invalid_json")
		authorizedClient(w, route).call(route.Method, w.expand(routePath(route, id)), "", "Content-Type", "application/json").wantStatus(400, "invalid_json")
	}
	if diff := cmp.Diff(before, s.tableContents(t)); diff != "" {
		t.Errorf("the store changed (-before +after):\n%s", diff)
	}
}

// A member of the wrong type is rejected, for every member of every documented
// body.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	s, w := newServerWithData(t)
	before := s.tableContents(t)
	values := map[string]string{"null": "null", "boolean": "true", "integer": "7", "number": "1.5", "string": `"x"`, "array": "[]", "object": "{}"}
	tried := 0
	for _, route := range routes() {
		schema := published().root().at("paths", route.Path, strings.ToLower(route.Method), "requestBody", "content", "application/json", "schema")
		if schema.value == nil {
			continue
		}
		id, _, _, _ := collection(route)
		for _, member := range slices.Sorted(maps.Keys(schema.at("properties").members())) {
			accepted := fmt.Sprint(schema.at("properties", member, "type").value)
			for kind, value := range values {
				if strings.Contains(accepted, kind) || kind == "integer" && strings.Contains(accepted, "number") {
					continue
				}
				body := replaceMember(t, routeBody(t, route), member, value)
				a := authorizedClient(w, route).call(route.Method, w.expand(routePath(route, id)), body)
				if a.status != 400 || a.code() != "invalid_request" || !strings.Contains(string(a.body), `"pointer":"/`+member) {
					t.Errorf("%s with %s: got %d %s", routeName(route), body, a.status, a.body)
				}
				tried++
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d bodies were tried", tried)
	}
	if diff := cmp.Diff(before, s.tableContents(t)); diff != "" {
		t.Errorf("the store changed (-before +after):\n%s", diff)
	}
}

func replaceMember(t *testing.T, body, member, value string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if body == "" {
		body = "{}"
	}
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatal(err)
	}
	members[member] = json.RawMessage(value)
	out, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A body over the limit of the plan is payload_too_large on every route, with
// and without Content-Length.
func TestOversizedBodies(t *testing.T) {
	t.Parallel()
	s, w := newServerWithData(t)
	before := s.tableContents(t)
	for _, route := range routes() {
		if !writes(route) || streamsBody(route.Method, route.Path) {
			continue
		}
		id, _, _, _ := collection(route)
		c := authorizedClient(w, route)
		path := w.expand(routePath(route, id))
		body := `{"x": "` + strings.Repeat("x", 4<<20) + `"}`
		c.call(route.Method, path, body).wantStatus(413, "payload_too_large")
		// A body of unknown length is sent in chunks.
		request, err := http.NewRequestWithContext(t.Context(), route.Method, s.url+path, io.NopCloser(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+c.key)
		request.Header.Set("Content-Type", mediaOf(route.Method, path))
		c.send(request, body).wantStatus(413, "payload_too_large")
	}
	if diff := cmp.Diff(before, s.tableContents(t)); diff != "" {
		t.Errorf("the store changed (-before +after):\n%s", diff)
	}
}

// The limit of a body is exact, for each plan.
func TestBodySizePerPlan(t *testing.T) {
	t.Parallel()
	for plan, limit := range map[string]int{
		`{"name": "n"}`:                1 << 20,
		`{"name": "n", "plan": "pro"}`: 2 << 20,
		`{"name": "n", "plan": "enterprise", "requests_per_minute": 100}`: 4 << 20,
	} {
		w := sharedServer(t).newTestWorkspaceWith(t, plan)
		fits := `{"name": "n"}` + strings.Repeat(" ", limit-len(`{"name": "n"}`))
		w.call("POST", "/v1/workflows", fits).wantStatus(201)
		w.call("POST", "/v1/workflows", fits+" ").wantStatus(413, "payload_too_large")
	}
}

// Equivalent bodies are accepted.
func TestEquivalentBodies(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	for _, media := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON", `application/json; charset="utf-8"`} {
		w.call("POST", "/v1/workflows", ` {"name" : "n" } `, "Content-Type", media).wantStatus(201)
	}
	w.call("POST", "/v1/workflows", `{"name": "n"}`, "Content-Encoding", "identity").wantStatus(201)
	w.workflow("wf", waitStep)
	// Without a body the media type does not matter.
	w.call("POST", "/v1/workflows/$wf/runs", "", "Content-Type", "text/plain").wantStatus(201)
	w.call("POST", "/v1/workflows/$wf/runs", "").wantStatus(201)
	w.call("GET", "/v1/workflows", "", "Accept", "text/html", "Accept-Encoding", "br").wantStatus(200)
}
