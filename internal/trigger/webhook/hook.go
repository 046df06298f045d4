package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/signature"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// CodeInvalidResponse is the code of the note that the response of the workflow cannot be
// sent.
const CodeInvalidResponse = "response_invalid"

// HookStore finds the trigger and the workspace of a call.
type HookStore interface {
	TriggerByToken(ctx context.Context, hash []byte) (*trigger.Trigger, error)
	Workspace(ctx context.Context, id string) (*auth.Workspace, error)
}

// Hooks handles calls of webhook triggers.
type Hooks struct {
	store    HookStore
	programs trigger.Programs
	runs     trigger.Runs
	values   trigger.Values
	inbox    *trigger.Inbox
	files    Files
}

// NewHooks returns Hooks that record calls in an inbox.
func NewHooks(store HookStore, programs trigger.Programs, runs trigger.Runs, values trigger.Values, inbox *trigger.Inbox, files Files) *Hooks {
	return &Hooks{store: store, programs: programs, runs: runs, values: values, inbox: inbox, files: files}
}

// Hook is a webhook that is being called.
type Hook struct {
	trigger.Trigger
	Workspace auth.Workspace
	compiled  workflow.CompiledTrigger
	config    *Config
}

// Known reports whether a caller may learn that the hook exists.
func (h Hook) Known() bool { return h.Active || h.Listening() }

// Actor returns the actor that the hook acts as.
func (h Hook) Actor(requestID string) auth.Actor {
	return auth.Actor{Workspace: h.Workspace, Type: audit.ActorSystem, RequestID: requestID}
}

// Methods returns the allowed methods.
func (h Hook) Methods() []string { return h.config.Methods }

// PerMinute returns the limit of calls per minute.
func (h Hook) PerMinute() int { return h.config.PerMinute }

// Waits reports whether the caller waits for the result of the run.
func (h Hook) Waits() bool { return h.config.Respond == workflow.RespondResult }

// Find returns the hook of a token, even if its workflow is not active: callers
// must not learn that the hook exists.
func (h *Hooks) Find(ctx context.Context, token string) (Hook, error) {
	if !trigger.ValidToken(token) {
		return Hook{}, trigger.NothingHere()
	}
	found, err := h.store.TriggerByToken(ctx, trigger.HashToken(token))
	if err != nil {
		return Hook{}, err
	}
	if found == nil {
		return Hook{}, trigger.NothingHere()
	}
	hook := Hook{Trigger: *found}
	workspace, err := h.store.Workspace(ctx, found.WorkspaceID)
	if err != nil {
		return Hook{}, err
	}
	program, err := h.programs.Get(ctx, found.WorkflowID, found.Version)
	if err != nil {
		return Hook{}, err
	}
	if workspace == nil || program == nil { // just deleted
		return Hook{}, trigger.NothingHere()
	}
	i := slices.IndexFunc(program.Triggers, func(t workflow.CompiledTrigger) bool { return t.ID == found.ID })
	if i < 0 || program.Triggers[i].Type != workflow.WebhookTrigger {
		return Hook{}, trigger.NothingHere()
	}
	hook.Workspace, hook.compiled = *workspace, program.Triggers[i]
	hook.config = hook.compiled.Config.(*Config)
	return hook, nil
}

// Verifier verifies a call of a hook in two steps: its headers, which arrive first,
// then its body. Only the owner of the hook learns why a call is rejected.
type Verifier struct {
	hooks *Hooks
	hook  Hook
	rule  *signature.Rule // nil: calls are not verified
}

// Verifier returns the verifier of a hook.
func (h *Hooks) Verifier(ctx context.Context, hook Hook) (Verifier, error) {
	v := Verifier{hooks: h, hook: hook}
	rule, err := h.rule(ctx, hook)
	v.rule = rule
	return v, v.explain(err)
}

// NeedsBody reports whether a call is verified only by its body.
func (v Verifier) NeedsBody() bool { return v.rule != nil && v.rule.SignsBody() }

// Begin returns an error if the headers show that a call is not genuine. Otherwise the
// body is written to the check, as it arrives.
func (v Verifier) Begin(header http.Header) (*Check, error) {
	if v.rule == nil {
		return &Check{of: v}, nil
	}
	check, err := v.rule.Begin(clock.Now(), header)
	return &Check{of: v, check: check}, v.explain(err)
}

// Check is the verification of a call.
type Check struct {
	of    Verifier
	check *signature.Check // nil: calls are not verified
}

// Write adds a part of the body. It never fails.
func (c *Check) Write(p []byte) (int, error) {
	if c.check == nil {
		return len(p), nil
	}
	return c.check.Write(p)
}

// Finish returns an error if the call is not genuine.
func (c *Check) Finish() error {
	if c.check == nil {
		return nil
	}
	return c.of.explain(c.check.Finish())
}

// explain records the reason of a rejection for the owner of the hook, and returns
// the error for the caller.
func (v Verifier) explain(err error) error {
	rejection, ok := errors.AsType[*signature.Rejection](err)
	if !ok {
		return err
	}
	v.hooks.inbox.Note(v.hook.Trigger, &trigger.Note{At: clock.Now(), Code: trigger.CodeSignatureRejected, Message: rejection.Reason}, nil)
	return trigger.NotGenuine().Because(rejection)
}

// rule returns the verification rule of a hook with its secrets decrypted, or nil
// if calls are not verified.
func (h *Hooks) rule(ctx context.Context, hook Hook) (*signature.Rule, error) {
	v := hook.config.Verification
	if v == nil || v.Scheme == workflow.SchemeNone {
		return nil, nil
	}
	env := &expr.Env{Now: clock.Now()}
	var err error
	if env.Secrets, err = h.values.Open(ctx, hook.WorkspaceID, hook.compiled.Secrets); err != nil {
		return nil, err
	}
	for _, name := range hook.compiled.Secrets {
		if env.Secrets[name] == "" {
			return nil, &signature.Rejection{Reason: fmt.Sprintf("the secret %q no longer exists", name)}
		}
	}
	if hook.compiled.Vars {
		if env.Vars, err = h.values.Vars(ctx, hook.WorkspaceID); err != nil {
			return nil, err
		}
	}
	rule := &signature.Rule{
		Scheme: signature.Scheme(v.Scheme), Header: v.Header, Algorithm: v.Algorithm, Encoding: v.Encoding, Prefix: v.Prefix,
		Timestamp: v.Timestamp, Signed: v.Signed, Tolerance: v.Tolerance,
	}
	for _, part := range []struct {
		from *expr.Template
		into *string
	}{{v.Secret, &rule.Secret}, {v.Username, &rule.Username}} {
		if part.from == nil {
			continue
		}
		value, err := part.from.Eval(env, expr.Budget{})
		if err != nil {
			return nil, &signature.Rejection{Reason: "the secret of the trigger cannot be evaluated"}
		}
		*part.into = fmt.Sprint(value)
	}
	return rule, nil
}
