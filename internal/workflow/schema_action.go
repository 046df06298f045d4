package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
)

// inputDef names the definition that holds the input of an action.
func inputDef(name string) string { return "with:" + name }

// actionSchema is what a step that is no block must and must not have: an
// action, and the input that fits it.
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

// inputSchemas returns the input of each action as it may be written: every
// value in it can be an expression.
func inputSchemas(catalog *action.Catalog) (map[string]node, error) {
	out := map[string]node{}
	for _, name := range catalog.Names() {
		entry, _ := catalog.Find(name)
		var input node
		if err := json.Unmarshal([]byte(entry.Spec.Input), &input); err != nil {
			return nil, fmt.Errorf("input schema of %s: %w", name, err)
		}
		l := loosener{root: "#/$defs/" + inputDef(name)}
		schema := l.loosen(input)
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

// loosener rewrites the schema of an input into one of the input as it is
// written, moved to another place of a document.
type loosener struct {
	root string // where the schema stands now
}

// loosen rewrites a schema for a value that is no expression itself; what is
// inside the value may be one.
func (l loosener) loosen(schema node) node {
	out := node{}
	for keyword, value := range schema {
		switch keyword {
		case "properties", "patternProperties":
			out[keyword] = l.each(value, l.value)
		case "$defs", "dependentSchemas":
			out[keyword] = l.each(value, l.same)
		case "additionalProperties", "items", "unevaluatedProperties", "unevaluatedItems":
			out[keyword] = l.value(value)
		case "prefixItems":
			out[keyword] = l.all(value, l.value)
		case "anyOf":
			out[keyword] = l.all(value, l.same)
		case "allOf":
			out[keyword] = append(listOf(out[keyword]), l.all(value, l.same)...)
		case "oneOf":
			// An expression may turn out to fit any of them.
			out["allOf"] = append(listOf(out["allOf"]), node{"anyOf": l.all(value, l.same)})
		case "if":
			out[keyword] = l.move(value) // Compile decides by it as it is
		case "then", "else":
			out[keyword] = l.same(value)
		case "not", "contains":
			// What must not be, or must be somewhere, cannot be told yet.
		case "$ref":
			out[keyword] = l.target(value)
		default:
			out[keyword] = value
		}
	}
	return out
}

// target is where a reference inside the schema leads now.
func (l loosener) target(reference any) any {
	text, _ := reference.(string)
	return l.root + strings.TrimPrefix(text, "#")
}

// move rewrites nothing but the references.
func (l loosener) move(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := node{}
		for name, member := range v {
			if out[name] = l.move(member); name == "$ref" {
				out[name] = l.target(member)
			}
		}
		return out
	case []any:
		return l.all(v, l.move)
	}
	return value
}

// same rewrites a schema that is about the same value as the one around it.
func (l loosener) same(schema any) any {
	if members, ok := schema.(map[string]any); ok {
		return l.loosen(members)
	}
	return schema
}

// value rewrites the schema of a value that may be written as an expression.
// What it says about itself stays outside, where editors look for it.
func (l loosener) value(schema any) any {
	members, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	strict, out := l.loosen(members), node{}
	for _, keyword := range []string{"title", "description", "default", "examples"} {
		if words, ok := strict[keyword]; ok {
			out[keyword] = words
			delete(strict, keyword)
		}
	}
	if fitsExpressions(strict) {
		maps.Copy(out, strict)
		return out
	}
	out["if"], out["else"] = ref("expression"), strict
	return out
}

// fitsExpressions tells whether a schema accepts any text as it is.
func fitsExpressions(schema node) bool {
	return len(schema) == 0 || len(schema) == 1 && schema["type"] == "string"
}

func (l loosener) each(schemas any, rewrite func(any) any) any {
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

func (l loosener) all(schemas any, rewrite func(any) any) []any {
	var out []any
	for _, schema := range listOf(schemas) {
		out = append(out, rewrite(schema))
	}
	return out
}

func listOf(value any) []any {
	out, _ := value.([]any)
	return out
}
