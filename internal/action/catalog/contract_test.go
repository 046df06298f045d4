package catalog_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/generated"
)

const contractPath = "../../../openapi/openapi.yaml"

// TestContract checks that the OpenAPI document has the actions with their inputs.
func TestContract(t *testing.T) {
	c, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	defs := definitions(t, c)
	var names, conditions, schemas strings.Builder
	for _, name := range c.Names() {
		entry, _ := c.Find(name)
		input := defs["with:"+name]
		fmt.Fprintf(&names, "- %s\n", name)
		conditions.WriteString(condition(entry.Spec, input))
		schemas.WriteString(inputSchema(t, entry.Spec, input))
	}
	generated.Sections(t, contractPath, map[string]string{
		"names of actions":             names.String(),
		"conditions on inputs":         conditions.String(),
		"schemas of inputs of actions": schemas.String(),
	}, *update)
}

// definitions returns the definitions in the JSON Schema of the format, in which every
// value of an input can also be an expression.
func definitions(t *testing.T, c *action.Catalog) map[string]map[string]any {
	t.Helper()
	types, err := triggers.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := workflow.Schema(c, types.Format(), false)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]map[string]any `yaml:"$defs"`
	}
	if err := yaml.Unmarshal(text, &schema); err != nil { // unlike JSON, YAML has integers
		t.Fatal(err)
	}
	return schema.Defs
}

// condition returns the condition that the input of a step matches the schema of its
// action.
func condition(spec action.Spec, input map[string]any) string {
	required := ""
	if input["required"] != nil || spec.ExactlyOne != nil {
		required = "    required: [with]\n"
	}
	return "- if:\n    required: [uses]\n    properties: {uses: {const: " + spec.Name + "}}\n" +
		"  then:\n" + required + "    properties: {with: {$ref: '#/components/schemas/" + schemaName(spec) + "'}}\n"
}

// schemaName returns the name of the schema of an input: HttpRequestInput.
func schemaName(spec action.Spec) string {
	var b strings.Builder
	for word := range strings.SplitSeq(spec.Name, ".") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + "Input"
}

func inputSchema(t *testing.T, spec action.Spec, input map[string]any) string {
	t.Helper()
	delete(input, "title") // the schema has a name
	input["description"] = "The input of `" + spec.Name + "`. " + spec.Summary + " " + outputWords(t, spec)
	for _, name := range spec.ExactlyOne {
		either, _ := input["oneOf"].([]any)
		input["oneOf"] = append(either, map[string]any{"required": []any{name}})
	}
	var declared, out yaml.Node
	if err := errors.Join(yaml.Unmarshal([]byte(spec.Input), &declared), out.Encode(inContract(input))); err != nil {
		t.Fatal(err)
	}
	arrange(&out, declared.Content[0])
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string]*yaml.Node{schemaName(spec): &out}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// outputWords describes the output of an action.
func outputWords(t *testing.T, spec action.Spec) string {
	t.Helper()
	var output struct {
		Description string
		Properties  yaml.Node
	}
	if err := yaml.Unmarshal([]byte(spec.Output), &output); err != nil {
		t.Fatal(err)
	}
	var members []string
	for i := 0; i < len(output.Properties.Content); i += 2 {
		members = append(members, "`"+output.Properties.Content[i].Value+"`")
	}
	switch {
	case members != nil:
		return "Members of the output: " + strings.Join(members, ", ") + "."
	case output.Description != "":
		return "Output: " + output.Description
	}
	return "The output is empty."
}

// inContract converts a schema of the format to one of the OpenAPI document.
func inContract(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = inContract(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = inContract(v[name])
		}
		if text, ok := v["description"].(string); ok {
			v["description"] = strings.ReplaceAll(text, "<", `\<`) // it is Markdown
		}
		if v["$ref"] == "#/$defs/expression" {
			v["$ref"] = expression["$ref"]
		}
		if v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = true
		}
		if strict, ok := v["else"].(map[string]any); ok && v["if"] != nil { // not a property of that name
			delete(v, "if")
			delete(v, "else")
			if acceptsExpressions(strict) {
				maps.Copy(v, strict)
			} else {
				v["anyOf"] = []any{strict, expression}
			}
		}
	}
	return value
}

var expression = map[string]any{"$ref": "#/components/schemas/Expression"}

// acceptsExpressions reports whether a schema accepts every text with an expression.
func acceptsExpressions(schema map[string]any) bool {
	types, _ := schema["type"].([]any)
	return len(schema) == 2 && (schema["type"] == "string" || slices.Contains(types, any("string"))) && schema["minLength"] == 1
}

// arrange puts the keywords of a schema and those of its properties, which are in the order
// of the declaration, in an order that people can read.
func arrange(schema, declared *yaml.Node) {
	sortMembers(schema, []string{"type", "description", "additionalProperties", "required", "oneOf", "anyOf", "properties"})
	for i := 0; i < len(schema.Content)-1; i += 2 {
		value := schema.Content[i+1]
		switch schema.Content[i].Value {
		case "properties":
			properties := memberOf(declared, "properties")
			var names []string
			for j := 0; j < len(properties.Content); j += 2 {
				names = append(names, properties.Content[j].Value)
			}
			sortMembers(value, names)
			for j := 0; j < len(value.Content); j += 2 {
				arrange(value.Content[j+1], memberOf(properties, value.Content[j].Value))
			}
		case "items":
			arrange(value, memberOf(declared, "items"))
		case "oneOf", "anyOf":
			for _, one := range value.Content {
				arrange(one, declared)
			}
		case "required", "enum", "type", "examples":
			value.Style = yaml.FlowStyle
		}
	}
}

// sortMembers puts the members of an object in the order of a list, the others at the end.
func sortMembers(object *yaml.Node, order []string) {
	rank := func(pair []*yaml.Node) int {
		if i := slices.Index(order, pair[0].Value); i >= 0 {
			return i
		}
		return len(order)
	}
	pairs := slices.Collect(slices.Chunk(object.Content, 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return cmp.Compare(rank(a), rank(b)) })
	object.Content = slices.Concat(pairs...)
}

func memberOf(object *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(object.Content); i += 2 {
		if object.Content[i].Value == name {
			return object.Content[i+1]
		}
	}
	return &yaml.Node{}
}
