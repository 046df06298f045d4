package operation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
)

// maxHookCalls limits the requests that register a hook or remove it.
const maxHookCalls = 20

// Registration is a hook that a service is, or is to be, told the URL of.
type Registration struct {
	Service *integration.Integration
	Hook    *integration.Hook
	// Workspace and Key identify it; Key is the beginning of the keys of its requests.
	Workspace, Key string
	// With has the settings of the trigger, with their defaults, if the hook is one of a
	// trigger.
	With map[string]any
	// URL is where the service calls, ID is a UUID, and Secret is for both to know.
	URL, ID, Secret string
	// Subscription is what the service has answered to the registration.
	Subscription any
	Now          time.Time
	// Repeated is set if the same request may have reached the service before.
	Repeated bool
}

// Registered is the result of a registration.
type Registered struct {
	Subscription any
	ExpiresAt    *time.Time // nil if it does not expire
}

// Register tells a service the URL of a hook.
func (a *Actions) Register(ctx context.Context, r Registration, c action.Connection) (Registered, error) {
	value, err := a.requestHook(ctx, r, r.Hook.Register, c)
	if err != nil {
		return Registered{}, err
	}
	r.Subscription = value
	return r.registered(c)
}

// Renew extends a registration.
func (a *Actions) Renew(ctx context.Context, r Registration, c action.Connection) (Registered, error) {
	value, err := a.requestHook(ctx, r, r.Hook.Renew, c)
	if err != nil {
		return Registered{}, err
	}
	// A service may answer with less than it has answered to the registration.
	was, isObject := r.Subscription.(map[string]any)
	now, _ := value.(map[string]any)
	if isObject {
		merged := maps.Clone(was)
		maps.Copy(merged, now)
		r.Subscription = merged
	}
	return r.registered(c)
}

// Unregister removes a registration. That it is no longer there is no error.
func (a *Actions) Unregister(ctx context.Context, r Registration, c action.Connection) error {
	if r.Hook.Unregister == nil {
		return nil
	}
	_, err := a.requestHook(ctx, r, r.Hook.Unregister, c)
	if failure, ok := errors.AsType[*action.Failure](err); ok && failure.Code == integration.NotFound {
		return nil
	}
	return err
}

func (a *Actions) requestHook(ctx context.Context, r Registration, o *integration.Operation, c action.Connection) (any, error) {
	req := readRequest(r.Now, r.Workspace, r.Key+"/"+o.Name, r.With, c)
	req.Interrupted = r.Repeated
	made := reading{actions: a, service: r.Service, operation: o, maxCalls: maxHookCalls, maxBytes: maxPollBytes}
	_, value, complete, err := made.run(ctx, req, map[string]any{"hook": r.names(), "subscription": r.Subscription})
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		out := masked(failure, c)
		out.Message = r.hidden().Text(out.Message)
		return nil, out
	}
	if err == nil && !complete {
		err = &action.Failure{Code: integration.Failed, Message: fmt.Sprintf("%s does not come to an end", o.Name)}
	}
	return value, err
}

// hidden masks the secret and the path of the URL, which services like to repeat in errors.
func (r Registration) hidden() *mask.Masker {
	return mask.New([]string{r.Secret, parsedURL(r.URL).Path})
}

// names returns what the manifest reads as hook.
func (r Registration) names() map[string]any {
	return map[string]any{"url": r.URL, "id": r.ID, "secret": r.Secret}
}

func (r Registration) registered(c action.Connection) (Registered, error) {
	out := Registered{Subscription: r.Subscription}
	env := integration.Env{Connection: c.Variables, Now: r.Now, More: map[string]any{
		"hook": r.names(), "subscription": r.Subscription, "input": r.With,
	}}
	value, err := env.Eval(r.Hook.Expires)
	if err != nil {
		return out, expressionFailure("expires", err)
	}
	if value == nil {
		return out, nil
	}
	text, _ := value.(string) // expressions return times as text
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return out, &action.Failure{Code: integration.Failed, Message: "the integration cannot make sense of the answer: expires is not a time"}
	}
	out.ExpiresAt = &at
	return out, nil
}

// SetupText tells people how to enter the URL of a hook at the service; "" if that is not
// needed.
func (r Registration) SetupText(variables map[string]string) (string, error) {
	text, _, err := r.Hook.Setup.Text(integration.Env{Connection: variables, More: map[string]any{"hook": r.names()}})
	return text, err
}
