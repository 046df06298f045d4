package operation

import (
	"encoding/base64"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/signature"
)

// maxEvents is the most events of one call. A larger one is rejected as a whole.
const maxEvents = 1000

// HookCall is a call of a service at the URL of a hook.
type HookCall struct {
	Registration
	// Variables are those of the connection.
	Variables map[string]string
	Method    string
	// Headers are in lower case, and Body is an object.
	Headers, Query map[string]any
	Body           any
}

// Settings returns the settings of a trigger with the defaults of what was not given.
func Settings(t *integration.Trigger, with map[string]any) map[string]any {
	return withDefaults(t.Input, with)
}

func (c HookCall) env() integration.Env {
	return integration.Env{Connection: c.Variables, Now: c.Now, More: map[string]any{
		"method": c.Method, "headers": c.Headers, "query": c.Query, "body": c.Body, "hook": c.names(), "subscription": c.Subscription,
	}}
}

// Rule returns how the call is verified, given the value of the secret in the manifest.
func (c HookCall) Rule(secret string) (signature.Rule, error) {
	v := c.Hook.Verification
	out := signature.Rule{
		Scheme: signature.Scheme(v.Scheme), Secret: secret, Header: v.Header, Algorithm: v.Algorithm, Encoding: v.Encoding, Prefix: v.Prefix,
		Timestamp: v.Timestamp, Signed: v.Signed, Tolerance: v.Tolerance, Method: c.Method, URL: c.URL,
	}
	if v.SecretEncoding == "base64" {
		key, err := base64.StdEncoding.DecodeString(secret)
		if err != nil {
			return out, &signature.Rejection{Reason: "the secret that the service has given is not base64"}
		}
		out.Secret = string(key)
	}
	given, err := c.env().Eval(v.Given)
	if err != nil {
		return out, &signature.Rejection{Reason: "the call has nothing to prove itself with"}
	}
	out.Given, _ = given.(string)
	return out, nil
}

// Secret returns the secret that calls are verified with, unless the manifest takes it from
// the connection.
func (c HookCall) Secret() (string, error) {
	text, _, err := c.Hook.Verification.Secret.Text(c.env())
	return text, err
}

// Challenge returns the response to a call with which the service checks the URL, and
// whether it is one.
func (c HookCall) Challenge() (reply any, is bool, err error) {
	challenge := c.Hook.Challenge
	if challenge == nil {
		return nil, false, nil
	}
	if is, err = challenge.When.Holds(c.env()); err != nil || !is {
		return nil, false, err
	}
	reply, err = challenge.Reply.Eval(c.env())
	return reply, true, err
}

// Reply returns the response to a call; nil for an empty one.
func (c HookCall) Reply() (any, error) {
	if c.Hook.Reply == nil {
		return nil, nil
	}
	return c.Hook.Reply.Eval(c.env())
}

// Events returns the events of the call.
func (c HookCall) Events() ([]any, error) {
	if c.Hook.Items == nil {
		return []any{c.Body}, nil
	}
	events, err := c.env().EvalList(c.Hook.Items)
	switch {
	case err != nil:
		return nil, expressionFailure("items", err)
	case len(events) > maxEvents:
		return nil, &action.Failure{Code: CodeTooManyItems, Message: fmt.Sprintf("a call has more than %d events", maxEvents)}
	}
	return events, nil
}

// ByAccount returns the events of a call for all connections of an app, by the accounts at
// the service that they are for. Events without an account are for nobody.
func (c HookCall) ByAccount(events []any) (map[string][]any, error) {
	out := map[string][]any{}
	for _, event := range events {
		env := integration.Env{Now: c.Now, More: map[string]any{"item": event, "headers": c.Headers}}
		value, err := env.Eval(c.Hook.Account)
		if err != nil {
			return nil, expressionFailure("account", err)
		}
		if account, isText := value.(string); isText && account != "" {
			out[account] = append(out[account], event)
		}
	}
	return out, nil
}

// Items returns what starts runs of a trigger with these settings.
func (c HookCall) Items(t *integration.Trigger, with map[string]any, events []any) ([]Item, error) {
	env := integration.Env{Connection: c.Variables, Now: c.Now, More: map[string]any{"input": Settings(t, with), "headers": c.Headers}}
	var out []Item
	for n, event := range events {
		item, err := itemOf(t, n, event, env)
		if err != nil {
			return nil, err
		}
		if item != nil {
			out = append(out, *item)
		}
	}
	return out, nil
}
