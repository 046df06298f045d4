package action

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Catalog finds actions by name. It is immutable and safe for concurrent use.
type Catalog struct {
	entries map[string]*checked
	names   []string
	more    Source
	found   *sync.Map // of more, by name: *checked
}

// Source has actions that are declared when they are needed, such as the operations of
// integrations. There can be thousands of them.
type Source interface {
	Find(name string) (Entry, bool)
	// Outlines returns the actions in alphabetical order. Unlike Find, it compiles none of
	// them.
	Outlines() []Outline
	Codes() []Code
}

// Outline is an action of a source before it is compiled.
type Outline struct{ Name, Summary string }

type checked struct {
	Entry
	input    *jsonschema.Schema
	document any // the schema as JSON
	// hasLiterals reports whether any member of the input cannot contain expressions. Inputs
	// of other actions, which are most, are not searched for them each time a step runs.
	hasLiterals bool
}

// NewCatalog returns a catalog of the entries. It fails if a declaration is not
// valid.
func NewCatalog(entries ...Entry) (*Catalog, error) {
	c := &Catalog{entries: map[string]*checked{}}
	for _, entry := range entries {
		name := entry.Spec.Name
		if _, twice := c.entries[name]; twice {
			return nil, fmt.Errorf("action %s is declared twice", name)
		}
		schema, document, err := compileSchema(name, entry.Spec.Input)
		if err != nil {
			return nil, err
		}
		c.entries[name] = newChecked(entry, schema, document)
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	return c, nil
}

// With returns the catalog with the actions of a source. Those of the catalog itself take
// precedence.
func (c *Catalog) With(more Source) *Catalog {
	return &Catalog{entries: c.entries, names: c.names, more: more, found: &sync.Map{}}
}

// find returns the action with that name, or nil. It compiles one of the source when it is
// first needed.
func (c *Catalog) find(name string) *checked {
	if entry := c.entries[name]; entry != nil || c.more == nil {
		return entry
	}
	if found, ok := c.found.Load(name); ok {
		entry, _ := found.(*checked)
		return entry
	}
	entry, ok := c.more.Find(name)
	if !ok {
		return nil
	}
	schema, document, err := compileSchema(name, entry.Spec.Input)
	if err != nil {
		return nil // a test compiles all of them
	}
	compiled := newChecked(entry, schema, document)
	c.found.Store(name, compiled)
	return compiled
}

func newChecked(entry Entry, schema *jsonschema.Schema, document any) *checked {
	return &checked{Entry: entry, input: schema, document: document, hasLiterals: strings.Contains(entry.Spec.Input, `"x-literal"`)}
}

// literals returns the problems of an input with expressions in members that cannot contain
// any. Such a member has the keyword x-literal in the schema.
func literals(schema, input any, at string, deferred func(pointer string) bool) []Problem {
	node, _ := schema.(map[string]any)
	if hint, ok := node["x-literal"].(string); ok && deferred(at) {
		return []Problem{{Pointer: at, Message: "cannot contain expressions", Hint: hint}}
	}
	var out []Problem
	switch input := input.(type) {
	case map[string]any:
		members, _ := node["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(input)) {
			out = append(out, literals(members[name], input[name], at+jsonpointer.Of(name), deferred)...)
		}
	case []any:
		for i, item := range input {
			out = append(out, literals(node["items"], item, at+"/"+strconv.Itoa(i), deferred)...)
		}
	}
	return out
}

func compileSchema(name, text string) (schema *jsonschema.Schema, document any, err error) {
	document, err = jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, nil, fmt.Errorf("input schema of %s: %w", name, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.RegisterFormat(&jsonschema.Format{Name: FileFormat, Validate: func(any) error { return errNotFile }})
	compiler.AssertFormat()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, nil, fmt.Errorf("input schema of %s: %w", name, err)
	}
	if schema, err = compiler.Compile(name); err != nil {
		return nil, nil, fmt.Errorf("input schema of %s: %w", name, err)
	}
	return schema, document, nil
}

// Find returns the action with that name.
func (c *Catalog) Find(name string) (Entry, bool) {
	found := c.find(name)
	if found == nil {
		return Entry{}, false
	}
	return found.Entry, true
}

// Get returns the declaration of an action, or action_not_found.
func (c *Catalog) Get(name string) (Spec, error) {
	found := c.find(name)
	if found == nil {
		return Spec{}, fault.New(fault.ActionNotFound, "there is no action %q%s", name, suggest.Hint(name, c.All()))
	}
	return found.Spec, nil
}

// Hint returns the known action that is closest to an unknown name.
func (c *Catalog) Hint(name string) string { return suggest.Nearest(name, c.All()) }

// Names returns the names of the actions in alphabetical order, without those of the
// source.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// HasMore reports whether the catalog has the actions of a source.
func (c *Catalog) HasMore() bool { return c.more != nil }

// More returns the actions of the source in alphabetical order.
func (c *Catalog) More() []Outline {
	if c.more == nil {
		return nil
	}
	return c.more.Outlines()
}

// All returns the names of all actions, with those of the source at the end.
func (c *Catalog) All() []string {
	out := c.Names()
	for _, one := range c.More() {
		out = append(out, one.Name)
	}
	return out
}

// Codes returns the error codes of all actions.
func (c *Catalog) Codes() []Code {
	var out []Code
	for _, name := range c.names {
		out = append(out, c.entries[name].Spec.Codes...)
	}
	if c.more != nil {
		out = append(out, c.more.Codes()...)
	}
	return out
}

// Check validates an input against the schema of the action. It skips values for
// which deferred returns true: they are expressions whose value is not known
// yet. Missing and unknown fields are reported regardless of their value, and so are
// expressions in fields that cannot contain any.
func (c *Catalog) Check(name string, input map[string]any, deferred func(pointer string) bool) []Problem {
	entry := c.find(name)
	if entry == nil {
		return []Problem{{Message: "unknown action " + name}}
	}
	problems := entry.explain(entry.input.Validate(input), deferred)
	if entry.hasLiterals {
		problems = append(problems, literals(entry.document, input, "", deferred)...)
	}
	if len(problems) == 0 && entry.Spec.Check != nil {
		for _, problem := range entry.Spec.Check(input) {
			if !deferred(problem.Pointer) {
				problems = append(problems, problem)
			}
		}
	}
	if len(problems) == 0 && !entry.Spec.hasExactlyOne(input) {
		return []Problem{{Message: "needs exactly one of " + strings.Join(entry.Spec.ExactlyOne, ", ")}}
	}
	return problems
}

func (s Spec) hasExactlyOne(input map[string]any) bool {
	given := 0
	for _, name := range s.ExactlyOne {
		if _, ok := input[name]; ok {
			given++
		}
	}
	return given == 1 || s.ExactlyOne == nil
}
