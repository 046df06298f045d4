package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/vault"
)

// Apps are the OAuth apps of workspaces, and those of the operator for all workspaces.
type Apps struct {
	repo     *repository
	fileApps map[appKey]InstalledApp // of the operator
}

// In returns the apps as part of a transaction.
func (a *Apps) In(tx txn.Tx) *Apps {
	bound := *a
	bound.repo = a.repo.in(tx)
	return &bound
}

// App is an OAuth app: the registration of this installation at a service, without its
// secrets. People consent to what the app asks for.
type App struct {
	ID          string
	WorkspaceID string
	// Integration and Auth say which connections use the app.
	Integration string
	Auth        string
	ClientID    string
	// Fields are the values of the integration's app fields that are not secret.
	Fields map[string]string
	// Shared makes the app available to all workspaces. Only an app of the first
	// workspace can be shared.
	Shared    bool
	CreatedAt time.Time
	CreatedBy string
	UpdatedAt time.Time
	UpdatedBy string
}

// SealedApp is an app with its sealed secrets.
type SealedApp struct {
	App
	Secret []byte // appSecrets
}

// appSecrets are the sealed part of an app.
type appSecrets struct {
	ClientSecret string            `json:"client_secret"`
	Fields       map[string]string `json:"fields,omitempty"` // the app fields that are secret
	// Use is that of an own integration when the app was added: after a change, the secret
	// could be sent elsewhere.
	Use string `json:"use,omitempty"`
}

// AppStore stores OAuth apps. A workspace has at most one per integration and way to
// authenticate.
type AppStore interface {
	// PutApp creates an app or replaces the one for the same service.
	PutApp(ctx context.Context, app SealedApp, created, updated audit.Entry) (stored App, isNew bool, err error)
	App(ctx context.Context, workspaceID, id string) (*App, error)
	// Apps are ordered by id.
	Apps(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[App], error)
	DeleteApp(ctx context.Context, workspaceID, id string, entry audit.Entry) (deleted bool, err error)
	// AppFor returns the app for a service that a workspace uses: its own, or a shared
	// one.
	AppFor(ctx context.Context, workspaceID, integration, auth string) (*SealedApp, error)
	// AppWithID returns the app with an id, of any workspace.
	AppWithID(ctx context.Context, id string) (*SealedApp, error)
	// SetConnectionApp records which app a connection was made with, if the connection
	// still has the epoch.
	SetConnectionApp(ctx context.Context, workspaceID, id string, epoch int64, app string) error
	FirstWorkspace(ctx context.Context) (*auth.Workspace, error)
}

// NewApp is the input for creating an OAuth app.
type NewApp struct {
	Integration  string
	Auth         string
	ClientID     string
	ClientSecret string
	Fields       map[string]string // values of the integration's app fields
	Shared       bool
}

// Prepare prepares an OAuth app. Put stores it.
func (a *Apps) Prepare(ctx context.Context, actor auth.Actor, in NewApp) (SealedApp, error) {
	service, err := a.repo.integrations.find(ctx, actor.Workspace.ID, in.Integration)
	if err != nil {
		return SealedApp{}, err
	}
	way, err := consentWay(service, in.Auth)
	if err != nil {
		return SealedApp{}, err
	}
	id, secret := strings.TrimSpace(in.ClientID), strings.TrimSpace(in.ClientSecret)
	switch {
	case id == "":
		return SealedApp{}, fault.Field("/client_id", "is required: %s shows it where the app is registered", service.Name)
	case secret == "":
		return SealedApp{}, fault.Field("/client_secret", "is required: %s shows it where the app is registered", service.Name)
	case utf8.RuneCountInString(secret) < mask.MinLength:
		return SealedApp{}, fault.Field("/client_secret", "must have at least %d characters", mask.MinLength)
	case len(id) > maxCredential || len(secret) > maxCredential:
		return SealedApp{}, fault.Field("/client_secret", "must have at most %d bytes", maxCredential)
	case in.Shared && service.Use() != "":
		return SealedApp{}, fault.Field("/shared", "must be false: no other workspace has the integration")
	case in.Shared && !actor.Workspace.First:
		return SealedApp{}, fault.Field("/shared", "only the first workspace of the installation can share its apps")
	}
	fields, secretFields, err := appFields(service, way, in.Fields)
	if err != nil {
		return SealedApp{}, err
	}
	now := clock.Now()
	app := App{
		ID: uid.New(uid.OAuthApp), WorkspaceID: actor.Workspace.ID, Integration: service.ConnectedAs(), Auth: way.ID, ClientID: id, Fields: fields, Shared: in.Shared,
		CreatedAt: now, CreatedBy: actor.Name(), UpdatedAt: now, UpdatedBy: actor.Name(),
	}
	plain, err := json.Marshal(appSecrets{secret, secretFields, service.Use()}) //nolint:gosec // it is sealed
	if err != nil {
		return SealedApp{}, err
	}
	sealed, err := a.repo.vault.Seal(ctx, appRef(app), plain)
	return SealedApp{app, sealed}, err
}

