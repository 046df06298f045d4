package connection_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/test/oauthserver"
)

const redirect = "https://flows.example/ui/v1/oauth/callback"

// installation is a store with one workspace, and the services of several nodes on it.
type installation struct {
	t      *testing.T
	db     *sqlite.DB
	store  *store.DB
	vault  *vault.Vault
	client connection.Client
	owner  auth.Actor
	log    bytes.Buffer
	*parts
}

// parts are the services of a node, with the methods of all but Apps, whose names are those
// of Service.
type parts struct {
	connection.Services
	*connection.Service
	*connection.Consents
	*connection.Opener
	*connection.Renewer
	*connection.Tester
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	db := sqlitetest.Open(t)
	in := &installation{t: t, db: db, store: store.New(db, store.Notify{})}
	var err error
	if in.vault, err = vault.New(make([]byte, 32), in.store.Workspaces); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.NewService(in.store.Workspaces, in.vault).Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := in.store.Workspaces.FirstWorkspace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in.owner = auth.Actor{Workspace: *first, Type: "user", ID: "usr_1", Scopes: auth.Scopes()}
	client := egress.New(egress.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	t.Cleanup(client.Close)
	in.client = client
	in.parts = in.node("node_1")
	return in
}

// Create prepares and creates a connection.
func (in *installation) Create(ctx context.Context, actor auth.Actor, wanted connection.New) (connection.Connection, error) {
	return create(ctx, in.Connections, actor, wanted)
}

func create(ctx context.Context, s *connection.Service, actor auth.Actor, wanted connection.New) (connection.Connection, error) {
	prepared, err := s.PrepareCreate(ctx, actor, wanted)
	if err != nil {
		return connection.Connection{}, err
	}
	return s.Create(ctx, actor, prepared)
}

// PutApp prepares and creates or replaces an OAuth app.
func (in *installation) PutApp(ctx context.Context, actor auth.Actor, wanted connection.NewApp) (connection.App, bool, error) {
	return putApp(ctx, in.Apps, actor, wanted)
}

func putApp(ctx context.Context, apps *connection.Apps, actor auth.Actor, wanted connection.NewApp) (connection.App, bool, error) {
	prepared, err := apps.Prepare(ctx, actor, wanted)
	if err != nil {
		return connection.App{}, false, err
	}
	return apps.Put(ctx, actor, prepared)
}

func (in *installation) node(id string) *parts {
	in.t.Helper()
	catalog, err := integration.Builtin()
	if err != nil {
		in.t.Fatal(err)
	}
	return in.assemble(in.client, catalog, id)
}

// assemble returns the services of a node with other integrations, or with another client.
func (in *installation) assemble(client connection.Client, catalog *integration.Catalog, id string) *parts {
	s := connection.NewServices(connection.Deps{
		Store: in.store.Connections, Vault: in.vault, Client: client, Catalog: catalog, Node: id, Log: slog.New(slog.NewTextHandler(&in.log, nil)),
	})
	return &parts{s, s.Connections, s.Consents, s.Opener, s.Renewer, s.Tester}
}

// definition is a custom connection to a test server.
func definition(s *oauthserver.Server, more string) []byte {
	return []byte(fmt.Sprintf(`{"hosts": [%q], "test_url": %q, "token_url": %q %s}`, s.URL, s.URL+"/resource", s.URL+"/token", more))
}

// connect makes a connection by consent.
func (in *installation) connect(s *oauthserver.Server, name string) connection.Connection {
	in.t.Helper()
	address, err := in.Connect(in.t.Context(), in.owner, connection.New{
		Name: name, Auth: integration.OAuth2, Fields: map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret},
		Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q, "revoke_url": %q`, s.URL+"/authorize", s.URL+"/revoke")),
	}, redirect)
	if err != nil {
		in.t.Fatal(err)
	}
	c, err := in.Complete(in.t.Context(), in.owner, s.Consent(in.t, address))
	if err != nil {
		in.t.Fatal(err)
	}
	return c.Connection
}

// call requests the resource of a test server with a connection.
func (in *installation) call(node *parts, s *oauthserver.Server, name string) error {
	return node.Use(in.t.Context(), in.owner.Workspace.ID, name, time.Minute, func(ctx context.Context, c action.Connection) error {
		resp, err := in.client.Do(ctx, egress.Request{URL: s.URL + "/resource", Credential: c.Credential, Workspace: in.owner.Workspace.ID})
		switch {
		case err != nil:
			return err
		case resp.Status == http.StatusUnauthorized:
			return &action.Failure{Code: "http_error", Message: "401", Rejected: true}
		case resp.Status != http.StatusOK:
			return fmt.Errorf("status %d", resp.Status)
		}
		return nil
	})
}

func TestConsent(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	if c.Status != connection.Connected || c.ExpiresAt == nil {
		t.Errorf("%+v", c)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}

func TestConsentIsUsedOnceByWhoAsked(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	begin := func() string {
		address, err := in.Connect(t.Context(), in.owner, connection.New{
			Name: "shop", Auth: integration.OAuth2, Fields: map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret},
			Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q`, s.URL+"/authorize")),
		}, redirect)
		if err != nil {
			t.Fatal(err)
		}
		return address
	}
	other := in.owner
	other.ID = "usr_2"
	back := s.Consent(t, begin())
	if _, err := in.Complete(t.Context(), other, back); !fault.Is(err, fault.ConsentExpired) {
		t.Errorf("another person completed it: %v", err)
	}
	if _, err := in.Complete(t.Context(), in.owner, back); err != nil {
		t.Error(err)
	}
	_, err := in.Complete(t.Context(), in.owner, back)
	faulttest.Want(t, err, fault.ConsentExpired)
}

