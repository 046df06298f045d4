package subscription

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/signature"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/service"
)

const (
	// maxChallenge is the largest response to a challenge, in bytes.
	maxChallenge = 1 << 10
	// perMinute is how many calls of a subscription are accepted per minute, and
	// perMinuteOfApp how many for all accounts of an app.
	perMinute      = 6_000
	perMinuteOfApp = 60_000
)

// CallStore finds what a call is for.
type CallStore interface {
	Store
	AppCallStore
	Workspace(ctx context.Context, id string) (*auth.Workspace, error)
}

// Calls handles the calls of services.
type Calls struct {
	store       CallStore
	triggers    trigger.Store
	vault       Vault
	operations  *operation.Actions
	connections trigger.Connections
	apps        Apps
	base        func() string
	programs    trigger.Programs
	values      trigger.Values
	runs        trigger.Runs
	inbox       *trigger.Inbox
}

// NewCalls returns Calls that record why a call started no run in an inbox.
func NewCalls(store CallStore, d Deps, runs trigger.Runs, inbox *trigger.Inbox) *Calls {
	return &Calls{
		store: store, triggers: d.Triggers, vault: d.Vault, operations: d.Operations, connections: d.Connections, apps: d.Apps, base: d.BaseURL,
		programs: d.Programs, values: d.Values, runs: runs, inbox: inbox,
	}
}

// Called is a subscription or an OAuth app that is being called.
type Called struct {
	// Key identifies it, and PerMinute is how many calls of it are accepted per minute.
	Key       string
	PerMinute int
	// Workspace is the one whose subscription or app it is.
	Workspace auth.Workspace
	hook      string
	// of is the subscription, with what needs it, and app the OAuth app; one of them is nil.
	of    *Callee
	app   *connection.InstalledApp
	token string // of the app
}

// Request is an HTTP request of a service.
type Request struct {
	Method string
	Header http.Header
	Query  string
	Body   []byte
}

// Response is the response to a call.
type Response struct {
	ContentType string
	Body        []byte
}

// Find returns the subscription or the app of a token. A service calls before anybody needs
// that: to check the URL while it is told of it.
func (c *Calls) Find(ctx context.Context, token string) (Called, error) {
	out, workspaceID, err := c.find(ctx, token)
	if err != nil {
		return Called{}, err
	}
	workspace, err := c.store.Workspace(ctx, workspaceID)
	if err == nil && workspace == nil {
		err = trigger.NothingHere()
	}
	if err != nil {
		return Called{}, err
	}
	out.Workspace = *workspace
	return out, nil
}

func (c *Calls) find(ctx context.Context, token string) (out Called, workspaceID string, err error) {
	if !trigger.ValidToken(token) {
		app, hook, err := c.findApp(ctx, token)
		if err == nil && app == nil {
			err = trigger.NothingHere()
		}
		if err != nil {
			return Called{}, "", err
		}
		return Called{Key: "app/" + app.ID + "/" + hook, PerMinute: perMinuteOfApp, hook: hook, app: app, token: token}, app.WorkspaceID, nil
	}
	found, need, err := c.store.SubscriptionByToken(ctx, trigger.HashToken(token))
	if err == nil && found == nil {
		err = trigger.NothingHere()
	}
	if err != nil {
		return Called{}, "", err
	}
	return Called{Key: found.Target, PerMinute: perMinute, hook: found.Hook, of: &Callee{*found, need}}, found.WorkspaceID, nil
}