// Put stores an OAuth app that Prepare returned, or replaces the one for the same service.
// Existing connections keep the app that they were made with until they are reconnected.
func (a *Apps) Put(ctx context.Context, actor auth.Actor, app SealedApp) (stored App, isNew bool, err error) {
	details := map[string]any{"integration": app.Integration}
	return a.repo.store.PutApp(ctx, app,
		actor.AuditEntry("oauth_app.created", "oauth_app", app.ID, details), actor.AuditEntry("oauth_app.updated", "oauth_app", app.ID, details))
}

const maxCredential = 4 << 10

// appFields checks the values of the app fields, and separates secrets from the others.
func appFields(service *integration.Integration, way *integration.Auth, values map[string]string) (plain, secret map[string]string, err error) {
	plain, secret, problems := sortFields(way.AppFields, values, "an OAuth app for "+service.Name)
	if len(problems) > 0 {
		return nil, nil, fault.New(fault.InvalidRequest, "some fields are not valid").With(problems...)
	}
	return plain, secret, nil
}

// appRef returns the location that the secrets of an app are sealed for: there is one
// app per service, whatever its id.
func appRef(app App) vault.Ref {
	return vault.Ref{Workspace: app.WorkspaceID, Table: "oauth_apps", ID: app.Integration + "/" + app.Auth}
}

// consentWay returns a way to authenticate that needs consent: the one with the id, or
// the only one.
func consentWay(service *integration.Integration, id string) (*integration.Auth, error) {
	var ways []string
	for i := range service.Connection.Auth {
		way := &service.Connection.Auth[i]
		if way.NeedsConsent() && (id == "" || id == way.ID) {
			return way, nil
		}
		if way.NeedsConsent() {
			ways = append(ways, way.ID)
		}
	}
	if len(ways) == 0 {
		return nil, fault.Field("/integration", "%s does not use OAuth apps: connect it with a key or a token", service.Name)
	}
	return nil, fault.Field("/auth", "must be one of %s", strings.Join(ways, ", "))
}

// List lists the OAuth apps of a workspace.
func (a *Apps) List(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[App], error) {
	return a.repo.store.Apps(ctx, actor.Workspace.ID, page)
}

// Get returns an OAuth app of a workspace.
func (a *Apps) Get(ctx context.Context, actor auth.Actor, id string) (App, error) {
	if !uid.Valid(uid.OAuthApp, id) {
		return App{}, appNotFound(id)
	}
	app, err := a.repo.store.App(ctx, actor.Workspace.ID, id)
	return fault.Found(app, err, appNotFound, id)
}

// Delete deletes an OAuth app. Existing connections keep it.
func (a *Apps) Delete(ctx context.Context, actor auth.Actor, id string) error {
	app, err := a.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	deleted, err := a.repo.store.DeleteApp(ctx, actor.Workspace.ID, id,
		actor.AuditEntry("oauth_app.deleted", "oauth_app", id, map[string]any{"integration": app.Integration}))
	if err == nil && !deleted {
		err = appNotFound(id)
	}
	return err
}

