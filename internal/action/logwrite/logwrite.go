// Package logwrite implements the action log.write, which adds a line to the log
// of its step.
package logwrite

import (
	"context"

	"github.com/stepmill/stepmill/internal/action"
)

// Entry declares the action.
func Entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "log.write",
			Title:    "Write to the log",
			Keywords: []string{"print", "debug", "console"},
			Summary:  "Adds a line to the log of the step. Text beyond 2 KiB is truncated.",
			Pure:     true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["message"],
				"additionalProperties": false,
				"properties": {
					"message": {"type": "string", "description": "The line to write."},
					"level": {"type": "string", "enum": ["debug", "info", "warn", "error"], "description": "The severity. Defaults to info."}
				}
			}`,
			Output:   `{"type": "object"}`,
			Examples: []action.Example{{Title: "A warning", With: `{"message": "The stock is low", "level": "warn"}`, Output: `{}`}},
		},
		Action: action.Func(run),
	}
}

func run(_ context.Context, req action.Request) (action.Result, error) {
	level := action.Info
	if name, ok := req.Input["level"].(string); ok {
		level = action.Level(name)
	}
	message, _ := req.Input["message"].(string)
	req.Log(level, message)
	return action.Result{Output: map[string]any{}}, nil
}