func TestTokenIsRenewedOnceOnAllNodes(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	in.connect(s, "shop")
	s.Set(func(now *oauthserver.Settings) { now.Delay = 300 * time.Millisecond })
	s.ExpireAll()
	nodes := []*parts{in.parts, in.node("node_1"), in.node("node_1")}
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			if err := in.call(nodes[i%len(nodes)], s, "shop"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := s.Requests("refresh_token"); n != 1 {
		t.Errorf("the token was renewed %d times", n)
	}
}

func TestRevokedTokenBreaksTheConnection(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	s.RevokeAll()
	broken := func() {
		t.Helper()
		if _, ok := errors.AsType[*connection.BrokenError](in.call(in.parts, s, "shop")); !ok {
			t.Error("the connection is not broken")
		}
	}
	broken()
	broken() // without another request
	if n := s.Requests("refresh_token"); n != 1 {
		t.Errorf("%d requests", n)
	}
	address, err := in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Complete(t.Context(), in.owner, s.Consent(t, address)); err != nil {
		t.Fatal(err)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Definition: definition(s, ""),
		Fields: map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := in.call(in.parts, s, "shop"); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Requests("client_credentials"); n != 1 {
		t.Errorf("%d tokens for three calls", n)
	}
	result, err := in.Test(t.Context(), in.owner, c.ID)
	if err != nil || result.Problem != "" || result.Connection.Status != connection.Connected {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestRejectedStaticKey(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "not-a-token"},
		Definition: []byte(fmt.Sprintf(`{"hosts": [%q]}`, s.URL)),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = in.call(in.parts, s, "shop")
	if failure, ok := errors.AsType[*action.Failure](err); !ok || failure.Code != "http_error" {
		t.Errorf("%v", err)
	}
	if now, err := in.Get(t.Context(), in.owner, c.ID); err != nil || now.Status != connection.Failing {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestTestRepairsConnection checks that a test of a broken connection asks the service
// again, on every node.
func TestTestRepairsConnection(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	s.ExpireAll()
	s.Set(func(now *oauthserver.Settings) { now.Fails = "invalid_grant" })
	if _, broken := errors.AsType[*connection.BrokenError](in.call(in.parts, s, "shop")); !broken {
		t.Fatal("the connection works")
	}
	if result, err := in.Test(t.Context(), in.owner, c.ID); err != nil || result.Problem == "" || s.Requests("refresh_token") != 2 {
		t.Errorf("%+v, %v, %d requests", result, err, s.Requests("refresh_token"))
	}
	s.Set(func(now *oauthserver.Settings) { now.Fails = "" })
	result, err := in.node("node_2").Test(t.Context(), in.owner, c.ID)
	if err != nil || result.Problem != "" || result.Connection.Status != connection.Connected {
		t.Errorf("%+v, %v", result, err)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}
