// Package stop implements the action flow.stop, which ends the run immediately.
package stop

import (
	"context"

	"github.com/stepmill/stepmill/internal/action"
)

// Entry declares the action.
func Entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "flow.stop",
			Title:    "Stop the run",
			Keywords: []string{"end", "exit", "abort", "return", "throw error"},
			Summary:  "Ends the run immediately, even from inside a loop. Steps in progress are cancelled, and no further steps start.",
			Pure:     true,
			Stores:   true,
			Input: `{
				"type": "object",
				"additionalProperties": false,
				"properties": {
					"status": {"type": "string", "enum": ["succeeded", "failed"], "description": "The status of the run. Defaults to succeeded. failed sets its error to stopped."},
					"message": {"type": "string", "maxLength": 4000, "description": "The reason. It is written to the log, and is the error message of a failed run."}
				}
			}`,
			Output:   `{"type": "object"}`,
			Examples: []action.Example{{Title: "Nothing to do", With: `{"status": "succeeded", "message": "No new orders"}`, Output: `{}`}},
		},
		Action: action.Func(run),
	}
}

func run(_ context.Context, req action.Request) (action.Result, error) {
	message, _ := req.Input["message"].(string)
	if message != "" {
		req.Log(action.Info, message)
	}
	return action.Result{Output: map[string]any{}, Stop: &action.Stop{Failed: req.Input["status"] == "failed", Message: message}}, nil
}
