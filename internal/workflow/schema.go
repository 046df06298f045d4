package workflow

import (
	"fmt"
	"maps"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// SchemaID is the id of the JSON Schema of the format, whatever URL serves it.
const SchemaID = "urn:stepmill:schema:workflow:v1"

// node is a JSON Schema, or a part of one.
type node map[string]any

// Schema returns the JSON Schema of the workflow format for editors, including
// the inputs of the actions in the catalog and the types of triggers. It covers only local rules; rules
// about the whole workflow, such as cycles, are checked by Compile. The schema
// accepts the canonical form of everything that Compile accepts.
//
// With services, it lists the actions and the types of triggers of services. Without them,
// it accepts every name that has their form, and does not grow with their number.
func Schema(catalog *action.Catalog, types *TriggerTypes, services bool) ([]byte, error) {
	inputs, err := inputSchemas(catalog)
	if err != nil {
		return nil, err
	}
	trigger, err := triggerSchema(types, catalog, services)
	if err != nil {
		return nil, err
	}
	defs := node{
		"id":          idSchema(),
		"duration":    durationSchema(),
		"expression":  expressionSchema(),
		"trigger":     trigger,
		"step":        stepSchema(catalog, services),
		"block":       blockSchema(),
		"action":      actionSchema(inputs),
		"retry":       retrySchema(),
		"repeat":      repeatSchema(),
		"settings":    settingsSchema(),
		"concurrency": concurrencySchema(),
		"layout":      layoutSchema(),
	}
	for name, input := range inputs {
		defs[inputDef(name)] = input
	}
	maps.Copy(defs, types.definitions())
	text, err := strictjson.Encode(documentSchema(defs))
	if err != nil {
		return nil, fmt.Errorf("schema of the format: %w", err)
	}
	return append(text, '\n'), nil
}

// Schema returns the JSON Schema of the format, which lists what services can do or not. It
// is built on first use and shared by all callers, who must not modify it.
func (s *Service) Schema(services bool) ([]byte, error) {
	if services {
		return s.schema()
	}
	return s.shortSchema()
}

func documentSchema(defs node) node {
	return node{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"$id":                  SchemaID,
		"title":                "Stepmill workflow",
		"description":          "A workflow: what starts it, its steps and its settings.",
		"type":                 "object",
		"additionalProperties": false,
		"properties": node{
			"name": node{
				"title": "Name", "description": "The name shown in lists; a single line.",
				"type": "string", "minLength": 1, "maxLength": maxName,
			},
			"description": node{
				"title": "Description", "description": "What the workflow is for.",
				"type": []string{"string", "null"}, "maxLength": maxDescription,
			},
			"state": node{
				"title": "State", "description": "draft: work in progress, can be run as a test. active: triggers fire. paused: no runs start.",
				"type": "string", "enum": States(),
			},
			"triggers": arraySchema("Triggers", "What starts runs. Any workflow can also be started through the API, without a trigger.", ref("trigger")),
			"steps":    arraySchema("Steps", "What the workflow does. A step without needs runs after the one before it, so a plain list is a sequence.", ref("step")),
			"settings": ref("settings"),
			"layout":   ref("layout"),
		},
		"$defs": defs,
	}
}

func ref(def string) node { return node{"$ref": "#/$defs/" + def} }

// refWith returns a reference with its own title and description.
func refWith(def, title, description string) node {
	return node{"$ref": "#/$defs/" + def, "title": title, "description": description}
}

func arraySchema(title, description string, items node) node {
	return node{"title": title, "description": description, "type": "array", "items": items}
}

// objectSchema returns an object with no other members than the given ones.
func objectSchema(title, description string, properties node) node {
	return node{
		"title": title, "description": description, "type": "object", "additionalProperties": false, "properties": properties,
	}
}

// integerSchema returns an integer of at least 1.
func integerSchema(title, description string, limit, standard int) node {
	return node{
		"title": title, "description": description, "type": "integer", "minimum": 1, "maximum": limit, "default": standard,
	}
}

func idSchema() node {
	return node{
		"title": "Id", "description": "A letter a-z, followed by up to 62 characters of a-z, 0-9 and _.",
		"type": "string", "pattern": idPattern.String(),
	}
}

// durationSchema accepts every well-formed duration. A pattern cannot check its
// bounds.
func durationSchema() node {
	const number = `([0-9]+\.?[0-9]*|\.[0-9]+)`
	return node{
		"title": "Duration", "description": "A duration such as 90s, 15m, 1h30m or 3d.",
		"type":     "string",
		"pattern":  "^(" + number + "d(" + number + "(ns|us|µs|μs|ms|s|m|h))*|(" + number + "(ns|us|µs|μs|ms|s|m|h))+)$",
		"examples": []string{"90s", "15m", "1h30m", "3d"},
	}
}

// expressionSchema matches text whose value is known only at run time.
func expressionSchema() node {
	return node{
		"title": "Expression", "description": "Text with an expression between ${{ and }}. If the expression is the whole text, the result keeps its type.",
		"type": "string", "pattern": `\$\{\{`,
	}
}
