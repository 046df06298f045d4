package integration

import (
	"reflect"

	"github.com/stepmill/stepmill/internal/typeschema"
)

func triggerTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[named[manifestTrigger]](): {
			Values: reflect.TypeFor[manifestTrigger](), Keywords: node{"propertyNames": names(operationName)},
		},
		reflect.TypeFor[manifestTrigger](): {
			Name: "trigger", Title: "Trigger", Required: []string{"title"},
			Members: map[string]any{
				"title":      requiredText("What people see, such as “New message”."),
				"summary":    "A sentence about it, if the title does not say everything.",
				"input":      "The settings, in the order of the form.",
				"hook":       "The hook with which the service tells what is new. Beside a poll, a call makes the poll due.",
				"poll":       "How to look for new items.",
				"when":       expression("Whether an item starts a run."),
				"key":        expression("Identifies an item, such as item.id. What has the same key is not new. Default: the key of the hook."),
				"output":     "The payload of the run, an object. Default: the item.",
				"deprecated": "What replaces the trigger.",
			},
			Keywords: node{"if": node{"required": []string{"poll"}}, "then": node{"required": []string{"key"}}, "else": node{"required": []string{"hook"}}},
		},
		reflect.TypeFor[manifestPoll](): {
			Name: "poll", Required: []string{"operation", "every"},
			Members: map[string]any{
				"operation": "The operation that reads the items. It gets the inputs of the trigger by their names, and reads cursor.",
				"every":     duration("How often it looks, unless a workflow says otherwise."),
				"start":     "The first cursor. Without it, what the first poll finds is not new.",
				"cursor":    expression("Where the next poll goes on, as the answer says. It reads that as cursor. Nil keeps the present one."),
				"more":      expression("Whether there are further items, which are read at once."),
				"reset":     expression("Whether an answer says that the service no longer knows the cursor."),
			},
			Keywords: node{"dependentRequired": node{"start": []string{"cursor"}, "more": []string{"cursor"}, "reset": []string{"cursor"}}},
		},
		reflect.TypeFor[manifestStart](): {Schema: node{"anyOf": []node{
			requiredText("The first cursor, such as ${{ now() }}."),
			{"$ref": "#/$defs/call", "required": []string{"output"}, "properties": node{"id": false, "if": false, "page": false, "batch": false, "chunk": false}},
		}}},
	}
}
