package workflow

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
)

// TriggerType declares the part that a type of trigger has in the workflow format:
// its members, their JSON Schema and how they are compiled.
type TriggerType struct {
	// Name is the value of `type`.
	Name string
	// Summary says what starts runs. Editors show it next to the name.
	Summary string
	// Members returns the JSON Schemas of the members that it allows besides id and
	// type. Types may share a member, with the same schema.
	Members func(actions *action.Catalog) map[string]any
	// Input is the JSON Schema of `with`; nil if the type does not have it. New types
	// have their settings there, where names cannot clash with those of other types.
	Input map[string]any
	// Rule is a JSON Schema for all members together, such as which are required.
	Rule map[string]any
	// Definitions are JSON Schemas that those of the members refer to, by their
	// name in $defs.
	Definitions map[string]any
	// Compile checks a trigger and returns its CompiledTrigger.Config. It reports
	// problems to the compiler.
	Compile func(c *TriggerCompiler, t Trigger) any
}

// TriggerSource has types of triggers that are declared when they are needed: those of
// services. There can be thousands of them.
type TriggerSource interface {
	Find(name string) (TriggerType, bool)
	// Names returns their names in alphabetical order.
	Names() []string
	// Members returns the JSON Schemas of the members that each of them allows besides id,
	// type and with.
	Members() map[string]any
}

// TriggerTypes finds types of triggers by name. It is immutable. A nil pointer has
// no types.
type TriggerTypes struct {
	list     []TriggerType
	services TriggerSource
}

// NewTriggerTypes returns the given types in their order. It fails if two have the
// same name.
func NewTriggerTypes(types ...TriggerType) (*TriggerTypes, error) {
	seen := map[string]bool{}
	for _, kind := range types {
		if seen[kind.Name] {
			return nil, fmt.Errorf("the trigger type %s is declared twice", kind.Name)
		}
		seen[kind.Name] = true
	}
	return &TriggerTypes{list: slices.Clone(types)}, nil
}

// With returns the types with those of services.
func (t *TriggerTypes) With(services TriggerSource) *TriggerTypes {
	return &TriggerTypes{list: t.list, services: services}
}

// all returns the types in their order.
func (t *TriggerTypes) all() []TriggerType {
	if t == nil {
		return nil
	}
	return t.list
}

// Names returns the names of the types in their order, without those of services.
func (t *TriggerTypes) Names() []string {
	var names []string
	for _, kind := range t.all() {
		names = append(names, kind.Name)
	}
	return names
}

// hasServices reports whether there are types of services.
func (t *TriggerTypes) hasServices() bool { return t != nil && t.services != nil }

// serviceNames returns the names of the types of services.
func (t *TriggerTypes) serviceNames() []string {
	if !t.hasServices() {
		return nil
	}
	return t.services.Names()
}

func (t *TriggerTypes) find(name string) (TriggerType, bool) {
	for _, kind := range t.all() {
		if kind.Name == name {
			return kind, true
		}
	}
	if !t.hasServices() {
		return TriggerType{}, false
	}
	return t.services.Find(name)
}

// members returns the JSON Schemas of the members of a type.
func (t TriggerType) members(actions *action.Catalog) map[string]any {
	if t.Members == nil {
		return nil
	}
	return t.Members(actions)
}

// properties returns the JSON Schemas of the members of all types.
func (t *TriggerTypes) properties(actions *action.Catalog) (node, error) {
	out := node{}
	for _, kind := range t.all() {
		for name, schema := range kind.members(actions) {
			if other, shared := out[name]; shared && !reflect.DeepEqual(other, schema) {
				return nil, fmt.Errorf("the trigger type %s declares %s differently than another type", kind.Name, name)
			}
			out[name] = schema
		}
	}
	if t.hasServices() {
		maps.Copy(out, t.services.Members())
	}
	if t.hasServices() || slices.ContainsFunc(t.all(), func(kind TriggerType) bool { return kind.Input != nil }) {
		out["with"] = node{"title": "With", "description": "The settings of the trigger. They depend on its type.", "type": "object"}
	}
	return out, nil
}

// definitions returns the JSON Schemas that the members of all types refer to.
func (t *TriggerTypes) definitions() node {
	out := node{}
	for _, kind := range t.all() {
		maps.Copy(out, kind.Definitions)
	}
	return out
}
