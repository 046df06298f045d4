package connection_test

import (
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// TestMasterKeyRotation checks that connections, OAuth apps and consents can be used
// after the master key was rotated.
func TestMasterKeyRotation(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	if _, _, err := in.PutApp(t.Context(), in.owner, connection.NewApp{Integration: "slack", ClientID: "c", ClientSecret: "s3cret"}); err != nil {
		t.Fatal(err)
	}
	address, err := in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil)
	if err != nil {
		t.Fatal(err)
	}

	old, key := in.vault, make([]byte, 32)
	key[0] = 1
	if in.vault, err = vault.New(key, in.store.Workspaces); err != nil {
		t.Fatal(err)
	}
	if err := in.store.Installation.RewrapDataKeys(t.Context(), in.vault.Check(), func(id string, wrapped []byte) ([]byte, error) { return old.Rewrap(id, wrapped, in.vault) }); err != nil {
		t.Fatal(err)
	}
	in.parts = in.node("node_2")
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
	if _, err := in.Complete(t.Context(), in.owner, s.Consent(t, address)); err != nil {
		t.Error(err)
	}
	if _, err := in.Connect(t.Context(), in.owner, connection.New{Name: "team", Integration: "slack", Auth: "oauth2"}, redirect); err != nil {
		t.Error(err)
	}
}

// TestMovedCredential checks that the credential of one connection does not open as
// that of another.
func TestMovedCredential(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	ctx, ws := t.Context(), in.owner.Workspace.ID
	for _, name := range []string{"one", "two"} {
		if _, err := in.Create(ctx, in.owner, connection.New{
			Name: name, Auth: integration.Bearer, Fields: map[string]string{"token": "token of " + name}, Definition: []byte(`{"hosts": ["api.example.com"]}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	one, err := in.store.Connections.SealedConnection(ctx, ws, "one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := in.store.Connections.SealedConnection(ctx, ws, "two")
	if err != nil {
		t.Fatal(err)
	}
	two.Credential = one.Credential
	if _, err := in.store.Connections.UpdateConnection(ctx, *two, two.Epoch, nil); err != nil {
		t.Fatal(err)
	}
	if err := in.call(in.parts, s, "two"); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("got %v", err)
	}
}
