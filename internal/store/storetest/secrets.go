package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/vault"
)

func newSecret(workspaceID, name string) secret.Secret {
	now := clock.Now()
	return secret.Secret{
		WorkspaceID: workspaceID, Name: name, CreatedAt: now, CreatedBy: "key_maker", UpdatedAt: now, UpdatedBy: "key_maker",
	}
}

func newVariable(workspaceID, name, value string) secret.Variable {
	now := clock.Now()
	return secret.Variable{
		WorkspaceID: workspaceID, Name: name, Value: json.RawMessage(value),
		CreatedAt: now, CreatedBy: "key_maker", UpdatedAt: now, UpdatedBy: "key_maker",
	}
}

func newDeed(workspaceID, kind, name string) secret.Deed {
	return secret.Deed{Created: newEntry(workspaceID, kind+".created", name), Updated: newEntry(workspaceID, kind+".updated", name)}
}

func (w *world) putSecret(ctx context.Context, workspaceID, name string, atMost int) (secret.Outcome, error) {
	_, outcome, err := w.PutSecret(ctx, newSecret(workspaceID, name), []byte("sealed "+name), atMost, newDeed(workspaceID, "secret", name))
	return outcome, err
}

func (w *world) putVariable(ctx context.Context, workspaceID, name, value string, atMost, bytesAtMost int) (secret.Outcome, error) {
	_, outcome, err := w.PutVariable(ctx, newVariable(workspaceID, name, value), atMost, bytesAtMost, newDeed(workspaceID, "variable", name))
	return outcome, err
}

// actions lists the deeds recorded about a target, newest first.
func (w *world) actions(t *testing.T, workspaceID, target string) []string {
	t.Helper()
	return collect(t, w, `SELECT action FROM audit WHERE workspace_id = $1 AND target_id = $2 ORDER BY id DESC`, []any{workspaceID, target}, text)
}

func testSecrets(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t).ID

	t.Run("put, read, replace and delete", func(t *testing.T) {
		empty(w.Secrets(ctx, ws, whole))(t, "a workspace without one")
		made := newSecret(ws, "token")
		got, outcome, err := w.PutSecret(ctx, made, []byte("one"), plenty, newDeed(ws, "secret", "token"))
		answers(outcome, err)(t, "a new name", secret.Created)
		same(t, "made", got, made)
		again := newSecret(ws, "token")
		again.UpdatedAt, again.UpdatedBy, again.CreatedBy = made.UpdatedAt.Add(time.Second), "key_other", "key_other"
		got, outcome, err = w.PutSecret(ctx, again, []byte("two"), plenty, newDeed(ws, "secret", "token"))
		answers(outcome, err)(t, "a name that is there", secret.Updated)
		want := made
		want.UpdatedAt, want.UpdatedBy = again.UpdatedAt, "key_other"
		same(t, "replaced", got, want)
		same(t, "read", found(w.Secret(ctx, ws, "token"))(t), want)
		same(t, "sealed", must(w.SealedSecrets(ctx, ws, []string{"token", "none"}))(t), map[string][]byte{"token": []byte("two")})
		gone(w.Secret(ctx, ws, "Token"))(t, "a name in other letters")
		answers(w.DeleteSecret(ctx, ws, "none", newEntry(ws, "secret.deleted", "none")))(t, "delete an unknown one", false)
		answers(w.DeleteSecret(ctx, ws, "token", newEntry(ws, "secret.deleted", "token")))(t, "delete", true)
		answers(w.DeleteSecret(ctx, ws, "token", newEntry(ws, "secret.deleted", "token")))(t, "once more", false)
		gone(w.Secret(ctx, ws, "token"))(t, "the deleted one")
		same(t, "sealed", must(w.SealedSecrets(ctx, ws, []string{"token"}))(t), map[string][]byte{})
		same(t, "audit entries", w.actions(t, ws, "token"), []string{"secret.deleted", "secret.updated", "secret.created"})
		same(t, "audit entries of others", w.audited(t, ws, "none"), 0)
	})

	t.Run("names are told by kind and in order", func(t *testing.T) {
		ws := w.workspace(t).ID
		for _, name := range []string{"b", "a", "B", "_x"} {
			answers(w.putSecret(ctx, ws, name, plenty))(t, name, secret.Created)
		}
		answers(w.putVariable(ctx, ws, "a", "1", plenty, plenty))(t, "a variable of the same name", secret.Created)
		same(t, "names", must(w.SecretNames(ctx, ws))(t), secret.Names{Secrets: []string{"B", "_x", "a", "b"}, Variables: []string{"a"}})
		same(t, "of nobody", must(w.SecretNames(ctx, "ws_none"))(t), secret.Names{Secrets: []string{}, Variables: []string{}})
	})

	t.Run("one of many makes the name", func(t *testing.T) {
		made := together(t, 32, func(int) (bool, error) {
			outcome, err := w.putSecret(ctx, ws, "race", plenty)
			return outcome == secret.Created, err
		})
		same(t, "winners", made, 1)
		same(t, "audit entries", w.audited(t, ws, "race"), 32)
		same(t, "counted", must(w.UsageCurrent(ctx, ws))(t).Secrets, 1)
	})

	t.Run("replacing needs no room", func(t *testing.T) {
		answers(w.putSecret(ctx, ws, "race", 0))(t, "a name that is there", secret.Updated)
	})

	t.Run("what was moved does not open", func(t *testing.T) { testMovedSecrets(t, w) })
}

