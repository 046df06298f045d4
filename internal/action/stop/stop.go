// Package stop is the action flow.stop: it ends the run at once.
package stop

import (
	"context"

	"github.com/stepmill/stepmill/internal/action"
)

// Entry declares the action.
func Entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:    "flow.stop",
			Title:   "Stop the run",
			Summary: "Ends the run at once, also from inside a loop. Steps that are under way are cancelled, no other starts.",
			Pure:    true,
			Stores:  true,
			Input: `{
				"type": "object",
				"additionalProperties": false,
				"properties": {
					"status": {"type": "string", "enum": ["succeeded", "failed"], "description": "How the run ends: succeeded unless given."},
					"message": {"type": "string", "maxLength": 4000, "description": "Why: the error of a run that is to fail."}
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
