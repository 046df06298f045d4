package action

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Catalog finds actions by name. It does not change once made.
type Catalog struct {
	entries map[string]*checked
	names   []string
}

type checked struct {
	Entry
	input *jsonschema.Schema
}

// NewCatalog makes a catalog; a wrong declaration is an error.
func NewCatalog(entries ...Entry) (*Catalog, error) {
	c := &Catalog{entries: map[string]*checked{}}
	for _, entry := range entries {
		name := entry.Spec.Name
		if _, twice := c.entries[name]; twice {
			return nil, fmt.Errorf("action %s is declared twice", name)
		}
		schema, err := compileSchema(name, entry.Spec.Input)
		if err != nil {
			return nil, err
		}
		c.entries[name] = &checked{Entry: entry, input: schema}
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	return c, nil
}

// Saved is the catalog for workflows that were checked when they were saved:
// without the checks that take their time.
func (c *Catalog) Saved() *Catalog {
	saved := &Catalog{entries: make(map[string]*checked, len(c.entries)), names: c.names}
	for name, entry := range c.entries {
		copied := *entry
		if copied.Spec.Slow {
			copied.Spec.Check = nil
		}
		saved.entries[name] = &copied
	}
	return saved
}

func compileSchema(name, text string) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("input schema of %s: %w", name, err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("input schema of %s: %w", name, err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("input schema of %s: %w", name, err)
	}
	return schema, nil
}

// Find returns the action of that name.
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

// Hint suggests the action that an unknown name may have meant.
func (c *Catalog) Hint(name string) string { return suggest.Nearest(name, c.names) }

// Names lists the actions in alphabetical order.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Check holds an input against the action's schema. Values for which deferred
// is true are expressions whose value is not known yet: they may become
// anything, so nothing is said about them. That a field is missing or not known
// is said whatever its value.
func (c *Catalog) Check(name string, input map[string]any, deferred func(pointer string) bool) []Problem {
	entry, ok := c.entries[name]
	if !ok {
		return []Problem{{Message: "unknown action " + name}}
	}
	problems := explain(entry.input.Validate(input), deferred)
	if len(problems) == 0 && entry.Spec.Check != nil {
		for _, problem := range entry.Spec.Check(input) {
			if !deferred(problem.Pointer) {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}
