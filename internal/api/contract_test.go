package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/openapi"
)

// contract checks every response against the OpenAPI document. It compiles
// schemas once, unlike openapi3filter, which cross-checks only the first
// response of each kind.
type contract struct {
	document any
	kin      *openapi3.T
	codes    map[string]int // error codes with their status

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
	seen     map[string]bool
}

var published = sync.OnceValue(func() *contract {
	text, err := openapi.JSON()
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", document); err != nil {
		panic(err)
	}
	kin, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err)
	}
	c := &contract{
		document: document, kin: kin, compiler: compiler, schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}, codes: map[string]int{},
	}
	listed := c.root().at("x-error-codes")
	for code := range listed.members() {
		if status, err := strconv.Atoi(fmt.Sprint(listed.at(code, "status").value)); err == nil {
			c.codes[code] = status
		}
	}
	return c
})

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// node is a position in the document.
type node struct {
	contract *contract
	pointer  string
	value    any
}

func (c *contract) root() node { return node{contract: c, value: c.document} }

// at returns a member and resolves references. The value is nil if it does not
// exist.
func (n node) at(names ...string) node {
	for _, name := range names {
		members, _ := n.value.(map[string]any)
		n = node{n.contract, n.pointer + "/" + escapePointer.Replace(name), members[name]}
		for {
			target, _ := n.value.(map[string]any)
			ref, isRef := target["$ref"].(string)
			if !isRef {
				break
			}
			n = n.contract.root().at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return n
}

// element returns an element of a list and resolves references.
func (n node) element(i int) node {
	list, _ := n.value.([]any)
	if target, _ := list[i].(map[string]any); target["$ref"] != nil {
		return n.contract.root().at(strings.Split(strings.TrimPrefix(target["$ref"].(string), "#/"), "/")...)
	}
	return node{n.contract, n.pointer + "/" + strconv.Itoa(i), list[i]}
}

func (n node) members() map[string]any {
	members, _ := n.value.(map[string]any)
	return members
}

// validate checks a value against the schema at this node.
func (n node) validate(value any) error {
	n.contract.mu.Lock()
	schema := n.contract.schemas[n.pointer]
	if schema == nil {
		var err error
		if schema, err = n.contract.compiler.Compile("openapi.json#" + n.pointer); err != nil {
			n.contract.mu.Unlock()
			return err
		}
		n.contract.schemas[n.pointer] = schema
	}
	n.contract.mu.Unlock()
	return schema.Validate(value)
}

// sessionRoute reports whether a response belongs to an operation that exists
// for sessions only.
func (c *contract) sessionRoute(a *response) bool {
	operation, _, found := c.operation(a.request.Method, a.request.URL.EscapedPath())
	return found && operation.at("x-session").value == true
}

// onSessionMount reports whether a response comes from the session mount, whose
// operations the document lists once, for keys.
func (c *contract) onSessionMount(a *response) bool {
	return strings.HasPrefix(a.request.URL.Path, "/ui/v1") && !c.sessionRoute(a)
}

// documentedResponse returns the documented response. Two statuses differ with
// a session.
func (c *contract) documentedResponse(operation node, a *response) node {
	if c.onSessionMount(a) {
		switch a.code() {
		case "unauthorized":
			return c.root().at("components", "responses", "NotSignedIn")
		case "cross_origin":
			return c.root().at("components", "responses", "CrossOrigin")
		}
	}
	return operation.at("responses", strconv.Itoa(a.status))
}

// operation returns the documented operation of a request and the pattern of
// its path.
func (c *contract) operation(method, escapedPath string) (operation node, pattern string, found bool) {
	operation, pattern, found = c.operationAt(method, escapedPath)
	if mounted, ok := strings.CutPrefix(escapedPath, "/ui/v1"); ok && pattern == "" {
		return c.operationAt(method, "/v1"+mounted)
	}
	return operation, pattern, found
}

func (c *contract) operationAt(method, escapedPath string) (operation node, pattern string, found bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if method != strings.ToUpper(method) {
		return node{}, "", false // methods are case-sensitive
	}
	given := strings.Split(escapedPath, "/")
	paths := c.root().at("paths")
	for candidate := range paths.members() {
		if !matches(strings.Split(candidate, "/"), given) {
			continue
		}
		// A path without parameters wins over one with parameters, if it has
		// the method.
		if here := paths.at(candidate, strings.ToLower(method)); here.value != nil && (!found || !strings.Contains(candidate, "{")) {
			operation, pattern, found = here, candidate, true
		}
	}
	return operation, pattern, found
}

func matches(pattern, given []string) bool {
	return slices.EqualFunc(pattern, given, func(want, got string) bool {
		if want == got || !strings.HasPrefix(want, "{") {
			return want == got
		}
		plain, err := url.PathUnescape(got)
		return err == nil && path.Clean("/"+plain) == "/"+plain && plain != ""
	})
}

// check returns how a response differs from the document.
func (c *contract) check(a *response) error {
	operation, pattern, found := c.operation(a.request.Method, a.request.URL.EscapedPath())
	if !found {
		return c.checkUnknownRoute(a)
	}
	documented := c.documentedResponse(operation, a)
	if documented.value == nil {
		return fmt.Errorf("status %d is not documented for %s %s", a.status, a.request.Method, pattern)
	}
	err := errors.Join(checkHeaders(documented, a.header), checkBody(documented, a))
	if a.status >= http.StatusBadRequest && a.request.Method != http.MethodHead {
		err = errors.Join(err, c.checkCode(documented, a))
	}
	if a.status < http.StatusBadRequest && !a.lenient {
		err = errors.Join(err, checkQuery(operation, a), checkRequest(operation, a))
	}
	if c.onSessionMount(a) {
		return err // openapi3filter only knows documented paths
	}
	return errors.Join(err, c.checkWithKinOpenAPI(a, pattern))
}

// checkUnknownRoute checks responses for undocumented paths and methods, which
// have the same body as every error.
func (c *contract) checkUnknownRoute(a *response) error {
	documented := c.root().at("components", "responses", "InternalError") // the most general one
	err := checkHeaders(documented, a.header)
	if a.request.Method == http.MethodHead {
		return err
	}
	return errors.Join(err, checkBody(documented, a))
}

func checkHeaders(documented node, header http.Header) error {
	var errs []error
	promised := documented.at("headers")
	for name := range promised.members() {
		spec := promised.at(name)
		values := header.Values(name)
		switch {
		case len(values) == 0 && spec.at("required").value == true:
			errs = append(errs, fmt.Errorf("header %s is missing", name))
		case len(values) > 1:
			errs = append(errs, fmt.Errorf("header %s is there %d times", name, len(values)))
		case len(values) == 1:
			if err := spec.at("schema").validate(parseHeader(spec.at("schema"), values[0])); err != nil {
				errs = append(errs, fmt.Errorf("header %s: %q: %w", name, values[0], err))
			}
		}
	}
	return errors.Join(errs...)
}

// parseHeader converts a header to the type of its schema.
func parseHeader(schema node, text string) any {
	if schema.at("type").value == "boolean" && (text == "true" || text == "false") {
		return text == "true"
	}
	if schema.at("type").value == "integer" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return text
}

func checkBody(documented node, a *response) error {
	content := documented.at("content")
	if a.request.Method == http.MethodHead || len(content.members()) == 0 {
		if len(a.body) > 0 {
			return fmt.Errorf("there is a body: %s", a.body)
		}
		return nil
	}
	if content.at("*/*").value != nil {
		return nil // the bytes of a file
	}
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || content.at(media).value == nil {
		return fmt.Errorf("content type %q is not documented", a.header.Get("Content-Type"))
	}
	if media != "application/json" && content.at(media, "schema", "type").value == "string" {
		return nil
	}
	value, err := parse(media, a.body)
	if err != nil {
		return fmt.Errorf("the body is not %s: %w: %s", media, err, a.body)
	}
	if err := content.at(media, "schema").validate(value); err != nil {
		return fmt.Errorf("the body does not fit: %w: %s", err, a.body)
	}
	return nil
}

// parse decodes a JSON or YAML body.
func parse(media string, body []byte) (any, error) {
	if media == "application/yaml" {
		document, err := strictyaml.Decode(body)
		if err != nil {
			return nil, err
		}
		body = document.JSON
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(body))
}

// checkCode checks that the response may have this error code.
func (c *contract) checkCode(documented node, a *response) error {
	code := a.code()
	if status, known := c.codes[code]; !known || status != a.status {
		return fmt.Errorf("code %q is documented with status %d, not %d", code, status, a.status)
	}
	listed, _ := documented.at("x-error-codes").value.([]any)
	if !slices.Contains(listed, any(code)) {
		return fmt.Errorf("code %q is not documented for this status, only %v", code, listed)
	}
	return nil
}

// checkQuery checks that the document allows the accepted parameters.
func checkQuery(operation node, a *response) error {
	given := a.request.URL.Query()
	parameters, _ := operation.at("parameters").value.([]any)
	for i := range parameters {
		parameter := operation.at("parameters").element(i)
		name, _ := parameter.at("name").value.(string)
		if parameter.at("in").value != "query" || !given.Has(name) {
			continue
		}
		if err := parameter.at("schema").validate(parseHeader(parameter.at("schema"), given.Get(name))); err != nil {
			return fmt.Errorf("a parameter that the document does not allow was accepted: %s=%s: %w", name, given.Get(name), err)
		}
		given.Del(name)
	}
	if len(given) > 0 {
		return fmt.Errorf("parameters that are not documented were accepted: %v", given)
	}
	return nil
}

// checkRequest checks that the document allows the accepted request.
func checkRequest(operation node, a *response) error {
	content := operation.at("requestBody", "content")
	switch {
	case len(content.members()) == 0:
		if body := strings.TrimSpace(a.sent); body != "" && body != "{}" {
			return fmt.Errorf("a body that is not documented was accepted: %s", body)
		}
		return nil
	case a.sent == "":
		if operation.at("requestBody", "required").value == true {
			return errors.New("a required body was left out and nothing was said")
		}
		return nil
	}
	if content.at("*/*").value != nil || content.at("application/offset+octet-stream").value != nil {
		return nil // the bytes of a file
	}
	media, _, err := mime.ParseMediaType(a.request.Header.Get("Content-Type"))
	if err != nil || content.at(media).value == nil {
		return fmt.Errorf("a body of type %q was accepted", a.request.Header.Get("Content-Type"))
	}
	if media == "text/csv" {
		return nil // any text
	}
	value, err := parse(media, []byte(a.sent))
	if err == nil {
		err = content.at(media, "schema").validate(value)
	}
	if err != nil {
		return fmt.Errorf("a body that the document does not allow was accepted: %w: %s", err, a.sent)
	}
	return nil
}

func (c *contract) checkWithKinOpenAPI(a *response, pattern string) error {
	kind := fmt.Sprint(a.request.Method, pattern, a.status, a.code())
	c.mu.Lock()
	seen := c.seen[kind]
	c.seen[kind] = true
	c.mu.Unlock()
	if seen {
		return nil
	}
	item := c.kin.Paths.Value(pattern)
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: a.request, Route: &routers.Route{
			Spec: c.kin, Path: pattern, PathItem: item, Method: a.request.Method, Operation: item.GetOperation(a.request.Method),
		}},
		Status: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: a.isStream() || a.isIcon() && a.status < http.StatusBadRequest || a.header.Get("Content-Disposition") != ""},
	})
}
