// Package fuzzapi sends requests derived from the OpenAPI document to a running
// service: valid ones, and ones with mutations that a client could send. It checks
// every response against the document. It knows the API only from the document.
package fuzzapi

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepmill/stepmill/openapi"
)

// Document is the OpenAPI document.
type Document struct {
	root       any
	Operations []*Operation
	codes      map[string]int // error codes with their status

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

// Operation is one operation of the document.
type Operation struct {
	Method, Path, ID string
	// SessionOnly operations exist only below /ui/v1. All other operations below /v1
	// are available there as well.
	SessionOnly bool
	Params      []Param
	Bodies      map[string]Node // by media type
	BodyNeeded  bool
	node        Node
}

// Param is a parameter of an operation.
type Param struct {
	Name, In string
	Required bool
	Schema   Node
	Example  any
}

// Load reads the document.
func Load() (*Document, error) {
	text, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	d := &Document{root: root, codes: map[string]int{}, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("openapi.json", root); err != nil {
		return nil, err
	}
	listed := d.at("x-error-codes")
	for code := range listed.members() {
		if status, err := strconv.Atoi(fmt.Sprint(listed.At(code, "status").value)); err == nil {
			d.codes[code] = status
		}
	}
	d.readOperations()
	return d, nil
}

var methods = []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodOptions}

func (d *Document) readOperations() {
	paths := d.at("paths")
	for _, pattern := range slices.Sorted(maps.Keys(paths.members())) {
		for _, method := range methods {
			node := paths.At(pattern, strings.ToLower(method))
			if node.value == nil {
				continue
			}
			op := &Operation{
				Method: method, Path: pattern, ID: node.At("operationId").text(), node: node,
				SessionOnly: node.At("x-session").value == true,
				BodyNeeded:  node.At("requestBody", "required").value == true,
				Params:      slices.Concat(readParams(paths.At(pattern, "parameters")), readParams(node.At("parameters"))),
				Bodies:      map[string]Node{},
			}
			content := node.At("requestBody", "content")
			for media := range content.members() {
				op.Bodies[media] = content.At(media)
			}
			d.Operations = append(d.Operations, op)
		}
	}
}

func readParams(list Node) []Param {
	var out []Param
	for i := range list.length() {
		p := list.Element(i)
		out = append(out, Param{
			Name: p.At("name").text(), In: p.At("in").text(), Required: p.At("required").value == true,
			Schema: p.At("schema"), Example: p.At("example").value,
		})
	}
	return out
}

// Find returns the operation that serves a request. Below /ui/v1 it is the one of the
// same path below /v1.
func (d *Document) Find(method, escapedPath string) *Operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if op := d.find(method, escapedPath); op != nil {
		return op
	}
	if mounted, ok := strings.CutPrefix(escapedPath, "/ui/v1"); ok {
		return d.find(method, "/v1"+mounted)
	}
	return nil
}

func (d *Document) find(method, escapedPath string) *Operation {
	given := strings.Split(escapedPath, "/")
	var found *Operation
	for _, op := range d.Operations {
		// A path without parameters wins over one with parameters.
		if op.Method == method && matches(strings.Split(op.Path, "/"), given) && (found == nil || !strings.Contains(op.Path, "{")) {
			found = op
		}
	}
	return found
}

func matches(pattern, given []string) bool {
	return slices.EqualFunc(pattern, given, func(want, got string) bool {
		if want == got || !strings.HasPrefix(want, "{") {
			return want == got
		}
		plain, err := url.PathUnescape(got)
		return err == nil && plain != "" && path.Clean("/"+plain) == "/"+plain
	})
}

// Node is a position in the document.
type Node struct {
	document *Document
	pointer  string
	value    any
}

func (d *Document) at(names ...string) Node { return Node{document: d, value: d.root}.At(names...) }

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// At returns a member, with references resolved. Its value is nil if there is none.
func (n Node) At(names ...string) Node {
	for _, name := range names {
		n = Node{n.document, n.pointer + "/" + escapePointer.Replace(name), n.members()[name]}.resolve()
	}
	return n
}

// Element returns an element of a list, with references resolved.
func (n Node) Element(i int) Node {
	list, _ := n.value.([]any)
	return Node{n.document, n.pointer + "/" + strconv.Itoa(i), list[i]}.resolve()
}

func (n Node) resolve() Node {
	ref, isRef := n.members()["$ref"].(string)
	if !isRef {
		return n
	}
	return n.document.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

func (n Node) members() map[string]any {
	members, _ := n.value.(map[string]any)
	return members
}

func (n Node) has(name string) bool { return n.members()[name] != nil }

func (n Node) length() int {
	list, _ := n.value.([]any)
	return len(list)
}

func (n Node) text() string {
	text, _ := n.value.(string)
	return text
}

func (n Node) strings() []string {
	var out []string
	for i := range n.length() {
		out = append(out, n.Element(i).text())
	}
	return out
}

// integer returns a number of the document, or the default.
func (n Node) integer(missing int) int {
	number, err := strconv.ParseFloat(fmt.Sprint(n.value), 64)
	if n.value == nil || err != nil {
		return missing
	}
	return int(number)
}

// examples returns the documented examples of a media type.
func (n Node) examples() []any {
	var out []any
	if n.has("example") {
		out = append(out, n.members()["example"])
	}
	listed := n.At("examples")
	for _, name := range slices.Sorted(maps.Keys(listed.members())) {
		out = append(out, listed.At(name, "value").value)
	}
	return out
}

// Validate checks a value against the schema at this node.
func (n Node) Validate(value any) error {
	schema, err := n.document.compile(cmp.Or(n.pointer, "/"))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *Document) compile(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if schema := d.schemas[pointer]; schema != nil {
		return schema, nil
	}
	schema, err := d.compiler.Compile("openapi.json#" + (&url.URL{Path: pointer}).EscapedPath())
	if err != nil {
		return nil, err
	}
	d.schemas[pointer] = schema
	return schema, nil
}
