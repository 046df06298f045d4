package workflow

import (
	"maps"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
)

// triggerSchema lists the members of all types of triggers. Which ones are allowed
// depends on the type of a trigger.
func triggerSchema(types *TriggerTypes, actions *action.Catalog, services bool) (node, error) {
	properties, err := types.properties(actions)
	if err != nil {
		return nil, err
	}
	var summaries []string
	for _, kind := range types.all() {
		summaries = append(summaries, kind.Summary)
	}
	properties["id"] = refWith("id", "Id", "The name of the trigger, unique among the triggers.")
	kinds := []node{enumSchema(types.Names(), summaries)}
	switch {
	case !types.hasServices():
	case services:
		kinds = append(kinds, enumSchema(types.serviceNames(), nil), ownName())
	default:
		kinds = append(kinds, anyServiceName())
	}
	properties["type"] = node{"title": "Type", "description": "What starts runs.", "type": "string", "anyOf": kinds}
	trigger := objectSchema("Trigger", "Something that starts runs. Triggers fire only while the workflow is active.", properties)
	trigger["required"] = []string{"id", "type"}
	trigger["allOf"] = triggerCases(types, actions)
	return trigger, nil
}

// triggerCases returns the required and allowed members of each type.
func triggerCases(types *TriggerTypes, actions *action.Catalog) []node {
	var cases []node
	for _, kind := range types.all() {
		allowed := node{"id": true, "type": true}
		for name := range kind.members(actions) {
			allowed[name] = true
		}
		if kind.Input != nil {
			allowed["with"] = kind.Input
		}
		then := node{"properties": allowed, "additionalProperties": false}
		maps.Copy(then, kind.Rule)
		cases = append(cases, node{"if": node{"properties": node{"type": node{"const": kind.Name}}, "required": []string{"type"}}, "then": then})
	}
	if types.hasServices() {
		cases = append(cases, types.serviceCase())
	}
	return cases
}

// serviceCase returns the allowed members of the types of services. What is in `with` is
// checked when the workflow is saved: there are too many of them for a schema that editors
// read as a whole.
func (t *TriggerTypes) serviceCase() node {
	allowed := node{"id": true, "type": true, "with": true}
	for name := range t.services.Members() {
		allowed[name] = true
	}
	return node{
		"if":   node{"properties": node{"type": node{"pattern": `\.`}}, "required": []string{"type"}},
		"then": node{"properties": allowed, "additionalProperties": false, "required": []string{"connection"}},
	}
}

// DurationSchema returns the JSON Schema of a duration.
func DurationSchema(title, description string) map[string]any {
	return durationProperty(title, description)
}

// IntervalSchema returns the JSON Schema of the interval of a trigger.
func IntervalSchema() map[string]any {
	return durationProperty("Every", "The interval, at least "+clock.FormatDuration(minInterval)+".")
}

// InputSchema returns the JSON Schema of the input of an action in the catalog. The
// input can contain expressions.
func InputSchema(name, title, description string) map[string]any {
	return refWith(inputDef(name), title, description)
}
