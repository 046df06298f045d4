package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// HookTest is a test of a hook: a request about it, or a call of the service that starts no
// run.
type HookTest struct {
	Name string `json:"name"`
	// Does is register, renew or unregister; "" for a call.
	Does string `json:"does"`
	// Input has the settings of the trigger. Interrupted is set if the process has died
	// before, while it sent the first request.
	Input       json.RawMessage `json:"input"`
	Interrupted bool            `json:"interrupted"`
	Exchanges   []Exchange      `json:"exchanges"`
	// Subscription is what register returns, and what the others and calls have to do with.
	Subscription json.RawMessage `json:"subscription"`
	// ExpiresAt is when the registration ends.
	ExpiresAt string   `json:"expires_at"`
	Error     *Failure `json:"error"`

	Call *Call `json:"call"`
	// Reply is the response to a call, and Verified says whether it is genuine. Secret has
	// the value of the secret, if that is one of the connection.
	Reply    json.RawMessage `json:"reply"`
	Verified *bool           `json:"verified"`
	Secret   string          `json:"secret"`
}

// Call is a call of the service.
type Call struct {
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Query   map[string]string `json:"query"`
	// Body is what the body says, and Text is the body itself, for its signature.
	Body json.RawMessage `json:"body"`
	Text string          `json:"text"`
}

// The values that tests have for what is different in each registration.
const (
	hookURL    = "https://stepmill.example/service-hooks/token"
	hookID     = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	hookSecret = "hook-secret"
)

// The requests about a hook.
const (
	registers   = "register"
	renews      = "renew"
	unregisters = "unregister"
)

// recordedHook is what stands before the names of hooks in recordings and results.
const recordedHook = "hooks/"

func (t *Tests) runHooks(ctx context.Context, catalog *integration.Catalog, i *integration.Integration, recordings *Recordings, pick func(of, test string) bool) []Result {
	var out []Result
	for _, name := range slices.Sorted(maps.Keys(t.Hooks)) {
		hook, ok := i.FindHook(name)
		if !ok {
			continue // Check reports it
		}
		for n, test := range t.Hooks[name] {
			if pick != nil && !pick(recordedHook+name, test.Name) {
				continue
			}
			line, _, _ := t.document.At(jsonpointer.Of("hooks", name, strconv.Itoa(n)))
			result := Result{Of: recordedHook + name, Test: test.Name, Line: line}
			if err := test.run(ctx, catalog, t.serve(i, test.Exchanges, recordings), hook); err != nil {
				result.Problem = err.Error()
			}
			out = append(out, result)
		}
	}
	return out
}

func (t HookTest) run(ctx context.Context, catalog *integration.Catalog, server *server, hook *integration.Hook) error {
	registration, err := t.registration(server, hook)
	if err != nil {
		return err
	}
	if t.Call != nil {
		return t.runCall(registration, server.variables)
	}
	connection, err := server.connection()
	if err != nil {
		return err
	}
	if server.recorded, err = server.recordings.of(recordedHook+hook.Name, t.Name); err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	got, err := t.request(ctx, operation.NewActions(catalog, server), registration, connection)
	if server.problem != nil {
		return server.problem
	}
	if err := t.compare(got, err); err != nil {
		return err
	}
	return server.left()
}

func (t HookTest) registration(server *server, hook *integration.Hook) (operation.Registration, error) {
	out := operation.Registration{
		Service: server.integration, Hook: hook, Workspace: "test", Key: "sub_1", URL: hookURL, ID: hookID, Secret: hookSecret, Now: testTime, Repeated: t.Interrupted,
	}
	if t.Input != nil {
		if err := strictjson.Decode(t.Input, &out.With); err != nil {
			return out, fmt.Errorf("input: %w", err)
		}
	}
	var err error
	if t.Subscription != nil && t.Does != registers {
		if out.Subscription, err = expr.FromJSON(t.Subscription); err != nil {
			return out, fmt.Errorf("subscription: %w", err)
		}
	}
	return out, nil
}

func (t HookTest) request(ctx context.Context, actions *operation.Actions, r operation.Registration, c action.Connection) (operation.Registered, error) {
	switch {
	case t.Does == registers && r.Hook.Register != nil:
		return actions.Register(ctx, r, c)
	case t.Does == renews && r.Hook.Renew != nil:
		return actions.Renew(ctx, r, c)
	case t.Does == unregisters && r.Hook.Unregister != nil:
		return operation.Registered{}, actions.Unregister(ctx, r, c)
	}
	return operation.Registered{}, fmt.Errorf("the hook does not %s", cmp.Or(t.Does, "do anything: write does, or call"))
}

func (t HookTest) compare(got operation.Registered, err error) error {
	if err != nil || t.Error != nil {
		return t.Error.compare(err)
	}
	if t.Does == registers && t.Subscription != nil {
		if err := compareEncoded("the subscription", got.Subscription, t.Subscription); err != nil {
			return err
		}
	}
	expires := ""
	if got.ExpiresAt != nil {
		expires = got.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if expires != t.ExpiresAt {
		return fmt.Errorf("expires_at is %q, not %q", expires, t.ExpiresAt)
	}
	return nil
}

func (c *Call) call(r operation.Registration, variables map[string]string) (operation.HookCall, error) {
	out := operation.HookCall{
		Registration: r, Variables: variables, Method: cmp.Or(c.Method, http.MethodPost), Headers: map[string]any{}, Query: map[string]any{}, Body: map[string]any{},
	}
	for name, value := range c.Headers {
		out.Headers[strings.ToLower(name)] = value
	}
	query := url.Values{}
	for name, value := range c.Query {
		out.Query[name] = value
		query.Set(name, value)
	}
	if len(query) > 0 {
		out.URL += "?" + query.Encode()
	}
	body := c.Body
	if body == nil && json.Valid([]byte(c.Text)) {
		body = json.RawMessage(c.Text)
	}
	if body == nil {
		return out, nil
	}
	value, err := expr.FromJSON(body)
	out.Body = action.Object(value)
	return out, err
}

func (t HookTest) runCall(r operation.Registration, variables map[string]string) error {
	call, err := t.Call.call(r, variables)
	if err != nil {
		return err
	}
	reply, isChallenge, err := call.Challenge()
	if err != nil {
		return err
	}
	if !isChallenge {
		if t.Verified == nil {
			return errors.New("the call is no challenge: write verified")
		}
		if err := t.verify(call); err != nil {
			return err
		}
		if reply, err = call.Reply(); err != nil {
			return err
		}
	}
	want := any(t.Reply)
	if t.Reply == nil {
		want = nil
	}
	return compareEncoded("the reply", reply, want)
}

// verify compares whether the call is genuine with what is expected.
func (t HookTest) verify(call operation.HookCall) error {
	secret := t.Secret
	if secret == "" {
		var err error
		if secret, err = call.Secret(); err != nil {
			return err
		}
	}
	header := http.Header{}
	for name, value := range t.Call.Headers {
		header.Set(name, value)
	}
	rule, err := call.Rule(secret)
	if err == nil {
		err = rule.Verify(testTime, header, []byte(t.Call.Text))
	}
	if verified := err == nil; verified != *t.Verified {
		return fmt.Errorf("verified is %t: %w", verified, err)
	}
	return nil
}
