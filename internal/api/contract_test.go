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

// contract holds every answer against the published document. Its schemas are
// compiled once, which openapi3filter does for every answer: that one is asked
// for a second opinion on the first answer of each kind.
type contract struct {
	document any
	kin      *openapi3.T
	codes    map[string]int // of errors, with their status

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

// node is a place in the document.
type node struct {
	contract *contract
	pointer  string
	value    any
}

func (c *contract) root() node { return node{contract: c, value: c.document} }

// at goes down to a member, through references. The value is nil when there is
// none.
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

// element goes down to an element of a list, through a reference.
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

// validate holds a value against the schema at this place.
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

// sessionRoute tells whether an answer is that of an operation for sessions only.
func (c *contract) sessionRoute(a *answer) bool {
	operation, _, found := c.operation(a.request.Method, a.request.URL.EscapedPath())
	return found && operation.at("x-session").value == true
}

// onSession tells whether an answer is that of an operation on the mount for
// sessions, which the document writes down once, for keys.
func (c *contract) onSession(a *answer) bool {
	return strings.HasPrefix(a.request.URL.Path, "/ui/v1") && !c.sessionRoute(a)
}

// promised is what the document says about an answer. With a session, two of
// them are not those of keys.
func (c *contract) promised(operation node, a *answer) node {
	if c.onSession(a) {
		switch a.code() {
		case "unauthorized":
			return c.root().at("components", "responses", "NotSignedIn")
		case "cross_origin":
			return c.root().at("components", "responses", "CrossOrigin")
		}
	}
	return operation.at("responses", strconv.Itoa(a.status))
}

// operation finds what the document says about a request, and the pattern of
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
	for pattern := range paths.members() {
		if !matches(strings.Split(pattern, "/"), given) {
			continue
		}
		operation := paths.at(pattern, strings.ToLower(method))
		return operation, pattern, operation.value != nil
	}
	return node{}, "", false
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

// check says how an answer differs from what the document promises.
func (c *contract) check(a *answer) error {
	operation, pattern, found := c.operation(a.request.Method, a.request.URL.EscapedPath())
	if !found {
		return c.checkStray(a)
	}
	response := c.promised(operation, a)
	if response.value == nil {
		return fmt.Errorf("status %d is not documented for %s %s", a.status, a.request.Method, pattern)
	}
	err := errors.Join(checkHeaders(response, a.header), checkBody(response, a))
	if a.status >= http.StatusBadRequest && a.request.Method != http.MethodHead {
		err = errors.Join(err, c.checkCode(response, a))
	}
	if a.status < http.StatusBadRequest && !a.loose {
		err = errors.Join(err, checkQuery(operation, a), checkRequest(operation, a))
	}
	if c.onSession(a) {
		return err // the other one knows the paths of the document only
	}
	return errors.Join(err, c.secondOpinion(a, pattern))
}

// checkStray is for paths and methods that do not exist: they are answered with
// the same body as every error.
func (c *contract) checkStray(a *answer) error {
	response := c.root().at("components", "responses", "InternalError") // the plainest one
	err := checkHeaders(response, a.header)
	if a.request.Method == http.MethodHead {
		return err
	}
	return errors.Join(err, checkBody(response, a))
}

func checkHeaders(response node, header http.Header) error {
	var errs []error
	promised := response.at("headers")
	for name := range promised.members() {
		spec := promised.at(name)
		values := header.Values(name)
		switch {
		case len(values) == 0 && spec.at("required").value == true:
			errs = append(errs, fmt.Errorf("header %s is missing", name))
		case len(values) > 1:
			errs = append(errs, fmt.Errorf("header %s is there %d times", name, len(values)))
		case len(values) == 1:
			if err := spec.at("schema").validate(typed(spec.at("schema"), values[0])); err != nil {
				errs = append(errs, fmt.Errorf("header %s: %q: %w", name, values[0], err))
			}
		}
	}
	return errors.Join(errs...)
}

// typed reads a text as the type that a schema asks for.
func typed(schema node, text string) any {
	if schema.at("type").value == "integer" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return text
}

func checkBody(response node, a *answer) error {
	content := response.at("content")
	if a.request.Method == http.MethodHead || len(content.members()) == 0 {
		if len(a.body) > 0 {
			return fmt.Errorf("there is a body: %s", a.body)
		}
		return nil
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

// parse reads a body that is JSON or YAML.
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

// checkCode makes sure that a code is one that this answer may carry.
func (c *contract) checkCode(response node, a *answer) error {
	code := a.code()
	if status, known := c.codes[code]; !known || status != a.status {
		return fmt.Errorf("code %q is documented with status %d, not %d", code, status, a.status)
	}
	listed, _ := response.at("x-error-codes").value.([]any)
	if !slices.Contains(listed, any(code)) {
		return fmt.Errorf("code %q is not documented for this status, only %v", code, listed)
	}
	return nil
}

// checkQuery makes sure that the parameters that were accepted are those that
// the document allows.
func checkQuery(operation node, a *answer) error {
	given := a.request.URL.Query()
	parameters, _ := operation.at("parameters").value.([]any)
	for i := range parameters {
		parameter := operation.at("parameters").element(i)
		name, _ := parameter.at("name").value.(string)
		if parameter.at("in").value != "query" || !given.Has(name) {
			continue
		}
		if err := parameter.at("schema").validate(typed(parameter.at("schema"), given.Get(name))); err != nil {
			return fmt.Errorf("a parameter that the document does not allow was accepted: %s=%s: %w", name, given.Get(name), err)
		}
		given.Del(name)
	}
	if len(given) > 0 {
		return fmt.Errorf("parameters that are not documented were accepted: %v", given)
	}
	return nil
}

// checkRequest makes sure that what was accepted is what the document allows.
func checkRequest(operation node, a *answer) error {
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
	media, _, err := mime.ParseMediaType(a.request.Header.Get("Content-Type"))
	if err != nil || content.at(media).value == nil {
		return fmt.Errorf("a body of type %q was accepted", a.request.Header.Get("Content-Type"))
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

func (c *contract) secondOpinion(a *answer, pattern string) error {
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
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: a.streamed()},
	})
}
