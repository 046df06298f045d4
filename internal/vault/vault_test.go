package vault_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/internal/vault"
)

type keys map[string][]byte

func (k keys) DataKey(_ context.Context, workspaceID string) ([]byte, error) {
	if key, ok := k[workspaceID]; ok {
		return key, nil
	}
	return nil, errors.New("no such workspace")
}

func master() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}

func open(t *testing.T, key []byte, stored keys) *vault.Vault {
	t.Helper()
	v, err := vault.New(key, stored)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSealedValueIsBoundToItsRow(t *testing.T) {
	t.Parallel()
	key, stored := master(), keys{}
	v := open(t, key, stored)
	stored["ws_a"], stored["ws_b"] = v.NewDataKey("ws_a"), v.NewDataKey("ws_b")
	at := vault.Ref{Workspace: "ws_a", Table: "webhooks", ID: "wh_1"}
	sealed, err := v.Seal(t.Context(), at, []byte("whsec_secret"))
	if err != nil || bytes.Contains(sealed, []byte("whsec_secret")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	if plain, err := open(t, key, stored).Open(t.Context(), at, sealed); err != nil || string(plain) != "whsec_secret" {
		t.Fatalf("%q, %v", plain, err)
	}
	for _, elsewhere := range []vault.Ref{
		{Workspace: "ws_b", Table: "webhooks", ID: "wh_1"},
		{Workspace: "ws_a", Table: "idempotency", ID: "wh_1"},
		{Workspace: "ws_a", Table: "webhooks", ID: "wh_2"},
	} {
		if _, err := v.Open(t.Context(), elsewhere, sealed); !errors.Is(err, vault.ErrSealed) {
			t.Errorf("%+v: %v", elsewhere, err)
		}
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := v.Open(t.Context(), at, sealed); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("a changed byte: %v", err)
	}
}

func TestSignatureIsBoundToTextPurposeAndWorkspace(t *testing.T) {
	t.Parallel()
	stored := keys{}
	v := open(t, master(), stored)
	stored["ws_a"], stored["ws_b"] = v.NewDataKey("ws_a"), v.NewDataKey("ws_b")
	sign := func(v *vault.Vault, workspace, purpose, text string) string {
		t.Helper()
		signature, err := v.Sign(t.Context(), workspace, purpose, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(signature)
	}
	want := sign(v, "ws_a", "links", "x")
	if len(want) != 32 || sign(v, "ws_a", "links", "x") != want {
		t.Error("the second signature differs")
	}
	for _, other := range []string{sign(v, "ws_b", "links", "x"), sign(v, "ws_a", "hooks", "x"), sign(v, "ws_a", "links", "y")} {
		if other == want {
			t.Error("two signatures are the same")
		}
	}
	if _, err := v.Sign(t.Context(), "ws_c", "links", []byte("x")); err == nil {
		t.Error("signed for a workspace without a key")
	}
	next, to := master(), keys{}
	rewrapped, err := v.Rewrap("ws_a", stored["ws_a"], open(t, next, to))
	if err != nil {
		t.Fatal(err)
	}
	to["ws_a"] = rewrapped
	if sign(open(t, next, to), "ws_a", "links", "x") != want {
		t.Error("a rotation of the master key changes signatures")
	}
}

func TestDerivedKeyDependsOnWorkspacePurposeAndSalt(t *testing.T) {
	t.Parallel()
	stored := keys{}
	v := open(t, master(), stored)
	stored["ws_a"], stored["ws_b"] = v.NewDataKey("ws_a"), v.NewDataKey("ws_b")
	derive := func(v *vault.Vault, workspace, purpose, salt string) string {
		t.Helper()
		key, err := v.DeriveKey(t.Context(), workspace, purpose, []byte(salt))
		if err != nil {
			t.Fatal(err)
		}
		return string(key)
	}
	want := derive(v, "ws_a", "blobs", "1")
	if len(want) != 32 || derive(v, "ws_a", "blobs", "1") != want {
		t.Error("the second key differs")
	}
	for _, other := range []string{derive(v, "ws_b", "blobs", "1"), derive(v, "ws_a", "others", "1"), derive(v, "ws_a", "blobs", "2")} {
		if other == want {
			t.Error("two keys are the same")
		}
	}
	if _, err := v.DeriveKey(t.Context(), "ws_c", "blobs", nil); err == nil {
		t.Error("derived a key for a workspace without a data key")
	}
	next, to := master(), keys{}
	rewrapped, err := v.Rewrap("ws_a", stored["ws_a"], open(t, next, to))
	if err != nil {
		t.Fatal(err)
	}
	to["ws_a"] = rewrapped
	if derive(open(t, next, to), "ws_a", "blobs", "1") != want {
		t.Error("a rotation of the master key changes derived keys")
	}
}

func TestAnotherMasterKeyCannotOpen(t *testing.T) {
	t.Parallel()
	stored := keys{}
	v := open(t, master(), stored)
	stored["ws_a"] = v.NewDataKey("ws_a")
	at := vault.Ref{Workspace: "ws_a", Table: "t", ID: "1"}
	sealed, err := v.Seal(t.Context(), at, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, master(), stored)
	if _, err := other.Open(t.Context(), at, sealed); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("got %v", err)
	}
	if bytes.Equal(v.Check(), other.Check()) {
		t.Error("two master keys have the same check value")
	}
	if bytes.Equal(v.Derive("cursors"), v.Derive("other")) {
		t.Error("two purposes have the same key")
	}
}

func TestParseMasterKey(t *testing.T) {
	t.Parallel()
	key := master()
	for _, text := range []string{
		hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key),
		" " + base64.StdEncoding.EncodeToString(key) + "\n",
	} {
		if got, err := vault.ParseMasterKey(text); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "short", hex.EncodeToString(key[:31]), base64.StdEncoding.EncodeToString(append(key, 1))} {
		if _, err := vault.ParseMasterKey(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestMasterKeyFileIsCreatedOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := vault.ReadMasterKey(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	made, err := vault.ReadOrCreateMasterKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := vault.ReadOrCreateMasterKey(path)
	if err != nil || !bytes.Equal(made, again) {
		t.Fatalf("the second read differs: %v", err)
	}
	if _, err := vault.CreateMasterKey(path); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("an existing key was replaced: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

func TestDiscardStaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := vault.DiscardStaged(path); err != nil {
		t.Errorf("without a staged key: %v", err)
	}
	if _, err := vault.StageMasterKey(path); err != nil {
		t.Fatal(err)
	}
	if err := vault.DiscardStaged(path); err != nil {
		t.Error(err)
	}
	if _, err := vault.ReadStaged(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the staged key still exists: %v", err)
	}
	// A directory that is not empty cannot be removed, not even by root.
	if err := os.MkdirAll(filepath.Join(path+".next", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := vault.DiscardStaged(path); err == nil {
		t.Error("no error although the staged key was not removed")
	}
}
