package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

// maxSteps bounds the time that one document costs: it is the number of parts of schemas that are
// read for all operations together. Operations can share schemas and references can nest, so that
// without it a document of one MiB could take hours.
const maxSteps = 1_000_000

const maxNotes = 300

const maxAuth = 10

var (
	errBudget = errors.New("the schemas of the document are too complex: choose fewer operations")
	idPattern = regexp.MustCompile(`^x_[a-z0-9][a-z0-9_]{0,38}$`)
)

// converter makes a manifest of a document.
type converter struct {
	document *Document
	options  Options
	steps    int // that are left
	count    int // of inputs of the operation that is converted
	notes    []note
	noted    map[note]bool

	id, name string
	base     baseURL
	schemes  map[string]*scheme
	// requirements are those that were read, by where they are.
	requirements map[*node]requirement
	// credentials are the headers and parameters that connections set.
	credentials map[string]bool
	auth        []object
	operations  []converted
	size        int // of the operations, as JSON
}

type converted struct {
	Operation
	manifest object
	// plain is set if the operation reads JSON and needs no input.
	plain bool
}

type note struct {
	at      *node
	message string
}

func (c *converter) note(at *node, message string) {
	n := note{at, message}
	if c.noted == nil {
		c.noted = map[note]bool{}
	}
	if !c.noted[n] && len(c.notes) < 10*maxNotes {
		c.noted[n] = true
		c.notes = append(c.notes, n)
	}
}

// located returns the notes in the order of the document. Those about the whole manifest
// come first.
func (c *converter) located() []Note {
	var pointers []string
	given := c.notes[:min(len(c.notes), maxNotes)]
	for _, n := range given {
		pointers = append(pointers, n.at.pointer())
	}
	places := c.document.places(pointers)
	out := make([]Note, 0, len(given)+1)
	for i, n := range given {
		one := Note{Pointer: shownPointer(pointers[i]), Message: n.message}
		if pointers[i] != "" {
			one.Line, one.Column = places[i].Line, places[i].Column
		}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b Note) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	if more := len(c.notes) - len(given); more > 0 {
		out = append(out, Note{Message: fmt.Sprintf("%d further notes are left out: choose fewer operations to see them", more)})
	}
	return out
}

// step counts parts of schemas that are read.
func (c *converter) step(parts int) error {
	if c.steps -= parts; c.steps < 0 {
		return errBudget
	}
	return nil
}

// identify finds the id and the name of the integration, and checks the options about them.
func (c *converter) identify() error {
	heading := c.document.root.get("info").get("title").string()
	c.name = cmp.Or(plain(c.options.Name, maxTitle), plain(heading, maxTitle), "API")
	c.id = cmp.Or(c.options.ID, "x_"+cut(identifier(strings.TrimSuffix(strings.TrimSpace(heading), " API"), "api"), 38))
	if !idPattern.MatchString(c.id) {
		return &OptionError{"id", "must begin with x_ and have up to 40 lower-case letters, digits and underscores, such as x_acme"}
	}
	if c.options.Category != "" && !slices.Contains(integration.Categories(), c.options.Category) {
		return &OptionError{"category", "must be one of " + strings.Join(integration.Categories(), ", ")}
	}
	return nil
}

func (c *converter) convert(chosen []Operation) error {
	if err := c.setBase(); err != nil {
		return err
	}
	c.readSchemes()
	c.findCredentials(chosen)
	for _, o := range c.document.operations {
		if o.Deprecated && len(c.options.Operations) == 0 {
			c.note(o.at, o.Name+" is left out because it is deprecated: choose it by its name if you need it")
		}
	}
	for _, o := range chosen {
		if err := c.addOperation(o, len(chosen)); err != nil {
			return err
		}
	}
	if len(c.operations) == 0 {
		why := ""
		if len(c.notes) > 0 {
			why = ": " + c.notes[0].message
		}
		return c.document.errorf(c.document.root.get("paths"), "none of the operations can be in a manifest%s", why)
	}
	c.setAuth()
	return nil
}

// maxOperations is the largest size of all operations as JSON. Their YAML is never so much
// shorter that a manifest could have them.
const maxOperations = 2 << 20

func (c *converter) addOperation(o Operation, of int) error {
	text, err := c.operation(o)
	var left leftOut
	switch {
	case errors.Is(err, errBudget):
		return c.document.errorf(c.document.root.get("paths"), "%s", err)
	case errors.As(err, &left):
		c.note(cmp.Or(left.at, o.at), fmt.Sprintf("%s is left out: %s", o.Name, left.why))
		return nil
	case err != nil:
		c.note(o.at, fmt.Sprintf("%s is left out: a schema of it %s", o.Name, err))
		return nil
	}
	encoded, err := text.manifest.encode()
	if err != nil {
		return err
	}
	if c.size += len(encoded); c.size > maxOperations {
		return tooLarge(of)
	}
	c.operations = append(c.operations, *text)
	return nil
}

func tooLarge(operations int) error {
	return &OptionError{"operations", fmt.Sprintf("a manifest can have 256 KiB, and that of %d operations would be larger: choose the ones that you need, by their names or with patterns such as orders_*", operations)}
}

// leftOut is the reason why a manifest cannot have an operation.
type leftOut struct {
	at  *node // nil is the operation
	why string
}

func (l leftOut) Error() string { return l.why }