// testMovedSecrets swaps what is sealed between names and workspaces.
func testMovedSecrets(t *testing.T, w *world) {
	ctx := t.Context()
	v := must(vault.New([]byte(strings.Repeat("k", 32)), w.Store))(t)
	service := secret.NewService(w.Store, v)
	var actors []auth.Actor
	for range 2 {
		ws := newWorkspace()
		if err := w.InsertWorkspace(ctx, ws, v.NewDataKey(ws.ID), newKey(ws.ID), "", newEntry(ws.ID, "workspace.created", ws.ID)); err != nil {
			t.Fatal(err)
		}
		actors = append(actors, auth.Actor{Workspace: ws})
		for _, name := range []string{"one", "two"} {
			if _, _, err := service.PutSecret(ctx, auth.Actor{Workspace: ws}, name, "value of "+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, second := actors[0].Workspace.ID, actors[1].Workspace.ID
	names := []string{"one", "two", "three"}
	same(t, "opened", must(service.Open(ctx, first, names))(t), map[string]string{"one": "value of one", "two": "value of two"})
	const move = `UPDATE secrets SET value = (SELECT value FROM secrets WHERE workspace_id = $1 AND name = $2) WHERE workspace_id = $3 AND name = $4`
	w.exec(t, move, first, "one", first, "two")
	_, err := service.Open(ctx, first, names)
	if !errors.Is(err, vault.ErrSealed) {
		t.Errorf("a value moved to another name: %v", err)
	}
	same(t, "the one that stayed", must(service.Open(ctx, first, []string{"one"}))(t), map[string]string{"one": "value of one"})
	w.exec(t, move, first, "one", second, "one")
	if _, err := service.Open(ctx, second, []string{"one"}); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("a value moved to another workspace: %v", err)
	}
}

func testVariables(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t).ID

	t.Run("put, read, replace and delete", func(t *testing.T) {
		empty(w.Variables(ctx, ws, whole))(t, "a workspace without one")
		made := newVariable(ws, "region", `{"a":[1,"ä"]}`)
		got, outcome, err := w.PutVariable(ctx, made, plenty, plenty, newDeed(ws, "variable", "region"))
		answers(outcome, err)(t, "a new name", secret.Created)
		same(t, "made", got, made)
		again := newVariable(ws, "region", "null")
		again.UpdatedAt, again.UpdatedBy, again.CreatedBy = made.UpdatedAt.Add(time.Second), "key_other", "key_other"
		got, outcome, err = w.PutVariable(ctx, again, plenty, plenty, newDeed(ws, "variable", "region"))
		answers(outcome, err)(t, "a name that is there", secret.Updated)
		want := made
		want.Value, want.UpdatedAt, want.UpdatedBy = again.Value, again.UpdatedAt, "key_other"
		same(t, "replaced", got, want)
		same(t, "read", found(w.Variable(ctx, ws, "region"))(t), want)
		same(t, "values", must(w.VariableValues(ctx, ws))(t), map[string]json.RawMessage{"region": json.RawMessage("null")})
		answers(w.DeleteVariable(ctx, ws, "none", newEntry(ws, "variable.deleted", "none")))(t, "delete an unknown one", false)
		answers(w.DeleteVariable(ctx, ws, "region", newEntry(ws, "variable.deleted", "region")))(t, "delete", true)
		answers(w.DeleteVariable(ctx, ws, "region", newEntry(ws, "variable.deleted", "region")))(t, "once more", false)
		gone(w.Variable(ctx, ws, "region"))(t, "the deleted one")
		same(t, "audit entries", w.actions(t, ws, "region"), []string{"variable.deleted", "variable.updated", "variable.created"})
	})

	t.Run("share a number of bytes", func(t *testing.T) {
		ws, value := w.workspace(t).ID, `"`+strings.Repeat("ä", 49)+`"` // 100 bytes
		held := func() int { return must(w.UsageCurrent(ctx, ws))(t).VariableBytes }
		answers(w.putVariable(ctx, ws, "a", value, plenty, 250))(t, "the first", secret.Created)
		together(t, 16, func(i int) (bool, error) {
			outcome, err := w.putVariable(ctx, ws, fmt.Sprintf("v%d", i), value, plenty, 250)
			return outcome == secret.Created, err
		})
		same(t, "held", held(), 200)
		answers(w.putVariable(ctx, ws, "one_more", value, plenty, 250))(t, "one too many", secret.TooLarge)
		answers(w.putVariable(ctx, ws, "a", value+strings.Repeat(" ", 51), plenty, 250))(t, "one that grew too much", secret.TooLarge)
		same(t, "audit entries", w.audited(t, ws, "one_more"), 0)
		answers(w.putVariable(ctx, ws, "a", "1", plenty, 50))(t, "a smaller one, also beyond the limit", secret.Updated)
		same(t, "held", held(), 101)
		answers(w.DeleteVariable(ctx, ws, "a", newEntry(ws, "variable.deleted", "a")))(t, "delete", true)
		same(t, "held", held(), 100)
		sum := 0
		for raw := range maps.Values(must(w.VariableValues(ctx, ws))(t)) {
			sum += len(raw)
		}
		same(t, "bytes that are there", sum, held())
	})
}

// testNamedTenants checks that names of one workspace mean nothing in another.
func testNamedTenants(t *testing.T, w *world) {
	ctx := t.Context()
	owner, stranger := w.workspace(t).ID, w.workspace(t).ID
	answers(w.putSecret(ctx, owner, "token", plenty))(t, "put", secret.Created)
	answers(w.putVariable(ctx, owner, "region", `"eu"`, plenty, plenty))(t, "put", secret.Created)

	gone(w.Secret(ctx, stranger, "token"))(t, "secret")
	gone(w.Variable(ctx, stranger, "region"))(t, "variable")
	for _, page := range []paging.Request{whole, {Limit: 1}, {Limit: 1, After: "a"}} {
		empty(w.Secrets(ctx, stranger, page))(t, "secrets")
		empty(w.Variables(ctx, stranger, page))(t, "variables")
	}
	same(t, "sealed", must(w.SealedSecrets(ctx, stranger, []string{"token"}))(t), map[string][]byte{})
	same(t, "values", must(w.VariableValues(ctx, stranger))(t), map[string]json.RawMessage{})
	same(t, "names", must(w.SecretNames(ctx, stranger))(t), secret.Names{Secrets: []string{}, Variables: []string{}})
	answers(w.DeleteSecret(ctx, stranger, "token", newEntry(stranger, "attempt", "attempt")))(t, "delete a secret", false)
	answers(w.DeleteVariable(ctx, stranger, "region", newEntry(stranger, "attempt", "attempt")))(t, "delete a variable", false)
	same(t, "audit entries", w.audited(t, stranger, "attempt"), 0)
	same(t, "usage", must(w.UsageCurrent(ctx, stranger))(t), usage.Current{APIKeys: 1})

	answers(w.putVariable(ctx, stranger, "region", `"us"`, plenty, plenty))(t, "put the same name", secret.Created)
	same(t, "of the owner", string(found(w.Variable(ctx, owner, "region"))(t).Value), `"eu"`)
}

func limitedSecrets(t *testing.T, w *world, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			outcome, err := w.putSecret(ctx, workspaceID, uid.New(uid.Event), atMost)
			return outcome == secret.Created, err
		},
		remove: func() (bool, error) {
			last := must(w.Secrets(ctx, workspaceID, whole))(t).Items[0].Name
			return w.DeleteSecret(ctx, workspaceID, last, newEntry(workspaceID, "secret.deleted", last))
		},
		listed: func() int { return len(must(w.Secrets(ctx, workspaceID, whole))(t).Items) },
		count:  func(c usage.Current) int { return c.Secrets },
	}
}

