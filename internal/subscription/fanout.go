package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/vault"
)

const (
	// handoutTime is how long a node may take to hand out a call before another one tries,
	// and so for how long a call waits if its node dies. That two nodes hand out the same
	// call does no harm.
	handoutTime = 15 * time.Second
	// maxCallAge is for how long a call is handed out again after failures, such as a full
	// queue of runs. It is much shorter than keys are remembered.
	maxCallAge = time.Hour
	// firstHandout and lastHandout bound the pauses between attempts.
	firstHandout, lastHandout = time.Second, time.Minute
)

type appEvents struct {
	Events  json.RawMessage `json:"events"`
	Headers map[string]any  `json:"headers"`
}

func callSealedAt(c AppCall) vault.Ref {
	return vault.Ref{Workspace: c.WorkspaceID, Table: "app_calls", ID: c.ID}
}

// keep stores the events of a verified call by their accounts, so that one workspace cannot
// hold up what others are to have. What nobody waits for is not kept.
func (c *Calls) keep(ctx context.Context, app *connection.InstalledApp, call operation.HookCall, events []any) error {
	byAccount, err := call.ByAccount(events)
	if err != nil {
		return err
	}
	var accounts []string
	for account := range byAccount {
		accounts = append(accounts, account)
	}
	hook, identity := call.Service.FullName(call.Hook.Name), app.Identity()
	if accounts, err = c.store.CalledAccounts(ctx, hook, identity, accounts); err != nil || len(accounts) == 0 {
		return err
	}
	var kept []AppCall
	for _, account := range accounts {
		one := AppCall{
			ID: uid.New(uid.AppCall), WorkspaceID: app.WorkspaceID, Hook: hook, App: identity, Account: account,
			ReceivedAt: call.Now, NextAt: clock.Steady(),
		}
		if one.Sealed, err = c.sealEvents(ctx, one, call, byAccount[account]); err != nil {
			return err
		}
		kept = append(kept, one)
	}
	return c.store.InsertAppCalls(ctx, kept)
}

func (c *Calls) sealEvents(ctx context.Context, one AppCall, call operation.HookCall, events []any) ([]byte, error) {
	encoded, err := encode(events)
	if err != nil {
		return nil, err
	}
	plain, err := strictjson.Encode(map[string]any{"events": encoded, "headers": call.Headers})
	if err != nil {
		return nil, err
	}
	return c.vault.Seal(ctx, callSealedAt(one), plain)
}

// Fanout hands the calls for apps to the triggers that they are for.
type Fanout struct {
	*trigger.Ticker[AppCall]
	calls *Calls
	log   *slog.Logger
}

// NewFanout returns a Fanout.
func NewFanout(calls *Calls, log *slog.Logger) *Fanout {
	f := &Fanout{calls: calls, log: log}
	f.Ticker = trigger.NewTicker(trigger.DueWork[AppCall]{
		Name: "calls for OAuth apps", Clock: clock.Steady, Handle: f.handle, Due: calls.store.DueAppCalls, Next: calls.store.NextAppCall,
	}, log)
	return f
}

// handle hands out a call. A node that dies leaves it to another one; what was started for
// it before is not started again.
func (f *Fanout) handle(ctx context.Context, call AppCall, _ time.Time) error {
	claimed, until := call, clock.Steady().Add(handoutTime)
	mine, err := f.calls.store.PostponeAppCall(ctx, call, until, call.Failures)
	if err != nil || !mine {
		return err
	}
	claimed.NextAt = until
	err = f.calls.handOut(ctx, call)
	switch {
	case err == nil:
		return f.calls.store.DeleteAppCall(ctx, call)
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the node stops, and the call remains
	case clock.Now().Sub(call.ReceivedAt) >= maxCallAge:
		f.log.Warn("a call for an OAuth app could not be handed to all of its triggers", "hook", call.Hook, "error", err)
		return f.calls.store.DeleteAppCall(ctx, call)
	}
	_, err = f.calls.store.PostponeAppCall(ctx, claimed, clock.Steady().Add(handoutPause(call.Failures)), call.Failures+1)
	return err
}

// handoutPause returns the pause after a number of failures.
func handoutPause(failures int) time.Duration {
	pause := firstHandout
	for range failures {
		if pause *= 2; pause >= lastHandout {
			return lastHandout
		}
	}
	return pause
}

// handOut starts the runs for a call with each of the connections to its account. That it
// fails for one of them changes nothing for the others.
func (c *Calls) handOut(ctx context.Context, of AppCall) error {
	i, hook, err := c.operations.FindHook(ctx, of.WorkspaceID, of.Hook)
	if err != nil || hook == nil { // of an integration that is gone
		return err
	}
	events, headers, err := c.openEvents(ctx, of)
	if err != nil {
		return err
	}
	callees, err := c.store.Callees(ctx, of.Hook, of.App, of.Account)
	if err != nil {
		return err
	}
	var failed []error
	for _, callee := range callees {
		call := operation.HookCall{Registration: operation.Registration{Service: i, Hook: hook, Workspace: callee.WorkspaceID, Now: of.ReceivedAt}, Headers: headers}
		failed = append(failed, c.handTo(ctx, callee, call, events))
	}
	return errors.Join(failed...)
}

func (c *Calls) handTo(ctx context.Context, callee Callee, call operation.HookCall, events []any) (err error) {
	_, call.Variables, err = c.connections.Verifying(ctx, callee.WorkspaceID, callee.Connection, integration.Template{})
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		c.note(callee.Triggers, failure)
		return nil
	}
	if err != nil {
		return err
	}
	return c.fireAll(ctx, call, callee.Triggers, events)
}

func (c *Calls) openEvents(ctx context.Context, of AppCall) (events []any, headers map[string]any, err error) {
	plain, err := c.vault.Open(ctx, callSealedAt(of), of.Sealed)
	if err != nil {
		return nil, nil, fmt.Errorf("open the call %s: %w", of.ID, err)
	}
	var kept appEvents
	if err := json.Unmarshal(plain, &kept); err != nil {
		return nil, nil, fmt.Errorf("read the call %s: %w", of.ID, err)
	}
	value, err := expr.FromJSON(kept.Events)
	events, _ = value.([]any)
	return events, kept.Headers, err
}