// Accept answers a call: as the service wants to read it if it only checks the URL.
// Otherwise it verifies the call and starts the runs for its events. An error with a status
// from 500 on lets the service call again.
func (c *Calls) Accept(ctx context.Context, called Called, r Request) (Response, error) {
	call, err := c.read(ctx, called, r)
	if err != nil {
		return Response{}, err
	}
	// An expression that fails on this call has nothing to do with it.
	if reply, isChallenge, err := call.Challenge(); err == nil && isChallenge {
		return respond(reply, maxChallenge)
	}
	if r.Method == http.MethodHead { // some services only look whether there is something
		return Response{}, nil
	}
	if err := c.verify(ctx, called, &call, r); err != nil {
		return Response{}, c.explain(ctx, called, err)
	}
	err = c.take(ctx, called, call)
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		return Response{}, c.noteAll(ctx, called, failure)
	}
	if err != nil {
		return Response{}, err
	}
	reply, err := call.Reply()
	if err != nil {
		return Response{}, nil //nolint:nilerr // the call has done what it should
	}
	return respond(reply, maxChallenge)
}

// take starts the runs for the events of a verified call or, if it is for an app, keeps them
// until that is done for each of its connections.
func (c *Calls) take(ctx context.Context, called Called, call operation.HookCall) error {
	events, err := call.Events()
	switch {
	case err != nil:
		return err
	case called.app != nil:
		return c.keep(ctx, called.app, call, events)
	case call.Hook.Scope == integration.PerApp: // the app of one connection
		byAccount, err := call.ByAccount(events)
		if err != nil {
			return err
		}
		if account := call.Variables[integration.Account]; account != "" {
			events = byAccount[account]
		}
	}
	return c.fireAll(ctx, call, called.of.Triggers, events)
}

func (c *Calls) fireAll(ctx context.Context, call operation.HookCall, triggers []trigger.Trigger, events []any) error {
	for _, t := range triggers {
		if err := c.fire(ctx, call, t, events); err != nil {
			return err
		}
	}
	return nil
}

// registration returns what the service was told.
func (c *Calls) registration(ctx context.Context, called Called) (operation.Registration, error) {
	i, hook, err := c.operations.FindHook(ctx, called.Workspace.ID, called.hook)
	if err != nil {
		return operation.Registration{}, err
	}
	if hook == nil {
		return operation.Registration{}, trigger.NothingHere()
	}
	if called.app != nil {
		return operation.Registration{Service: i, Hook: hook, Workspace: called.Workspace.ID, Now: clock.Now(), URL: c.base() + Path + called.token}, nil
	}
	contents, err := open(ctx, c.vault, called.of.Subscription)
	if err != nil {
		return operation.Registration{}, err
	}
	return contents.registration(called.of.Subscription, i, hook, clock.Now())
}

func (c *Calls) read(ctx context.Context, called Called, r Request) (call operation.HookCall, err error) {
	about, err := c.registration(ctx, called)
	if err != nil {
		return call, err
	}
	if r.Query != "" {
		about.URL += "?" + r.Query
	}
	payload, err := trigger.ParseBody(r.Header, r.Body)
	if err != nil {
		return call, err
	}
	body, err := expr.FromJSON(payload)
	return operation.HookCall{
		Registration: about, Method: r.Method, Headers: trigger.HeaderValues(r.Header), Query: trigger.ParseQuery(r.Query), Body: body,
	}, err
}

// verify returns a *signature.Rejection if a call does not come from the service.
func (c *Calls) verify(ctx context.Context, called Called, call *operation.HookCall, r Request) error {
	secret, err := c.secret(ctx, called, call)
	if _, ok := errors.AsType[*action.Failure](err); ok {
		return &signature.Rejection{Reason: "there is no connection to verify the call with"}
	}
	if err != nil {
		return err
	}
	rule, err := call.Rule(secret)
	if err != nil {
		return err
	}
	return rule.Verify(clock.Now(), r.Header, r.Body)
}

// secret returns what a call is verified with, and sets the variables of the connection.
func (c *Calls) secret(ctx context.Context, called Called, call *operation.HookCall) (secret string, err error) {
	v := call.Hook.Verification
	if called.app != nil {
		return called.app.Verifying(v.Secret)
	}
	var ofConnection integration.Template
	if v.NeedsCredential() {
		ofConnection = v.Secret
	}
	secret, call.Variables, err = c.connections.Verifying(ctx, called.Workspace.ID, called.of.Connection, ofConnection)
	if err != nil || v.NeedsCredential() {
		return secret, err
	}
	return call.Secret()
}

