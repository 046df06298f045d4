package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/signature"
	"github.com/stepmill/stepmill/internal/workflow"
)

// HookPath is where hooks are called, below the public URL of the service.
const HookPath = "/hooks/"

// keyTime is how long a call that has a key can be repeated and starts nothing.
const keyTime = 24 * time.Hour

// Codes of notes about hooks.
const (
	CodeRefused         = "signature_refused" // a call was not proven to be genuine
	CodeInvalidResponse = "response_invalid"  // what the workflow returns cannot be sent
)

// HookStore finds what a call is for.
type HookStore interface {
	TriggerByToken(ctx context.Context, hash []byte) (*Trigger, error)
	Workspace(ctx context.Context, id string) (*auth.Workspace, error)
}

// Hooks takes the calls of webhooks.
type Hooks struct {
	store  HookStore
	plans  Plans
	runs   Runs
	values Values
	inbox  *Inbox
}

// NewHooks takes calls and notes them in an inbox.
func NewHooks(store HookStore, plans Plans, runs Runs, values Values, inbox *Inbox) *Hooks {
	return &Hooks{store: store, plans: plans, runs: runs, values: values, inbox: inbox}
}

// Hook is a webhook that is being called.
type Hook struct {
	Trigger
	Workspace auth.Workspace
	planned   workflow.PlannedTrigger
}

// Actor is on whose behalf the hook acts.
func (h Hook) Actor(requestID string) auth.Actor {
	return auth.Actor{Workspace: h.Workspace, Type: audit.ActorSystem, RequestID: requestID}
}

// Methods are those that it can be called with.
func (h Hook) Methods() []string { return h.planned.Methods }

// PerMinute is how many calls it takes in a minute.
func (h Hook) PerMinute() int { return h.planned.PerMinute }

// Waits says that the caller gets the result of the run.
func (h Hook) Waits() bool { return h.planned.Respond == workflow.RespondResult }

// NothingHere is the answer to every call that leads nowhere, whatever the
// reason.
func NothingHere() error { return fault.New(fault.NotFound, "there is nothing here") }

// Find finds the hook that a token belongs to. One whose workflow is not active
// is found too: nobody outside may learn of it.
func (h *Hooks) Find(ctx context.Context, token string) (Hook, error) {
	if !validToken(token) {
		return Hook{}, NothingHere()
	}
	found, err := h.store.TriggerByToken(ctx, HashToken(token))
	if err != nil {
		return Hook{}, err
	}
	if found == nil {
		return Hook{}, NothingHere()
	}
	hook := Hook{Trigger: *found}
	workspace, err := h.store.Workspace(ctx, found.WorkspaceID)
	if err != nil {
		return Hook{}, err
	}
	plan, err := h.plans.Get(ctx, found.WorkflowID, found.Version)
	if err != nil {
		return Hook{}, err
	}
	if workspace == nil || plan == nil { // just deleted
		return Hook{}, NothingHere()
	}
	i := slices.IndexFunc(plan.Triggers, func(t workflow.PlannedTrigger) bool { return t.ID == found.ID })
	if i < 0 || plan.Triggers[i].Type != workflow.WebhookTrigger {
		return Hook{}, NothingHere()
	}
	hook.Workspace, hook.planned = *workspace, plan.Triggers[i]
	return hook, nil
}

// Verify tells whether a call is genuine. What is wrong with it is for the owner
// of the hook to know.
func (h *Hooks) Verify(ctx context.Context, hook Hook, call Call) error {
	rule, err := h.rule(ctx, hook)
	if err == nil && rule != nil {
		err = rule.Verify(clock.Now(), call.Header, call.Body)
	}
	refusal, ok := errors.AsType[*signature.Refusal](err)
	if !ok {
		return err
	}
	h.inbox.Note(hook.Trigger, &Note{At: clock.Now(), Code: CodeRefused, Message: refusal.Reason}, nil)
	return fault.New(fault.Unauthorized, "the request is not proven to be genuine")
}

// rule is how calls of a hook are verified, with its secrets opened; nil: they
// are not.
func (h *Hooks) rule(ctx context.Context, hook Hook) (*signature.Rule, error) {
	v := hook.planned.Verification
	if v == nil || v.Scheme == workflow.SchemeNone {
		return nil, nil
	}
	env := &expr.Env{Now: clock.Now()}
	var err error
	if env.Secrets, err = h.values.Open(ctx, hook.WorkspaceID, hook.planned.Secrets); err != nil {
		return nil, err
	}
	for _, name := range hook.planned.Secrets {
		if env.Secrets[name] == "" {
			return nil, &signature.Refusal{Reason: fmt.Sprintf("there is no secret %q any more", name)}
		}
	}
	if hook.planned.Vars {
		if env.Vars, err = h.values.Variables(ctx, hook.WorkspaceID); err != nil {
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
			return nil, &signature.Refusal{Reason: "the secret of the trigger cannot be worked out"}
		}
		*part.into = fmt.Sprint(value)
	}
	return rule, nil
}
