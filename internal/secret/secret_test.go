package secret_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/test/lane"
)

func TestMain(m *testing.M) {
	// Each check makes dozens of commits. A flag on the command line overrides this.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	m.Run()
}

// whole requests all items of any list in these tests.
var whole = paging.Request{Limit: paging.MaxLimit}

// env is an installation with a secret service.
type env struct {
	*sqlitetest.Installation
	t      *testing.T
	values *secret.Service
}

func newEnv(t *testing.T) *env {
	t.Helper()
	in := sqlitetest.New(t, store.Notify{})
	return &env{in, t, secret.NewService(in.DB.Secrets, in.Vault)}
}

// open returns the values of secrets.
func (b *env) open(actor auth.Actor, names ...string) map[string]string {
	b.t.Helper()
	values, err := b.values.Open(b.t.Context(), actor.Workspace.ID, names)
	if err != nil {
		b.t.Fatal(err)
	}
	return values
}

// secret puts a secret and reports whether it is new.
func (b *env) secret(actor auth.Actor, name, value string) (secret.Secret, bool) {
	b.t.Helper()
	made, created, err := b.values.Secrets.Put(b.t.Context(), actor, name, value)
	if err != nil {
		b.t.Fatal(err)
	}
	return made, created
}

// A secret is readable without its value only.
func TestPutSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newEnv(t)
		made, created := b.secret(b.Admin, "shop_token", "s3cret-value")
		now := time.Now().UTC()
		want := secret.Secret{Metadata: secret.Metadata{
			WorkspaceID: b.Admin.Workspace.ID, Name: "shop_token", CreatedAt: now, CreatedBy: b.Admin.ID, UpdatedAt: now, UpdatedBy: b.Admin.ID,
		}}
		if diff := cmp.Diff(want, made); diff != "" || !created {
			t.Errorf("created is %t, the secret (-want +got):\n%s", created, diff)
		}
		time.Sleep(time.Hour)
		colleague := b.Admin
		colleague.ID = "key_other"
		want.UpdatedAt, want.UpdatedBy = time.Now().UTC(), "key_other"
		replaced, created := b.secret(colleague, "shop_token", "another value")
		if diff := cmp.Diff(want, replaced); diff != "" || created {
			t.Errorf("created is %t, the replaced secret (-want +got):\n%s", created, diff)
		}
		read, err := b.values.Secrets.Get(t.Context(), b.Admin, "shop_token")
		if diff := cmp.Diff(want, read); diff != "" || err != nil {
			t.Errorf("%v, the secret (-want +got):\n%s", err, diff)
		}
		page, err := b.values.Secrets.List(t.Context(), b.Admin, whole)
		if diff := cmp.Diff([]secret.Secret{want}, page.Items); diff != "" || err != nil {
			t.Errorf("%v, the list (-want +got):\n%s", err, diff)
		}
		if got := b.open(b.Admin, "shop_token", "none"); fmt.Sprint(got) != "map[shop_token:another value]" {
			t.Errorf("the opened values are %v", got)
		}
		if got := fmt.Sprint(b.Actions(b.t, b.Admin.Workspace.ID, "shop_token")); got != "[secret.updated secret.created]" {
			t.Errorf("the audit log has %s", got)
		}
	})
}

