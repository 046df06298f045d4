package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
)

// inputDef returns the key in $defs of the input of an action.
func inputDef(name string) string { return "with:" + name }

// actionSchema describes a step that is not a block: it needs an action and the
// matching input.
func actionSchema(inputs map[string]node) node {
	var cases []node
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		then := node{"properties": node{"with": ref(inputDef(name))}}
		if inputs[name]["required"] != nil {
			then["required"] = []string{"with"}
		}
		cases = append(cases, node{
			"if":   node{"required": []string{"uses"}, "properties": node{"uses": node{"const": name}}},
			"then": then,
		})
	}
	out := node{
		"title": "Action", "description": "A step that uses an action.",
		"required": []string{"uses"},
	}
	if cases != nil {
		out["allOf"] = cases
	}
	return out
}

// inputSchemas returns the input schema of each action, in which every value can
// also be an expression.
func inputSchemas(catalog *action.Catalog) (map[string]node, error) {
	out := map[string]node{}
	for _, name := range catalog.Names() {
		entry, _ := catalog.Find(name)
		var input node
		if err := json.Unmarshal([]byte(entry.Spec.Input), &input); err != nil {
			return nil, fmt.Errorf("input schema of %s: %w", name, err)
		}
		r := relaxer{root: "#/$defs/" + inputDef(name)}
		schema := r.relax(input)
		if schema["title"] == nil {
			schema["title"] = entry.Spec.Title
		}
		if schema["description"] == nil {
			schema["description"] = entry.Spec.Summary
		}
		out[name] = schema
	}
	return out, nil
}

// relaxer rewrites the schema of an input so that values can also be expressions,
// and moves it to another location in a document.
type relaxer struct {
	root string // the new location of the schema
}

// relax rewrites a schema for a value that is not an expression itself but may
// contain expressions.
func (r relaxer) relax(schema node) node {
	out := node{}
	for keyword, value := range schema {
		switch keyword {
		case "properties", "patternProperties":
			out[keyword] = r.mapMembers(value, r.relaxValue)
		case "$defs", "dependentSchemas":
			out[keyword] = r.mapMembers(value, r.relaxSame)
		case "additionalProperties", "items", "unevaluatedProperties", "unevaluatedItems":
			out[keyword] = r.relaxValue(value)
		case "prefixItems":
			out[keyword] = r.mapItems(value, r.relaxValue)
		case "anyOf":
			out[keyword] = r.mapItems(value, r.relaxSame)
		case "allOf":
			out[keyword] = append(asList(out[keyword]), r.mapItems(value, r.relaxSame)...)
		case "oneOf":
			// An expression may evaluate to a value that matches any of them.
			out["allOf"] = append(asList(out["allOf"]), node{"anyOf": r.mapItems(value, r.relaxSame)})
		case "if":
			out[keyword] = r.moveRefs(value) // Compile evaluates it unchanged
		case "then", "else":
			out[keyword] = r.relaxSame(value)
		case "not", "contains":
			// These cannot be decided before expressions are evaluated.
		case "$ref":
			out[keyword] = r.resolveRef(value)
		default:
			out[keyword] = value
		}
	}
	return out
}

// resolveRef returns the new target of a reference inside the schema.
func (r relaxer) resolveRef(reference any) any {
	text, _ := reference.(string)
	return r.root + strings.TrimPrefix(text, "#")
}

// moveRefs rewrites only the references.
func (r relaxer) moveRefs(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := node{}
		for name, member := range v {
			if out[name] = r.moveRefs(member); name == "$ref" {
				out[name] = r.resolveRef(member)
			}
		}
		return out
	case []any:
		return r.mapItems(v, r.moveRefs)
	}
	return value
}

// relaxSame rewrites a subschema that applies to the same value as its parent.
func (r relaxer) relaxSame(schema any) any {
	if members, ok := schema.(map[string]any); ok {
		return r.relax(members)
	}
	return schema
}

// relaxValue rewrites the schema of a value that may also be an expression. Title,
// description and the like stay at the top level, where editors look for them.
func (r relaxer) relaxValue(schema any) any {
	members, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	strict, out := r.relax(members), node{}
	if members["x-literal"] != nil {
		strict["not"] = ref("expression")
		return strict
	}
	for _, keyword := range []string{"title", "description", "default", "examples"} {
		if words, ok := strict[keyword]; ok {
			out[keyword] = words
			delete(strict, keyword)
		}
	}
	if acceptsAnyText(strict) {
		maps.Copy(out, strict)
		return out
	}
	out["if"], out["else"] = ref("expression"), strict
	return out
}

// acceptsAnyText reports whether a schema already accepts any text.
func acceptsAnyText(schema node) bool {
	return len(schema) == 0 || len(schema) == 1 && schema["type"] == "string"
}

func (r relaxer) mapMembers(schemas any, rewrite func(any) any) any {
	members, ok := schemas.(map[string]any)
	if !ok {
		return schemas
	}
	out := node{}
	for name, schema := range members {
		out[name] = rewrite(schema)
	}
	return out
}

func (r relaxer) mapItems(schemas any, rewrite func(any) any) []any {
	var out []any
	for _, schema := range asList(schemas) {
		out = append(out, rewrite(schema))
	}
	return out
}

func asList(value any) []any {
	out, _ := value.([]any)
	return out
}