func limitedVariables(t *testing.T, w *world, workspaceID string) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			outcome, err := w.putVariable(ctx, workspaceID, uid.New(uid.Event), "1", atMost, plenty)
			return outcome == secret.Created, err
		},
		remove: func() (bool, error) {
			last := must(w.Variables(ctx, workspaceID, whole))(t).Items[0].Name
			return w.DeleteVariable(ctx, workspaceID, last, newEntry(workspaceID, "variable.deleted", last))
		},
		listed: func() int { return len(must(w.Variables(ctx, workspaceID, whole))(t).Items) },
		count:  func(c usage.Current) int { return c.Variables },
	}
}

func listSecrets(t *testing.T, w *world) listing {
	ws := w.workspace(t).ID
	return listing{
		kind: uid.Event, byName: true,
		insert: func(ctx context.Context, id string) error {
			outcome, err := w.putSecret(ctx, ws, id, plenty)
			return went(outcome == secret.Created, err)
		},
		remove: func(ctx context.Context, id string) error {
			return went(w.DeleteSecret(ctx, ws, id, newEntry(ws, "secret.deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Secrets(ctx, ws, page)
			return idsOf(got, err, func(s secret.Secret) string { return s.Name })
		},
	}
}

func listVariables(t *testing.T, w *world) listing {
	ws := w.workspace(t).ID
	return listing{
		kind: uid.Event, byName: true,
		insert: func(ctx context.Context, id string) error {
			outcome, err := w.putVariable(ctx, ws, id, "1", plenty, plenty)
			return went(outcome == secret.Created, err)
		},
		remove: func(ctx context.Context, id string) error {
			return went(w.DeleteVariable(ctx, ws, id, newEntry(ws, "variable.deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Variables(ctx, ws, page)
			return idsOf(got, err, func(v secret.Variable) string { return v.Name })
		},
	}
}