// explain records the reason of a rejection for the owners of the triggers, and returns the
// error for the caller.
func (c *Calls) explain(ctx context.Context, called Called, err error) error {
	rejection, ok := errors.AsType[*signature.Rejection](err)
	if !ok {
		return err
	}
	if err := c.noteAll(ctx, called, &action.Failure{Code: trigger.CodeSignatureRejected, Message: rejection.Reason}); err != nil {
		return err
	}
	return trigger.NotGenuine()
}

// noteAll records why a call did not start a run, for the owners of what is called: others do
// not learn what an app is called with.
func (c *Calls) noteAll(ctx context.Context, called Called, failure *action.Failure) error {
	if called.app == nil {
		c.note(called.of.Triggers, failure)
		return nil
	}
	callees, err := c.store.CalleesIn(ctx, called.Workspace.ID, called.hook, called.app.Identity())
	for _, callee := range callees {
		c.note(callee.Triggers, failure)
	}
	return err
}

// note records why a call did not start a run.
func (c *Calls) note(triggers []trigger.Trigger, failure *action.Failure) {
	for _, t := range triggers {
		c.inbox.Note(t, &trigger.Note{At: clock.Now(), Code: failure.Code, Message: failure.Message}, nil)
	}
}

// fire starts the runs of a trigger for the events, or makes its poll due.
func (c *Calls) fire(ctx context.Context, call operation.HookCall, t trigger.Trigger, events []any) error {
	now := clock.Now()
	compiled, err := trigger.Compiled(ctx, c.triggers, c.programs, t, now)
	if err != nil || compiled == nil {
		return err
	}
	_, one := compiled.Config.(*service.Config).Trigger()
	if one.Hook == nil { // its manifest was changed
		return nil
	}
	if one.Poll != nil {
		return c.store.PollNow(ctx, t, clock.Steady())
	}
	with, err := settingsOf(ctx, c.values, t, *compiled)
	var items []operation.Item
	if err == nil {
		items, err = call.Items(one, with, events)
	}
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		c.note([]trigger.Trigger{t}, failure)
		return nil
	}
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := c.start(ctx, t, compiled.Type, item, now); err != nil {
			return err
		}
	}
	return nil
}

// start starts the run for an item, unless one with its key was started before.
func (c *Calls) start(ctx context.Context, t trigger.Trigger, triggerType string, item operation.Item, now time.Time) error {
	payload, err := strictjson.Encode(action.Object(item.Payload))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(item.Key)
	_, err = c.runs.Fire(ctx, run.Firing{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID, Trigger: run.Trigger{Type: triggerType, ID: t.ID, Payload: payload},
		Fire: run.Fire{At: now, Dedupe: &run.Dedupe{Hash: sum[:], Until: now.Add(trigger.DedupeWindow)}},
	})
	switch notFired := trigger.Rejection(err, now); {
	case err == nil, trigger.Obsolete(err), errors.As(err, new(*run.DuplicateError)):
		return nil
	case fault.Is(err, fault.RunQueueFull): // there is room again when the service calls next
		return err
	case notFired != nil:
		c.inbox.Note(t, nil, notFired)
		return nil
	}
	return err
}

// respond encodes a response: text, or anything else as JSON. Nil is an empty one.
func respond(value any, limit int) (Response, error) {
	switch v := value.(type) {
	case nil:
		return Response{}, nil
	case string:
		if len(v) > limit {
			return Response{}, fault.New(fault.InvalidRequest, "the text to respond with is longer than %d bytes", limit)
		}
		return Response{"text/plain; charset=utf-8", []byte(v)}, nil
	}
	text, err := strictjson.Encode(value)
	if err == nil && len(text) > limit {
		err = fault.New(fault.InvalidRequest, "the response is longer than %d bytes", limit)
	}
	return Response{"application/json", text}, err
}
