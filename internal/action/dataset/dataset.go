// Package dataset implements the action data.set, which builds an object.
package dataset

import (
	"context"

	"github.com/stepmill/stepmill/internal/action"
)

// Entry declares the action.
func Entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "data.set",
			Title:    "Build an object",
			Keywords: []string{"set", "edit fields", "variable", "assign", "map", "transform", "format", "merge", "combine", "filter a list"},
			Summary:  "Builds an object from literal values and expressions. Later steps read it as the step's output.",
			Pure:     true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["values"],
				"additionalProperties": false,
				"properties": {
					"values": {"type": "object", "description": "The object to build. Expressions are allowed anywhere inside."}
				}
			}`,
			Output: `{"type": "object", "description": "The object that was built."}`,
			Examples: []action.Example{{
				Title:  "A greeting",
				With:   `{"values": {"greeting": "Hello", "tags": ["a", 1, null]}}`,
				Output: `{"greeting": "Hello", "tags": ["a", 1, null]}`,
			}},
		},
		Action: action.Func(func(_ context.Context, req action.Request) (action.Result, error) {
			return action.Result{Output: req.Input["values"]}, nil
		}),
	}
}
