package action

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Catalog finds actions by name. It is immutable.
type Catalog struct {
	entries map[string]*checked
	names   []string
}

type checked struct {
	Entry
	input    *jsonschema.Schema
	document any // the schema as JSON
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
		c.entries[name] = &checked{Entry: entry, input: schema, document: document}
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	return c, nil
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
	found, ok := c.entries[name]
	if !ok {
		return Entry{}, false
	}
	return found.Entry, true
}

// Get returns the declaration of an action, or action_not_found.
func (c *Catalog) Get(name string) (Spec, error) {
	found, ok := c.entries[name]
	if !ok {
		return Spec{}, fault.New(fault.ActionNotFound, "there is no action %q%s", name, suggest.Hint(name, c.names))
	}
	return found.Spec, nil
}

// Hint returns the known action that is closest to an unknown name.
func (c *Catalog) Hint(name string) string { return suggest.Nearest(name, c.names) }

// Names returns the names of the actions in alphabetical order.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Check validates an input against the schema of the action. It skips values for
// which deferred returns true: they are expressions whose value is not known
// yet. Missing and unknown fields are reported regardless of their value.
func (c *Catalog) Check(name string, input map[string]any, deferred func(pointer string) bool) []Problem {
	entry, ok := c.entries[name]
	if !ok {
		return []Problem{{Message: "unknown action " + name}}
	}
	problems := entry.explain(entry.input.Validate(input), deferred)
	if len(problems) == 0 && entry.Spec.Check != nil {
		for _, problem := range entry.Spec.Check(input) {
			if !deferred(problem.Pointer) {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}
