package openapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// MaxBytes is the maximum size of a document.
const MaxBytes = 5 << 20

// Further limits on documents.
const (
	maxValues = 500_000
	maxHops   = 32 // of references that refer to references
	maxErrors = 20
)

// Document is an OpenAPI document. Only one goroutine at a time can use it.
type Document struct {
	root       *node
	yaml       *strictyaml.Document // nil if the document is JSON
	text       []byte
	later      bool // than 3.0
	operations []Operation
	targets    map[*node]*node // what references lead to, as far as they were followed
}

// Read reads a document in JSON or YAML. The error is an [integration.Errors].
func Read(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, integration.Errors{{Message: fmt.Sprintf("the document is larger than %d MiB", MaxBytes>>20)}}
	}
	d := &Document{text: data, targets: map[*node]*node{}}
	if err := d.decode(); err != nil {
		var problems strictjson.Errors
		if !errors.As(err, &problems) {
			return nil, integration.Errors{{Message: err.Error()}}
		}
		var out integration.Errors
		for _, p := range problems {
			out = append(out, &integration.Error{Line: p.Line, Column: p.Column, Pointer: p.Pointer, Message: p.Message})
		}
		return nil, out
	}
	if err := d.checkVersion(); err != nil {
		return nil, err
	}
	if errs := d.checkReferences(); errs != nil {
		return nil, errs
	}
	d.findOperations()
	if len(d.operations) == 0 {
		return nil, d.errorf(d.root.get("paths"), "the document has no operations: they are in paths")
	}
	return d, nil
}

func (d *Document) decode() error {
	text := bytes.TrimPrefix(d.text, []byte("\ufeff"))
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("{")) {
		d.text = text
		if err := strictjson.Check(text); err != nil {
			return err
		}
	} else {
		document, err := strictyaml.DecodeWithin(text, strictyaml.Limits{Bytes: MaxBytes, Values: maxValues})
		if err != nil {
			return err
		}
		d.yaml, text = document, document.JSON
	}
	root, err := buildTree(text)
	d.root = root
	return err
}

func (d *Document) errorf(at *node, format string, args ...any) integration.Errors {
	places := d.places([]string{at.pointer()})
	return integration.Errors{{Line: places[0].Line, Column: places[0].Column, Pointer: shownPointer(at.pointer()), Message: fmt.Sprintf(format, args...)}}
}

// places returns where in the document values are.
func (d *Document) places(pointers []string) []strictjson.Place {
	if d.yaml == nil {
		return strictjson.Locate(d.text, pointers)
	}
	out := make([]strictjson.Place, len(pointers))
	for i, pointer := range pointers {
		out[i].Line, out[i].Column, _ = d.yaml.At(pointer)
	}
	return out
}

func (d *Document) checkVersion() error {
	version := d.root.get("openapi")
	switch text := version.string(); {
	case d.root.kind != kindObject:
		return d.errorf(d.root, "is not an OpenAPI document: it must be an object with openapi, info and paths")
	case d.root.get("swagger") != nil:
		return d.errorf(d.root.get("swagger"), "is an OpenAPI 2 (Swagger) document: convert it to OpenAPI 3 first")
	case strings.HasPrefix(text, "3.0."), text == "3.0":
	case strings.HasPrefix(text, "3.1."), text == "3.1":
		d.later = true
	case version == nil:
		return d.errorf(d.root, "is not an OpenAPI document: it has no member openapi with the version, such as 3.1.0")
	default:
		return d.errorf(version, "the version must be 3.0 or 3.1, as text such as \"3.1.0\"")
	}
	return nil
}

// dataMember reports whether a member of the document has a value of the API, in which
// nothing is a reference.
func dataMember(n *node) bool {
	switch n.name {
	case "example", "examples", "default", "enum", "const", "value":
		return n.parent.name != "properties"
	}
	return strings.HasPrefix(n.name, "x-") && n.parent.name != "properties"
}

func (d *Document) checkReferences() error {
	var found []note
	var walk func(n *node)
	walk = func(n *node) {
		if len(found) >= maxErrors || n.parent != nil && n.parent.kind == kindObject && dataMember(n) {
			return
		}
		if ref := n.get("$ref"); ref != nil && ref.kind == kindText {
			if _, problem := d.follow(n); problem != "" {
				found = append(found, note{ref, problem})
			}
		}
		for _, item := range n.items {
			walk(item)
		}
	}
	walk(d.root)
	if found == nil {
		return nil
	}
	var pointers []string
	for _, n := range found {
		pointers = append(pointers, n.at.pointer())
	}
	var out integration.Errors
	for i, place := range d.places(pointers) {
		out = append(out, &integration.Error{Line: place.Line, Column: place.Column, Pointer: shownPointer(pointers[i]), Message: found[i].message})
	}
	return out
}

// follow returns what a reference leads to, or why it leads nowhere. Any other value is
// returned as it is.
func (d *Document) follow(n *node) (found *node, problem string) {
	for range maxHops {
		ref := n.get("$ref")
		if ref == nil || ref.kind != kindText {
			return n, ""
		}
		pointer, isLocal := strings.CutPrefix(ref.text, "#")
		switch {
		case !isLocal:
			return nil, fmt.Sprintf("refers to something outside of the document, %q: put everything into one document first, for example with `npx @redocly/cli bundle`", clip(ref.text, 100))
		case pointer != "" && pointer[0] != '/':
			return nil, fmt.Sprintf("%q is no JSON pointer such as #/components/schemas/Order", clip(ref.text, 100))
		}
		target, known := d.targets[ref]
		if !known { // a pointer can be long, and many can follow it
			target = d.find(pointer)
			d.targets[ref] = target
		}
		if n = target; n == nil {
			return nil, fmt.Sprintf("there is nothing at %q", clip(ref.text, 100))
		}
	}
	return nil, "refers to itself"
}

// find returns the value at a JSON pointer of a URL fragment.
func (d *Document) find(pointer string) *node {
	n := d.root
	for _, member := range jsonpointer.Split(unescapeFragment(pointer)) {
		if n = n.at(member); n == nil {
			return nil
		}
	}
	return n
}

func (n *node) at(name string) *node {
	if n.kind != kindList {
		return n.get(name)
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// resolve returns what a reference leads to, or the value itself. All references were
// checked.
func (d *Document) resolve(n *node) *node {
	found, _ := d.follow(n)
	return found
}

func (d *Document) findOperations() {
	used := names{}
	for _, item := range d.root.get("paths").members() {
		if strings.HasPrefix(item.name, "x-") {
			continue
		}
		on := d.resolve(item)
		for _, method := range pathMethods() {
			at := on.get(method)
			if at == nil || at.kind != kindObject {
				continue
			}
			id := at.get("operationId").string()
			o := Operation{
				ID: id, Method: strings.ToUpper(method), Path: printable(item.name), path: item.name, Deprecated: at.get("deprecated").isTrue(), at: at, on: on,
			}
			o.Name = used.unique(identifier(cmp.Or(id, method+" "+item.name), "operation"))
			named := title(cmp.Or(id, method+" "+item.name))
			if o.Title = strings.TrimSuffix(plain(at.get("summary").string(), maxSummary), "."); o.Title == "" || utf8.RuneCountInString(o.Title) > maxTitle {
				o.Title = cmp.Or(named, o.Name) // a summary as long as a description is no title
			}
			d.operations = append(d.operations, o)
		}
	}
}
