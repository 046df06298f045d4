// Package keys implements the actions state.*, which read and change keys: values
// that outlive a run. The ones that change keys return operations, which become part
// of the commit of the run; state.get reads through a Reader.
package keys

import (
	"context"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Reader reads keys.
type Reader interface {
	// GetKey returns nil if there is no such key.
	GetKey(ctx context.Context, scope state.Scope, name string) (*state.Key, error)
}

// Entries declares the actions.
func Entries(reader Reader) []action.Entry {
	return []action.Entry{deleteEntry(), getEntry(reader), incrementEntry(), setEntry()}
}

// The descriptions of fields that several actions have.
const (
	keyField     = `"key": {"type": "string", "minLength": 1, "description": "The name of the key: letters, digits and _ . : @ + = , ~ -, at most 200 characters."}`
	scopeField   = `"scope": {"type": "string", "enum": ["workflow", "workspace"], "default": "workflow", "description": "Whether the key belongs to this workflow or to the whole workspace."}`
	expiresField = `"expires_in": {"type": "string", "description": "How long the key exists, such as 90s, 24h or 30d; at most 3650d."}`
	expiresAt    = `"expires_at": {"type": ["string", "null"], "format": "date-time", "description": "When the key expires; null: never."}`
)

// onceLimit says what operations guarantee.
const onceLimit = "The change is part of the commit of the run: it happens exactly once, even if the server dies while the step is executed."

// storedLimit says what happens to values that must not be stored.
const storedLimit = "Keys are stored unencrypted: secrets are rejected in the input, and masked values of earlier steps are stored as ***."

// overLimit is an error code of the actions that store values.
var overLimit = action.Code{Name: string(fault.PlanLimitExceeded), Meaning: "The keys of the workspace would exceed a limit of the plan. The step is retried, because keys expire and are deleted in the meantime."}

func check(with map[string]any) []action.Problem {
	var problems []action.Problem
	if name, ok := with["key"].(string); ok {
		if err := state.CheckName(name); err != nil {
			problems = append(problems, action.Problem{Pointer: "/key", Message: messageOf(err)})
		}
	}
	if text, ok := with["expires_in"].(string); ok {
		if text == "" {
			problems = append(problems, action.Problem{Pointer: "/expires_in", Message: "must be a duration such as 24h"})
		} else if _, err := state.Expiry("", text, clock.Now()); err != nil {
			problems = append(problems, action.Problem{Pointer: "/expires_in", Message: messageOf(err)})
		}
	}
	return problems
}

// messageOf returns the message of a fault, without the name of its field.
func messageOf(err error) string {
	f, ok := fault.As(err)
	switch {
	case !ok:
		return err.Error()
	case len(f.Details) > 0:
		return f.Details[0].Message
	}
	return f.Message
}

// write returns an action that performs the operation that parse returns.
func write(parse func(in input, req action.Request) (state.Operation, error)) action.Action {
	return action.Func(func(_ context.Context, req action.Request) (action.Result, error) {
		if req.Answer != nil {
			return action.Performed(req.Answer)
		}
		in := input{members: req.MaskedInput} // nothing that is masked may be stored
		if err := state.CheckName(in.name()); err != nil {
			return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "with/key: " + messageOf(err)}
		}
		op, err := parse(in, req)
		if failure, ok := action.FailureOf(err); ok {
			return action.Result{}, failure
		}
		if err != nil {
			return action.Result{}, err
		}
		return action.Result{Operation: &action.Operation{Key: &state.Write{Scope: in.scope(req), Op: op}}}, nil
	})
}

// input is the input of an action, which matches its schema.
type input struct{ members map[string]any }

func (in input) name() string {
	name, _ := in.members["key"].(string)
	return name
}

func (in input) scope(req action.Request) state.Scope {
	scope := state.Scope{WorkspaceID: req.Workspace, Plan: req.Plan, At: req.Now}
	if in.members["scope"] != "workspace" {
		scope.WorkflowID = req.Run.WorkflowID
	}
	return scope
}

func setEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "state.set",
			Title:    "Set a key",
			Keywords: []string{"store", "remember", "cache", "memory", "variable", "lock", "deduplicate"},
			Summary:  "Stores a value under a key, exactly once. With if_absent, only the first run sets the key and the others see that it exists.",
			Writes:   true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["key", "value"],
				"additionalProperties": false,
				"properties": {
					` + keyField + `,
					"value": {"description": "The value: any JSON of at most 64 KiB."},
					` + expiresField + `,
					"if_absent": {"type": "boolean", "default": false, "description": "Whether to leave a key that exists as it is."},
					` + scopeField + `
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"set": {"type": "boolean", "description": "Whether this step has set the key. Only false with if_absent, if the key existed."},
					"created": {"type": "boolean", "description": "Whether the key is new."},
					"value": {"description": "The value that the key has now."},
					` + expiresAt + `
				}
			}`,
			Check:  check,
			Limits: []string{onceLimit, storedLimit, "A key expires at the given time after this step has started. Setting it again without expires_in makes it permanent."},
			Codes:  []action.Code{overLimit},
			Examples: []action.Example{{
				Title:  "Only the first run of a day gets true",
				With:   `{"key": "alert:disk-full", "value": true, "if_absent": true, "expires_in": "24h"}`,
				Output: `{"set": true, "created": true, "value": true, "expires_at": "2026-11-18T09:30:00.000Z"}`,
			}, {
				Title:  "A key that exists",
				With:   `{"key": "orders", "value": 1, "if_absent": true, "scope": "workspace"}`,
				Output: `{"set": false, "created": false, "value": 4, "expires_at": null}`,
			}},
		},
		Action: write(func(in input, req action.Request) (state.Operation, error) {
			text, err := strictjson.Encode(in.members["value"])
			if err != nil {
				return nil, err
			}
			op := state.Set{Name: in.name(), Files: expr.FilePointers(in.members["value"]), IfAbsent: in.members["if_absent"] == true}
			if op.Value, err = state.Compact(text); err != nil {
				return nil, err
			}
			expiresIn, _ := in.members["expires_in"].(string)
			op.Expires, err = state.Expiry("/expires_in", expiresIn, req.Now)
			return op, err
		}),
	}
}

func incrementEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "state.increment",
			Title:    "Increment a key",
			Keywords: []string{"count", "counter", "memory"},
			Summary:  "Adds to the number under a key, exactly once. No increment is lost, however many runs do this at the same time.",
			Writes:   true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["key"],
				"additionalProperties": false,
				"properties": {
					` + keyField + `,
					"by": {"type": "number", "default": 1, "description": "What to add. A key that does not exist counts as 0. Sums are exact."},
					"expires_in": {"type": "string", "description": "How long a new key exists, such as 90s, 24h or 30d; at most 3650d."},
					` + scopeField + `
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"set": {"type": "boolean", "description": "Always true."},
					"created": {"type": "boolean", "description": "Whether the key is new."},
					"value": {"type": "number", "description": "The sum."},
					` + expiresAt + `
				}
			}`,
			Check:  check,
			Limits: []string{onceLimit, "expires_in applies to a new key: counting does not extend the life of a counter."},
			Codes:  []action.Code{overLimit},
			Examples: []action.Example{{
				Title:  "Count an order",
				With:   `{"key": "orders", "scope": "workspace"}`,
				Output: `{"set": true, "created": false, "value": 5, "expires_at": null}`,
			}},
		},
		Action: write(func(in input, req action.Request) (op state.Operation, err error) {
			increment := state.Increment{Name: in.name()}
			if by, given := in.members["by"]; given {
				if increment.By, err = strictjson.Encode(by); err != nil {
					return nil, err
				}
			}
			expiresIn, _ := in.members["expires_in"].(string)
			increment.Expires, err = state.Expiry("/expires_in", expiresIn, req.Now)
			return increment, err
		}),
	}
}

func deleteEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "state.delete",
			Title:    "Delete a key",
			Keywords: []string{"forget", "clear", "unlock", "memory"},
			Summary:  "Deletes a key, exactly once. It is not a failure if there is none.",
			Writes:   true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["key"],
				"additionalProperties": false,
				"properties": {
					` + keyField + `,
					` + scopeField + `
				}
			}`,
			Output: `{"type": "object", "properties": {"deleted": {"type": "boolean", "description": "Whether the key existed."}}}`,
			Check:  check,
			Limits: []string{onceLimit},
			Examples: []action.Example{{
				Title:  "A key of the workspace",
				With:   `{"key": "orders", "scope": "workspace"}`,
				Output: `{"deleted": true}`,
			}},
		},
		Action: write(func(in input, _ action.Request) (state.Operation, error) {
			return state.Delete{Name: in.name()}, nil
		}),
	}
}

func getEntry(reader Reader) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "state.get",
			Title:    "Get a key",
			Keywords: []string{"remember", "cache", "memory", "variable"},
			Summary:  "Reads the value under a key. It is not a failure if there is none.",
			Input: `{
				"type": "object",
				"required": ["key"],
				"additionalProperties": false,
				"properties": {
					` + keyField + `,
					"default": {"description": "The value of the output if there is no such key. Null by default."},
					` + scopeField + `
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"found": {"type": "boolean", "description": "Whether there is such a key that has not expired."},
					"value": {"description": "The value, or the default."},
					` + expiresAt + `
				}
			}`,
			Check:  check,
			Limits: []string{"The key can change between this step and a later one. To decide and change at once, use state.set with if_absent or state.increment."},
			Codes:  []action.Code{action.ReadFailed},
			Examples: []action.Example{{
				Title:  "A counter",
				With:   `{"key": "orders", "scope": "workspace"}`,
				Output: `{"found": true, "value": 4, "expires_at": null}`,
			}, {
				Title:  "A key that does not exist",
				With:   `{"key": "cursor", "default": "start"}`,
				Output: `{"found": false, "value": "start", "expires_at": null}`,
			}},
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return get(ctx, reader, req)
		}),
	}
}

func get(ctx context.Context, reader Reader, req action.Request) (action.Result, error) {
	in := input{members: req.Input}
	found, err := reader.GetKey(ctx, in.scope(req), in.name())
	if err != nil {
		return action.Result{}, action.ReadError(ctx, err)
	}
	if found == nil {
		return action.Result{Output: map[string]any{"found": false, "value": in.members["default"], "expires_at": nil}}, nil
	}
	value, err := expr.FromJSONWithFiles(found.Value, found.Files)
	if err != nil {
		return action.Result{}, err
	}
	var expires any
	if found.ExpiresAt != nil {
		expires = clock.Format(*found.ExpiresAt)
	}
	return action.Result{Output: map[string]any{"found": true, "value": value, "expires_at": expires}, Files: len(found.Files) > 0}, nil
}
