// Package approval is the action flow.approval: the run waits for the answer of
// a person, or of any caller who may give one.
package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/duration"
)

const (
	defaultTimeout = 7 * 24 * time.Hour
	longest        = 366 * 24 * time.Hour
	// TimedOut is the code of a step that nobody answered in time.
	TimedOut = "approval_timed_out"
)

// Entry declares the action.
func Entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:  "flow.approval",
			Title: "Ask for approval",
			Summary: "Waits until somebody approves or rejects, with a comment and data if they like. A rejection is no failure: " +
				"later steps look at `approved`. The wait survives restarts.",
			Pure:   true,
			Stores: true,
			Input: `{
				"type": "object",
				"additionalProperties": false,
				"properties": {
					"message": {"type": "string", "maxLength": 4000, "description": "What is to be decided, shown to whoever answers."},
					"timeout": {"type": "string", "description": "How long to wait, such as 2d; 7d unless given, at most 366d."},
					"on_timeout": {"type": "string", "enum": ["fail", "continue"], "description": "What follows when nobody answers: fail, unless given, or continue with approved being false."}
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"approved": {"type": "boolean"},
					"by": {"type": ["string", "null"], "description": "Who answered; null when nobody did."},
					"comment": {"type": ["string", "null"]},
					"data": {"description": "What came with the answer."}
				}
			}`,
			Check: check,
			Codes: []action.Code{{Name: TimedOut, Meaning: "Nobody answered in time, and on_timeout is not continue."}},
			Examples: []action.Example{{
				Title:  "Somebody approved",
				With:   `{"message": "Ship order 42?", "timeout": "2d"}`,
				Answer: `{"approved": true, "by": "key_01m7fe3gv0es8r65rzyjka792g", "comment": "Go ahead", "data": {"carrier": "express"}}`,
				Output: `{"approved": true, "by": "key_01m7fe3gv0es8r65rzyjka792g", "comment": "Go ahead", "data": {"carrier": "express"}}`,
			}},
		},
		Action: action.Func(run),
	}
}

func check(with map[string]any) []action.Problem {
	if _, err := limit(with); err != nil {
		return []action.Problem{{Pointer: "/timeout", Message: err.Error()}}
	}
	return nil
}

func limit(with map[string]any) (time.Duration, error) {
	text, ok := with["timeout"].(string)
	if !ok {
		return defaultTimeout, nil
	}
	d, err := duration.Parse(text)
	if err == nil && d > longest {
		err = fmt.Errorf("must be at most 366 days")
	}
	return d, err
}

func run(_ context.Context, req action.Request) (action.Result, error) {
	switch {
	case req.Answer != nil:
		return action.Result{Output: map[string]any{
			"approved": req.Answer["approved"], "by": req.Answer["by"], "comment": req.Answer["comment"], "data": req.Answer["data"],
		}}, nil
	case req.WokenAt.IsZero():
		return ask(req)
	case req.Input["on_timeout"] == "continue":
		return action.Result{Output: map[string]any{"approved": false, "by": nil, "comment": nil, "data": nil}}, nil
	}
	return action.Result{}, &action.Failure{Code: TimedOut, Message: "nobody answered until " + clock.Format(req.WokenAt)}
}

func ask(req action.Request) (action.Result, error) {
	length, err := limit(req.Input)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "timeout: " + err.Error()}
	}
	until := req.Now.Add(length)
	return action.Result{Wait: &action.Wait{
		Until: until, Awaits: action.AwaitsAnswer, Reason: "waits for somebody to approve or reject, until " + clock.Format(until),
	}}, nil
}
