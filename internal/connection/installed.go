package connection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
)

// InstalledApp is an OAuth app with its secrets, which verify the calls of services at its URL.
// An app of the operator belongs to the first workspace.
type InstalledApp struct {
	App
	secrets appSecrets
}

// Verifying returns the secret with which the service signs its calls, rendered from a template
// of its manifest; "" if the app does not have it.
func (a InstalledApp) Verifying(secret integration.Template) (string, error) {
	values := map[string]string{integration.ClientSecret: a.secrets.ClientSecret}
	maps.Copy(values, a.secrets.Fields)
	text, _, err := secret.Text(integration.Env{Secret: values})
	return text, err
}

// Identity identifies the app at the service. An app that replaces another one has a new
// identity, because the service does not call it for the installations of the old one.
func (a InstalledApp) Identity() string {
	sum := sha256.Sum256([]byte(a.ID + "\n" + a.ClientID))
	return hex.EncodeToString(sum[:16])
}

// filePrefix is the prefix of the ids of the operator's apps.
const filePrefix = "file"

// fileID returns the id of the operator's app for a service.
func (k appKey) fileID() string {
	return strings.Join([]string{filePrefix, k.integration, k.auth}, "-")
}

// appFor returns the app that a workspace uses for a service; nil if there is none.
func (a *Apps) appFor(ctx context.Context, workspaceID string, key appKey) (*InstalledApp, error) {
	found, err := a.repo.store.AppFor(ctx, workspaceID, key.integration, key.auth)
	if err != nil {
		return nil, err
	}
	if found != nil && integration.IsOwn(key.integration) && found.WorkspaceID != workspaceID {
		return nil, nil // another workspace has an integration with the same id
	}
	if found != nil {
		return a.openApp(ctx, found, nil)
	}
	if app, ok := a.fileApps[key]; ok {
		return a.ofFirstWorkspace(ctx, app)
	}
	return nil, nil
}

// WithID returns the app with an id; nil if there is none.
func (a *Apps) WithID(ctx context.Context, id string) (*InstalledApp, error) {
	for key, app := range a.fileApps {
		if key.fileID() == id {
			return a.ofFirstWorkspace(ctx, app)
		}
	}
	found, err := a.repo.store.AppWithID(ctx, id)
	return a.openApp(ctx, found, err)
}

func (a *Apps) openApp(ctx context.Context, sealed *SealedApp, err error) (*InstalledApp, error) {
	if err != nil || sealed == nil {
		return nil, err
	}
	out := &InstalledApp{App: sealed.App}
	plain, err := a.repo.vault.Open(ctx, appRef(sealed.App), sealed.Secret)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(plain, &out.secrets); err != nil {
		return nil, fmt.Errorf("read the OAuth app %s: %w", sealed.ID, err)
	}
	return out, nil
}

func (a *Apps) ofFirstWorkspace(ctx context.Context, app InstalledApp) (*InstalledApp, error) {
	first, err := a.repo.store.FirstWorkspace(ctx)
	if err != nil || first == nil {
		return nil, err
	}
	app.WorkspaceID = first.ID
	return &app, nil
}

// OfConnection returns the OAuth app that a connection was made with; nil if it shares no app
// with others because a key or a token was entered for it. It returns an error if the calls of
// the app cannot be assigned to the connection.
func (a *Apps) OfConnection(ctx context.Context, workspaceID, name string) (*InstalledApp, error) {
	c, err := a.repo.readAny(ctx, workspaceID, name)
	if err != nil || c.Integration == "" || !c.auth.NeedsConsent() {
		return nil, err
	}
	app, err := a.appFor(ctx, workspaceID, appKey{c.Integration, c.Auth})
	switch {
	case err != nil:
		return nil, err
	case app == nil || app.ClientID != c.client().id || app.secrets.Use != c.service.Use() || c.App != "" && c.App != app.Identity():
		return nil, &action.Failure{Code: CodeAppMissing, Message: fmt.Sprintf("the connection %q was made with another OAuth app than the one that is used now: reconnect it", name)}
	case c.Learned[integration.Account] == "":
		return nil, &action.Failure{Code: CodeAccountUnknown, Message: fmt.Sprintf("it is not known yet which account of %s the connection %q has: test the connection", c.service.Name, name)}
	case c.App == "": // an earlier release made the connection
		err = a.repo.store.SetConnectionApp(ctx, workspaceID, c.ID, c.Epoch, app.Identity())
	}
	return app, err
}
