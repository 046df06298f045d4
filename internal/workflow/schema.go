package workflow

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// SchemaID names the JSON Schema of the format, wherever it is served.
const SchemaID = "urn:stepmill:schema:workflow:v1"

// node is a JSON Schema, or a part of one.
type node map[string]any

// Schema returns the JSON Schema of a workflow as people write it, for editors:
// the format with the inputs of the actions that the catalog has. It knows what
// can be seen from one place; what takes the whole workflow, such as steps that
// wait for each other, is left to Compile. What Compile accepts, in its
// canonical form, the schema accepts.
func Schema(catalog *action.Catalog) ([]byte, error) {
	inputs, err := inputSchemas(catalog)
	if err != nil {
		return nil, err
	}
	defs := node{
		"id":          idSchema(),
		"duration":    durationSchema(),
		"expression":  expressionSchema(),
		"trigger":     triggerSchema(inputs),
		"verify":      verifySchema(),
		"step":        stepSchema(catalog),
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
	text, err := strictjson.Encode(documentSchema(defs))
	if err != nil {
		return nil, fmt.Errorf("schema of the format: %w", err)
	}
	return append(text, '\n'), nil
}

// Schema returns the JSON Schema of the format. It is made on first use and
// shared by all callers, who must not change it.
func (s *Service) Schema() ([]byte, error) { return s.schema() }

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
				"title": "Name", "description": "What people see in lists, on one line.",
				"type": "string", "minLength": 1, "maxLength": maxName,
			},
			"description": node{
				"title": "Description", "description": "What the workflow is for.",
				"type": []string{"string", "null"}, "maxLength": maxDescription,
			},
			"state": node{
				"title": "State", "description": "draft: being written, can be run to try it. active: in use, triggers fire. paused: starts no runs.",
				"type": "string", "enum": States(),
			},
			"triggers": list("Triggers", "What starts runs. Every workflow can be started by a request, also without an entry here.", ref("trigger")),
			"steps":    list("Steps", "What the workflow does. A step without needs comes after the one before it, so a plain list is a sequence.", ref("step")),
			"settings": ref("settings"),
			"layout":   ref("layout"),
		},
		"$defs": defs,
	}
}

func ref(def string) node { return node{"$ref": "#/$defs/" + def} }

// described is a reference with words of its own.
func described(def, title, description string) node {
	return node{"$ref": "#/$defs/" + def, "title": title, "description": description}
}

func list(title, description string, items node) node {
	return node{"title": title, "description": description, "type": "array", "items": items}
}

// closed is an object that has only these members.
func closed(title, description string, properties node) node {
	return node{
		"title": title, "description": description, "type": "object", "additionalProperties": false, "properties": properties,
	}
}

// whole is a whole number from 1 on.
func whole(title, description string, most, standard int) node {
	return node{
		"title": title, "description": description, "type": "integer", "minimum": 1, "maximum": most, "default": standard,
	}
}

func idSchema() node {
	return node{
		"title": "Id", "description": "A letter a-z, then up to 62 of a-z, 0-9 and _.",
		"type": "string", "pattern": idPattern.String(),
	}
}

// durationSchema takes everything that can be a length of time; how long it may
// be is not for a pattern to say.
func durationSchema() node {
	const number = `([0-9]+\.?[0-9]*|\.[0-9]+)`
	return node{
		"title": "Length of time", "description": "A length of time such as 90s, 15m, 1h30m or 3d.",
		"type":     "string",
		"pattern":  "^(" + number + "d(" + number + "(ns|us|µs|μs|ms|s|m|h))*|(" + number + "(ns|us|µs|μs|ms|s|m|h))+)$",
		"examples": []string{"90s", "15m", "1h30m", "3d"},
	}
}

// expressionSchema tells text whose value is not known before the run.
func expressionSchema() node {
	return node{
		"title": "Expression", "description": "Text with an expression between ${{ and }}. Alone in the text it keeps the type of its result.",
		"type": "string", "pattern": `\$\{\{`,
	}
}
