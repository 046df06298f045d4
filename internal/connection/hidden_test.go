package connection_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// wantMasked checks that a node masks texts in everything that is about connections.
func (in *installation) wantMasked(node *parts, names []string, texts ...string) {
	in.t.Helper()
	masker, err := node.Mask(in.t.Context(), in.owner.Workspace.ID, names)
	if err != nil {
		in.t.Fatal(err)
	}
	for _, text := range texts {
		if got := masker.Text(text); got != mask.Replacement {
			in.t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// create makes a connection with a key.
func (in *installation) create(name, key, apply string) connection.Connection {
	in.t.Helper()
	c, err := in.Create(in.t.Context(), in.owner, connection.New{
		Name: name, Auth: integration.APIKey, Definition: fmt.Appendf(nil, `{"hosts": ["api.example.com"], "apply": %s}`, apply), Fields: map[string]string{"key": key},
	})
	if err != nil {
		in.t.Fatal(err)
	}
	return c
}

const inHeader = `{"headers": {"X-Key": "${{ secret.key }}"}}`

func TestMaskHasWhatApplyMakesOfSecrets(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	in.create("shop", "swordfish", `{
		"headers": {"X-Hash": "v1=${{ hmacSha256(secret.key, 'x') }}", "X-Upper": "${{ upper(secret.key) }} of ${{ 'the public' }}"},
		"query": {"reversed": "${{ join(reverse(split(secret.key, '')), '') }}", "long": "${{ len(secret.key) == 9 }}"},
		"basic": {"user": "robot", "password": "${{ secret.key }}-1"}
	}`)
	mac := hmac.New(sha256.New, []byte("swordfish"))
	mac.Write([]byte("x"))
	in.wantMasked(in.parts, []string{"shop"},
		"swordfish", "SWORDFISH", "hsifdrows", hex.EncodeToString(mac.Sum(nil)),
		base64.StdEncoding.EncodeToString([]byte("robot:swordfish-1")))
	masker, err := in.Mask(t.Context(), in.owner.Workspace.ID, []string{"shop"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"true", "robot", "the public", "v1="} {
		if got := masker.Text(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// Every node masks the secrets that a connection had before.
func TestMaskHasReplacedSecrets(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	c := in.create("shop", "swordfish", inHeader)
	for _, key := range []string{"flounder", "mackerel"} {
		if _, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: map[string]string{"key": key}}); err != nil {
			t.Fatal(err)
		}
	}
	in.wantMasked(in.node("node_2"), []string{"none", "shop"}, "swordfish", "flounder", "mackerel")
}

func TestMaskHasReplacedTokens(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	s.ExpireAll()
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Fatal(err)
	}
	address, err := in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Complete(t.Context(), in.owner, s.Consent(t, address)); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Issued()); n < 3 {
		t.Fatalf("%d tokens were issued", n)
	}
	in.wantMasked(in.node("node_2"), []string{"shop"}, s.Issued()...)
}

// A process goes on to mask the secrets of a connection that is deleted, even if another
// one gets its name.
func TestMaskOfDeletedConnection(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	c := in.create("shop", "swordfish", inHeader)
	in.wantMasked(in.parts, []string{"shop"}, "swordfish")
	if err := in.Delete(t.Context(), in.owner, c.ID); err != nil {
		t.Fatal(err)
	}
	in.wantMasked(in.parts, []string{"shop"}, "swordfish")
	in.create("shop", "flounder", inHeader)
	in.wantMasked(in.parts, []string{"shop"}, "swordfish", "flounder")
	if masker, err := in.Mask(t.Context(), "ws_other", []string{"shop"}); err != nil || masker != nil {
		t.Errorf("another workspace has a masker: %v", err)
	}
}

// TestMaskOfUnusableConnection checks that a connection whose definition is no longer
// valid does not stop the runs that use it.
func TestMaskOfUnusableConnection(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	c := in.create("shop", "swordfish", inHeader)
	sealed, err := in.store.Connections.SealedConnection(t.Context(), c.WorkspaceID, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	sealed.Definition = []byte(`{"hosts": []}`)
	if _, err := in.store.Connections.UpdateConnection(t.Context(), *sealed, sealed.Epoch, nil); err != nil {
		t.Fatal(err)
	}
	in.wantMasked(in.node("node_2"), []string{"shop"}, "swordfish")
}
