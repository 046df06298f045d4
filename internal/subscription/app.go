package subscription

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/trigger"
)

// Some services call an OAuth app at one URL for all accounts that have installed it. The
// connections that were made with the app share it, also those of other workspaces, so an
// event is handed to those connections only that have learned its account from the service.

// Apps finds OAuth apps.
type Apps interface {
	// OfConnection returns the app that a connection was made with; nil if it has none that others
	// share. It fails if calls for the app cannot come to the connection.
	OfConnection(ctx context.Context, workspaceID, connection string) (*connection.InstalledApp, error)
	// WithID returns the app with an id; nil if there is none.
	WithID(ctx context.Context, id string) (*connection.InstalledApp, error)
}

// Vault seals contents and signs the URLs of apps.
type Vault interface {
	trigger.Sealer
	Sign(ctx context.Context, workspaceID, purpose string, text []byte) ([]byte, error)
}

// AppCall is a verified call for an account, until the triggers of all its connections have
// it.
type AppCall struct {
	ID          string
	WorkspaceID string // that of the app
	Hook        string // such as slack.events
	App         string // its identity
	Account     string
	Sealed      []byte // appEvents
	ReceivedAt  time.Time
	NextAt      time.Time // a steady time
	Failures    int
}

// Callee is a subscription that a call for an app is for, with the active triggers that need
// it.
type Callee struct {
	Subscription
	Need
}

// AppCallStore stores the calls for apps. Each method is one transaction.
type AppCallStore interface {
	// CalledAccounts returns those accounts that active triggers have connections to, made
	// with an app.
	CalledAccounts(ctx context.Context, hook, app string, accounts []string) ([]string, error)
	// Callees returns what a call for an account is for, and CalleesIn what calls for an app
	// can be for in one workspace.
	Callees(ctx context.Context, hook, app, account string) ([]Callee, error)
	CalleesIn(ctx context.Context, workspaceID, hook, app string) ([]Callee, error)
	// InsertAppCalls stores calls. It fails with TooManyCalls if too many of one account wait.
	InsertAppCalls(ctx context.Context, calls []AppCall) error
	// DueAppCalls returns calls that are due, a few of each account.
	DueAppCalls(ctx context.Context, now time.Time, limit int) ([]AppCall, error)
	// NextAppCall returns the earliest time at which a call is due.
	NextAppCall(ctx context.Context) (*time.Time, error)
	// PostponeAppCall sets when a call is due, unless another node has done so.
	PostponeAppCall(ctx context.Context, call AppCall, next time.Time, failures int) (postponed bool, err error)
	DeleteAppCall(ctx context.Context, call AppCall) error
}

// TooManyCalls is the error for a call that comes while too many for its account wait. The
// service repeats it.
func TooManyCalls(account string) error {
	return fault.New(fault.Unavailable, "too many calls for the account %q are waiting: call again later", account)
}

// appToken returns the secret part of the URL at which a service calls an app. It is derived
// from the app, so the URL stays when the secrets of the app change.
func appToken(ctx context.Context, v Vault, app *connection.InstalledApp, hook string) (string, error) {
	of := app.ID + "." + hook
	sum, err := v.Sign(ctx, app.WorkspaceID, "service hook of an OAuth app", []byte(of))
	return of + "." + base64.RawURLEncoding.EncodeToString(sum), err
}

// findApp returns the app whose URL has a token, and the hook of it; nil if there is none.
func (c *Calls) findApp(ctx context.Context, token string) (*connection.InstalledApp, string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, "", nil
	}
	app, err := c.apps.WithID(ctx, parts[0])
	if err != nil || app == nil {
		return nil, "", err
	}
	want, err := appToken(ctx, c.vault, app, parts[1])
	if err != nil || !hmac.Equal([]byte(want), []byte(token)) {
		return nil, "", err
	}
	return app, app.Integration + "." + parts[1], nil
}

