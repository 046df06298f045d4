// Package openapi writes the manifest of an integration for an API that an OpenAPI 3.0 or
// 3.1 document describes. It owns what becomes of each part of a document, and what it says
// about parts that a manifest cannot have.
//
// Documents are untrusted: reading one takes bounded time and memory, nothing outside of it
// is read, and no text in it becomes an expression. A manifest that the package returns is
// accepted by package integration, which owns the format.
package openapi

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/suggest"
)

// Options says what the document does not.
type Options struct {
	// ID and Name are those of the integration. By default they come from the title of the
	// document; such an ID begins with x_.
	ID, Name string
	// Category is one of integration.Categories, by default development.
	Category string
	// Server is the https URL of the API, in place of the servers of the document.
	Server string
	// Operations chooses operations by their name in the manifest, their operationId or a
	// pattern such as orders_*. Empty chooses all that are not deprecated.
	Operations []string
	// Test is the name of the operation that tests connections.
	Test string
}

// Operation is an operation of a document that a manifest can have.
type Operation struct {
	Name       string `json:"name"` // in the manifest
	ID         string `json:"operation_id"`
	Method     string `json:"method"`
	Path       string `json:"path"`
	Title      string `json:"title"`
	Deprecated bool   `json:"deprecated"`

	path string // as it is written
	at   *node  // in the document
	on   *node  // the path item
}

// Result is a manifest.
type Result struct {
	ID         string
	Manifest   []byte // YAML
	Operations []string
	// Notes are about what the manifest leaves out or does differently, in the order of the
	// document.
	Notes []Note
}

// Note is about a part of a document.
type Note struct {
	Line    int    `json:"line"` // from 1
	Column  int    `json:"column"`
	Pointer string `json:"pointer"` // JSON pointer
	Message string `json:"message"`
}

func (n Note) String() string {
	if n.Pointer == "" {
		return n.Message
	}
	return fmt.Sprintf("line %d:%d: %s: %s", n.Line, n.Column, n.Pointer, n.Message)
}

// OptionError is an option that does not fit the document.
type OptionError struct {
	Option  string // id, name, category, server, operations or test
	Message string // in words that follow its name
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Message }

// Convert reads a document and returns its manifest. The error is an [integration.Errors]
// with places in the document, or an *[OptionError].
func Convert(data []byte, options Options) (*Result, error) {
	d, err := Read(data)
	if err != nil {
		return nil, err
	}
	return d.Manifest(options)
}

// Operations returns the operations of the document, in its order.
func (d *Document) Operations() []Operation { return slices.Clone(d.operations) }

// Limits on the choice of operations. Each name or pattern is compared with each operation, of
// which a document can have 80,000: without them, one name of a megabyte would take a minute.
const (
	maxMatches = 5_000_000 // of a name or a pattern with an operation
	maxWanted  = 300       // characters of a name or a pattern
)

func (d *Document) choose(options Options) ([]Operation, error) {
	if len(options.Operations) == 0 {
		return slices.DeleteFunc(d.Operations(), func(o Operation) bool { return o.Deprecated }), nil
	}
	if len(options.Operations)*len(d.operations) > maxMatches {
		return nil, &OptionError{"operations", "has too many names for a document of this size: use patterns such as orders_*"}
	}
	chosen := map[string]bool{}
	for _, wanted := range options.Operations {
		if len(wanted) > maxWanted {
			return nil, &OptionError{"operations", fmt.Sprintf("%q is longer than %d characters", clip(wanted, 60), maxWanted)}
		}
		found, deprecated := false, false
		for _, o := range d.operations {
			matches, err := path.Match(wanted, o.Name)
			if err != nil {
				return nil, &OptionError{"operations", fmt.Sprintf("%q is not a pattern", wanted)}
			}
			if matches && (!o.Deprecated || wanted == o.Name) || wanted == o.ID {
				chosen[o.Name], found = true, true
			}
			deprecated = deprecated || matches
		}
		if !found && deprecated {
			return nil, &OptionError{"operations", fmt.Sprintf("%q fits deprecated operations only: choose them by their names", wanted)}
		}
		if !found {
			var names []string
			for _, o := range d.operations {
				names = append(names, o.Name)
			}
			return nil, &OptionError{"operations", fmt.Sprintf("the document has no operation %q%s", wanted, suggest.Hint(wanted, names))}
		}
	}
	return slices.DeleteFunc(d.Operations(), func(o Operation) bool { return !chosen[o.Name] }), nil
}

// Manifest returns the manifest. The error is an [integration.Errors] with places in the
// document, or an *[OptionError].
func (d *Document) Manifest(options Options) (*Result, error) {
	c := &converter{document: d, options: options, steps: maxSteps}
	if err := c.identify(); err != nil {
		return nil, err
	}
	chosen, err := d.choose(options)
	if err != nil {
		return nil, err
	}
	if err := c.convert(chosen); err != nil {
		return nil, err
	}
	text, err := c.write()
	if err != nil {
		return nil, err
	}
	out := &Result{ID: c.id, Manifest: text, Notes: c.located()}
	for _, o := range c.operations {
		out.Operations = append(out.Operations, o.Name)
	}
	return out, nil
}

// checkManifest parses a manifest as people's manifests are parsed.
// pathMethods are the methods of operations in a path item, in the order of manifests.
func pathMethods() []string { return strings.Fields("get post put patch delete head options trace") }