// The type has no field that could expose the value.
func TestSecretsHaveNoValue(t *testing.T) {
	t.Parallel()
	want := []string{"Metadata", "WorkspaceID", "Name", "CreatedAt", "CreatedBy", "UpdatedAt", "UpdatedBy"}
	var fields []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[secret.Secret]()) {
		fields = append(fields, field.Name)
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// A sealed value does not contain the value, is different each time, and cannot be
// opened under another name or workspace.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	other := b.Workspace(t, auth.Free)
	sealed := func(actor auth.Actor, name string) []byte {
		t.Helper()
		b.secret(actor, name, "the same value")
		found, err := b.Secrets.SealedSecrets(t.Context(), actor.Workspace.ID, []string{name})
		if err != nil {
			t.Fatal(err)
		}
		return found[name]
	}
	all := [][]byte{sealed(b.Admin, "a"), sealed(b.Admin, "a"), sealed(b.Admin, "b"), sealed(other, "a")}
	for i, one := range all {
		if strings.Contains(string(one), "same") {
			t.Errorf("the value is stored as %q", one)
		}
		for _, two := range all[:i] {
			if string(one) == string(two) {
				t.Error("sealing a value twice gives the same bytes")
			}
		}
	}
	for ref, opens := range map[vault.Ref]bool{
		{Workspace: b.Admin.Workspace.ID, Table: "secrets", ID: "b"}:   true,
		{Workspace: b.Admin.Workspace.ID, Table: "secrets", ID: "a"}:   false,
		{Workspace: b.Admin.Workspace.ID, Table: "variables", ID: "b"}: false,
		{Workspace: other.Workspace.ID, Table: "secrets", ID: "b"}:     false,
	} {
		if plain, err := b.Vault.Open(t.Context(), ref, all[2]); (err == nil) != opens || opens && string(plain) != "the same value" {
			t.Errorf("%+v: %q, %v", ref, plain, err)
		}
	}
}

// tampered is a store in which a sealed value was moved to another name.
type tampered struct{ secret.Store }

func (s tampered) SealedSecrets(ctx context.Context, workspaceID string, names []string) (map[string][]byte, error) {
	found, err := s.Store.SealedSecrets(ctx, workspaceID, []string{"one", "two"})
	return map[string][]byte{"one": found["two"]}, err
}

func TestMovedSecretCannotBeOpened(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	b.secret(b.Admin, "one", "first value")
	b.secret(b.Admin, "two", "second value")
	values, err := secret.NewService(tampered{b.Secrets}, b.Vault).Open(t.Context(), b.Admin.Workspace.ID, []string{"one"})
	if !errors.Is(err, vault.ErrSealed) || values != nil || !strings.Contains(err.Error(), "one") || strings.Contains(err.Error(), "value") {
		t.Errorf("the opened values are %v, %v", values, err)
	}
}

// A value is text of 4 characters to 64 KiB. A rejected value changes nothing.
func TestSecretValues(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	b.secret(b.Admin, "token", "value")
	for value, ok := range map[string]bool{
		"äöüß": true, "    ": true, "a\nb\tc": true, strings.Repeat("x", 64<<10): true, strings.Repeat("é", 32<<10): true,
		"": false, "abc": false, "äöü": false, "abc\x00d": false, "abcd\xff": false,
		strings.Repeat("x", 64<<10+1): false, strings.Repeat("é", 32<<10) + "x": false,
	} {
		before := b.open(b.Admin, "token")["token"]
		_, _, err := b.values.Secrets.Put(t.Context(), b.Admin, "token", value)
		want := value
		if !ok {
			faulttest.Want(t, err, fault.InvalidRequest, "/value")
			want = before
		} else if err != nil {
			t.Errorf("%.20q: %v", value, err)
		}
		if got := b.open(b.Admin, "token")["token"]; got != want {
			t.Errorf("after %.20q the value is %.20q", value, got)
		}
		if err != nil && len(value) > 3 && strings.Contains(err.Error(), value) {
			t.Errorf("the error contains the value: %.100v", err)
		}
	}
}

// The minimum length of a value is the minimum length that can be masked.
func TestShortestValueIsMasked(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	value := strings.Repeat("x", mask.MinLength)
	b.secret(b.Admin, "token", value)
	if got := mask.New([]string{value}).Text(value); got != mask.Replacement {
		t.Errorf("%s is masked as %s", value, got)
	}
	_, _, err := b.values.Secrets.Put(t.Context(), b.Admin, "token", value[1:])
	faulttest.Want(t, err, fault.InvalidRequest, "/value")
}

