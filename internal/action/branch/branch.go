// Package branch implements the action flow.switch, which decides which of its paths a run
// takes.
package branch

import (
	"context"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
)

// Entry declares the action.
func Entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:    "flow.switch",
			Title:   "Branch",
			Summary: "Takes one path or another, depending on conditions: the first that applies or, with match: all, each of them. A later step is on a path if it has the path in needs, such as size.big.",
			Keywords: []string{
				"if", "if else", "else", "switch", "condition", "case", "filter", "router", "split", "split into paths", "decision", "when",
			},
			Pure: true,
			Input: `{
				"type": "object",
				"required": ["paths"],
				"additionalProperties": false,
				"properties": {
					"paths": {
						"type": "array", "minItems": 1, "maxItems": 50, "x-literal": "list the paths; each condition is an expression",
						"description": "The paths, in the order in which their conditions are evaluated.",
						"items": {
							"type": "object", "x-literal": "an object with id and when",
							"required": ["id", "when"],
							"additionalProperties": false,
							"properties": {
								"id": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,62}$", "x-literal": "write the id itself", "description": "The name that needs uses for the path, unique in the step. It cannot be error."},
								"name": {"type": "string", "minLength": 1, "maxLength": 200, "x-literal": "write the name itself", "description": "The name that people see. Defaults to the id."},
								"when": {"type": ["string", "boolean"], "minLength": 1, "description": "The condition: an expression, with or without ${{ }}, or true or false."}
							}
						}
					},
					"else": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,62}$", "x-literal": "write the id itself", "description": "The id of the path that is taken if no condition is true. Without it, no path is taken then."},
					"match": {"type": "string", "enum": ["first", "all"], "default": "first", "x-literal": "write first or all", "description": "first takes the first path whose condition is true, and does not evaluate the conditions after it. all takes every path whose condition is true."}
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"path": {"type": ["string", "null"], "description": "The id of the path that was taken, or null. Not with match: all."},
					"paths": {"type": "array", "items": {"type": "string"}, "description": "The ids of the paths that were taken. Only with match: all."}
				}
			}`,
			Examples: []action.Example{
				{
					Title:  "By the total of an order, here 50",
					With:   `{"paths": [{"id": "big", "name": "Over 100", "when": "trigger.payload.total > 100"}, {"id": "medium", "when": "trigger.payload.total > 20"}], "else": "small"}`,
					Output: `{"path": "medium"}`,
				},
				{
					Title:  "Every path that applies, with the same order",
					With:   `{"paths": [{"id": "mail", "when": "trigger.payload.total > 20"}, {"id": "chat", "when": "trigger.payload.total > 100"}, {"id": "log", "when": true}], "match": "all"}`,
					Output: `{"paths": ["mail", "log"]}`,
				},
			},
		},
		Action: action.Func(run),
	}
}

// run decides from the results of the conditions, which the engine has evaluated. Those that
// it did not need to evaluate have none.
func run(_ context.Context, req action.Request) (action.Result, error) {
	taken := []any{}
	paths, _ := req.Input["paths"].([]any)
	for _, each := range paths {
		path, ok := each.(map[string]any)
		if !ok {
			return action.Result{}, fmt.Errorf("a path is a %T", each)
		}
		if path["when"] == true {
			taken = append(taken, path["id"])
		}
	}
	if fallback, ok := req.Input["else"]; ok && len(taken) == 0 {
		taken = append(taken, fallback)
	}
	switch {
	case req.Input["match"] == "all":
		return action.Result{Output: map[string]any{"paths": taken}}, nil
	case len(taken) == 0:
		return action.Result{Output: map[string]any{"path": nil}}, nil
	}
	return action.Result{Output: map[string]any{"path": taken[0]}}, nil
}