// useApp makes calls for the app of a connection come to the subscription. A connection with
// an app of its own has a URL of its own, too.
func (t *task) useApp(ctx context.Context) error {
	app, err := t.Apps.OfConnection(ctx, t.WorkspaceID, t.need.Connection)
	if err != nil {
		return err
	}
	var secret string
	if app != nil {
		secret, err = app.Verifying(t.hook.Verification.Secret)
	} else {
		secret, _, err = t.Connections.Verifying(ctx, t.WorkspaceID, t.need.Connection, t.hook.Verification.Secret)
	}
	switch {
	case err != nil:
		return err
	case secret == "" && app != nil && !canVerify(t.service, t.hook, app.Auth):
		return &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("%s does not call connections of this kind: connect in another way", t.service.Name)}
	case secret == "" && app != nil:
		return &action.Failure{Code: action.InvalidInput, Message: "the OAuth app has no secret to verify calls with: " + missingSecret(t.service, t.hook)}
	case secret == "":
		return &action.Failure{Code: action.InvalidInput, Message: "the connection has no secret to verify calls with: " + missingSecret(t.service, t.hook)}
	case app == nil:
		return t.prepare(ctx, nil)
	}
	t.Registered, t.TokenHash, t.Sealed = true, nil, nil
	return nil
}

// canVerify reports whether apps for a way to authenticate can have the secret that calls of
// a hook are verified with.
func canVerify(i *integration.Integration, h *integration.Hook, wayID string) bool {
	way, ok := i.Connection.Find(wayID)
	secret := h.Verification.Secret
	return ok && (secret.Reads("secret."+integration.ClientSecret) ||
		slices.ContainsFunc(way.AppFields, func(f integration.Field) bool { return secret.Reads("secret." + f.Name) }))
}

// missingSecret says which secret to enter.
func missingSecret(i *integration.Integration, h *integration.Hook) string {
	for _, way := range i.Connection.Auth {
		for _, field := range append(i.Fields(&way), way.AppFields...) {
			if h.Verification.Secret.Reads("secret." + field.Name) {
				return "enter the " + field.Title
			}
		}
	}
	return "enter the client secret"
}

// appSetup returns the URL of an app, and where people enter it.
func (s *Service) appSetup(ctx context.Context, app *connection.InstalledApp, about operation.Registration) (url, setup string, err error) {
	token, err := appToken(ctx, s.vault, app, about.Hook.Name)
	if err != nil {
		return "", "", err
	}
	about.URL = s.base() + Path + token
	setup, err = about.SetupText(nil)
	return about.URL, setup, err
}

// AppHook is a URL at which a service calls an app.
type AppHook struct {
	Name  string // such as slack.events
	URL   string
	Setup string
}

// HooksOfApp returns the hooks of the service that can call an app with a kind of
// authentication.
func (s *Service) HooksOfApp(ctx context.Context, workspaceID, integrationID, auth string) ([]operation.Registration, error) {
	operations, err := s.operations.In(ctx, workspaceID, integrationID)
	if err != nil {
		return nil, err
	}
	i, ok := operations.FindIntegration(integrationID)
	if !ok {
		return nil, nil
	}
	var out []operation.Registration
	for _, hook := range i.Hooks() {
		if hook.Scope == integration.PerApp && canVerify(i, &hook, auth) {
			out = append(out, operation.Registration{Service: i, Hook: &hook})
		}
	}
	return out, nil
}

// URLsOfApp returns the URLs at which a service calls an app, for whoever owns it.
func (s *Service) URLsOfApp(ctx context.Context, app connection.App, hooks []operation.Registration) ([]AppHook, error) {
	out := make([]AppHook, len(hooks))
	for i, one := range hooks {
		url, setup, err := s.appSetup(ctx, &connection.InstalledApp{App: app}, one)
		if err != nil {
			return nil, err
		}
		out[i] = AppHook{Name: one.Service.FullName(one.Hook.Name), URL: url, Setup: setup}
	}
	return out, nil
}