// Names are identifiers of expressions and are case-sensitive.
func TestNames(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	for _, name := range []string{"a", "A", "_", "A9_z", "true", "in", strings.Repeat("x", 63)} {
		if _, created := b.secret(b.Admin, name, "value of "+name); !created {
			t.Errorf("%q already exists", name)
		}
		if _, created, err := b.values.Variables.Put(t.Context(), b.Admin, name, json.RawMessage(`1`)); err != nil || !created {
			t.Errorf("%q: %t, %v", name, created, err)
		}
	}
	if got := b.open(b.Admin, "a", "A"); got["a"] != "value of a" || got["A"] != "value of A" {
		t.Errorf("the opened values are %v", got)
	}
	for _, name := range []string{"", "9a", "a-b", "a.b", "a b", "ä", "%", "a\n", "\x00", "$wf", strings.Repeat("x", 64), "<b>"} {
		_, _, err := b.values.Secrets.Put(t.Context(), b.Admin, name, "value")
		faulttest.Want(t, err, fault.InvalidRequest)
		_, err = b.values.Secrets.Get(t.Context(), b.Admin, name)
		faulttest.Want(t, err, fault.SecretNotFound)
		faulttest.Want(t, b.values.Secrets.Delete(t.Context(), b.Admin, name), fault.SecretNotFound)
		_, _, err = b.values.Variables.Put(t.Context(), b.Admin, name, json.RawMessage(`1`))
		faulttest.Want(t, err, fault.InvalidRequest)
		_, err = b.values.Variables.Get(t.Context(), b.Admin, name)
		faulttest.Want(t, err, fault.VariableNotFound)
		faulttest.Want(t, b.values.Variables.Delete(t.Context(), b.Admin, name), fault.VariableNotFound)
	}
	names, err := b.values.Names(t.Context(), b.Admin.Workspace.ID)
	want := []string{"A", "A9_z", "_", "a", "in", "true", strings.Repeat("x", 63)}
	if diff := cmp.Diff(secret.Names{Secrets: want, Variables: want}, names); diff != "" || err != nil {
		t.Errorf("%v, names (-want +got):\n%s", err, diff)
	}
}

func TestDeleteSecret(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	b.secret(b.Admin, "token", "value")
	if err := b.values.Secrets.Delete(t.Context(), b.Admin, "token"); err != nil {
		t.Fatal(err)
	}
	faulttest.Want(t, b.values.Secrets.Delete(t.Context(), b.Admin, "token"), fault.SecretNotFound)
	_, err := b.values.Secrets.Get(t.Context(), b.Admin, "token")
	faulttest.Want(t, err, fault.SecretNotFound)
	if got := b.open(b.Admin, "token"); len(got) > 0 {
		t.Errorf("the opened values are %v", got)
	}
	if _, created := b.secret(b.Admin, "token", "again"); !created {
		t.Error("the name of a deleted secret cannot be used again")
	}
	if got := fmt.Sprint(b.Actions(b.t, b.Admin.Workspace.ID, "token")); got != "[secret.created secret.deleted secret.created]" {
		t.Errorf("the audit log has %s", got)
	}
}

// The secrets of a workspace are not visible to other workspaces.
func TestSecretsOfOtherWorkspaces(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	other := b.Workspace(t, auth.Free)
	b.secret(b.Admin, "token", "first value")
	if _, err := b.values.Secrets.Get(t.Context(), other, "token"); !fault.Is(err, fault.SecretNotFound) {
		t.Errorf("the secret of another workspace: %v", err)
	}
	faulttest.Want(t, b.values.Secrets.Delete(t.Context(), other, "token"), fault.SecretNotFound)
	if got := b.open(other, "token"); len(got) > 0 {
		t.Errorf("the opened values are %v", got)
	}
	if _, created := b.secret(other, "token", "second value"); !created {
		t.Error("the name already exists")
	}
	if err := b.values.Secrets.Delete(t.Context(), other, "token"); err != nil {
		t.Fatal(err)
	}
	if got := b.open(b.Admin, "token")["token"]; got != "first value" {
		t.Errorf("the value is %q", got)
	}
}