func appNotFound(id string) error {
	return fault.New(fault.OAuthAppNotFound, "there is no OAuth app %q", id)
}

// clientFor returns the OAuth app for a connection that is about to be made, and records it in
// the connection.
func (a *Apps) clientFor(ctx context.Context, c *opened) (oauthClient, error) {
	if c.Integration == "" { // a custom connection has its own
		return c.client(), nil
	}
	if err := checkAppHost(c); err != nil {
		return oauthClient{}, err
	}
	app, err := a.appFor(ctx, c.WorkspaceID, appKey{c.Integration, c.Auth})
	switch {
	case err != nil:
		return oauthClient{}, err
	case app == nil:
		return oauthClient{}, fault.New(fault.OAuthAppMissing,
			"there is no OAuth app for %s yet: an owner registers one at the service and adds its client ID and secret", c.service.Name)
	}
	if app.secrets.Use != c.service.Use() {
		return oauthClient{}, fault.New(fault.OAuthAppMissing, "the integration %s was changed since its OAuth app was added: an owner checks where its secret is sent now, and adds the app again", c.service.Name)
	}
	c.App = app.Identity()
	return oauthClient{app.ClientID, app.secrets.ClientSecret}, nil
}

// checkAppHost rejects a connection whose token endpoint is on a host that the person who
// connects can choose freely: the secret of an app must not be sent there.
func checkAppHost(c *opened) error {
	name := c.auth.HostField()
	for _, field := range c.service.Fields(c.auth) {
		if field.Name == name && len(field.Enum) == 0 && field.Pattern == "" && !strings.EqualFold(c.Fields[name], field.Default) {
			return fault.Field("/fields/"+name, "must be %s to connect with the OAuth app: connect another host with a token, or as a custom connection with its own client ID", field.Default)
		}
	}
	return nil
}

// appKey identifies the service that an app is for.
type appKey struct{ integration, auth string }

// AddFromFile adds the OAuth apps of the operator's file. They are used where neither
// the workspace nor the installation has one.
func (a *Apps) AddFromFile(text []byte) error {
	var entries []struct {
		Integration  string            `json:"integration"`
		Auth         string            `json:"auth"`
		ClientID     string            `json:"client_id"`
		ClientSecret string            `json:"client_secret"`
		Fields       map[string]string `json:"fields"`
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		return fmt.Errorf("must be a list of apps with integration, client_id and client_secret: %w", err)
	}
	apps := map[appKey]InstalledApp{}
	for i, entry := range entries {
		service, ok := a.repo.integrations.catalog.Find(entry.Integration)
		if !ok {
			return fmt.Errorf("entry %d: there is no integration %q%s", i+1, entry.Integration, a.repo.integrations.catalog.Hint(entry.Integration))
		}
		way, err := consentWay(service, entry.Auth)
		if err != nil {
			return fmt.Errorf("entry %d: %w", i+1, err)
		}
		if entry.ClientID == "" || entry.ClientSecret == "" {
			return fmt.Errorf("entry %d: client_id and client_secret are required", i+1)
		}
		plain, secret, problems := sortFields(way.AppFields, entry.Fields, "an OAuth app for "+service.Name)
		if len(problems) > 0 {
			return fmt.Errorf("entry %d: %s %s", i+1, strings.TrimPrefix(problems[0].Pointer, "/"), problems[0].Message)
		}
		key := appKey{service.ConnectedAs(), way.ID}
		apps[key] = InstalledApp{
			App:     App{ID: key.fileID(), Integration: key.integration, Auth: key.auth, ClientID: entry.ClientID, Fields: plain, Shared: true},
			secrets: appSecrets{ClientSecret: entry.ClientSecret, Fields: secret},
		}
	}
	a.fileApps = apps
	return nil
}