// The plan limits the number of secrets. Replacing one is always allowed.
func TestSecretLimit(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	actor := b.Workspace(t, auth.Free)
	for i := range 100 {
		b.secret(actor, fmt.Sprintf("s%d", i), "value")
	}
	_, created, err := b.values.Secrets.Put(t.Context(), actor, "one_more", "value")
	faulttest.Want(t, err, fault.PlanLimitExceeded)
	if !strings.Contains(err.Error(), "100") || !strings.Contains(err.Error(), "free") || created {
		t.Errorf("created is %t, the error %q", created, err)
	}
	b.secret(actor, "s0", "another value")
	if err := b.values.Secrets.Delete(t.Context(), actor, "s1"); err != nil {
		t.Fatal(err)
	}
	b.secret(actor, "one_more", "value")
}

// Of concurrent puts of one name, exactly one creates it.
func TestConcurrentPut(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	var all sync.WaitGroup
	made := make(chan bool, 16)
	for i := range cap(made) {
		all.Go(func() {
			_, created, err := b.values.Secrets.Put(t.Context(), b.Admin, "token", fmt.Sprintf("value %d", i))
			if err != nil {
				t.Error(err)
			}
			made <- created
		})
	}
	all.Wait()
	close(made)
	n := 0
	for created := range made {
		if created {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it was created %d times", n)
	}
}

// Secrets are listed by name, page by page.
func TestListSecrets(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	for _, name := range []string{"b", "a", "Z", "_", "c"} {
		b.secret(b.Admin, name, "value")
	}
	var got []string
	for page := (paging.Request{Limit: 2}); ; {
		found, err := b.values.Secrets.List(t.Context(), b.Admin, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found.Items {
			got = append(got, s.Name)
		}
		if page.After = found.Next; found.Next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"Z", "_", "a", "b", "c"}, got); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// For any sequence of puts and deletes, Open returns the values put last.
func TestSecretsProperty(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	names := []string{"a", "A", "b"}
	lane.Check(t, func(rt *rapid.T) {
		actor := b.Workspace(t, auth.Free)
		model := map[string]string{}
		name := rapid.SampledFrom(names)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				name, value := name.Draw(rt, "name"), rapid.StringN(0, 20, -1).Draw(rt, "value")
				_, created, err := b.values.Secrets.Put(t.Context(), actor, name, value)
				if len([]rune(value)) < mask.MinLength || strings.ContainsRune(value, 0) {
					if !fault.Is(err, fault.InvalidRequest) {
						rt.Fatalf("%q: %v", value, err)
					}
					return
				}
				if _, there := model[name]; err != nil || created == there {
					rt.Fatalf("%q: created %t, %v", value, created, err)
				}
				model[name] = value
			},
			"delete": func(rt *rapid.T) {
				name := name.Draw(rt, "name")
				err := b.values.Secrets.Delete(t.Context(), actor, name)
				if _, there := model[name]; there != (err == nil) {
					rt.Fatalf("delete %s: %v", name, err)
				}
				delete(model, name)
			},
			"": func(rt *rapid.T) {
				got, err := b.values.Open(t.Context(), actor.Workspace.ID, names)
				if diff := cmp.Diff(model, got); err != nil || diff != "" {
					rt.Fatalf("%v, opened (-want +got):\n%s", err, diff)
				}
				listed, err := b.values.Names(t.Context(), actor.Workspace.ID)
				if err != nil || len(listed.Secrets) != len(model) || !slices.IsSorted(listed.Secrets) {
					rt.Fatalf("names are %v, %v", listed, err)
				}
			},
		})
	})
}
