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

// newWrite returns a write without limits.
func newWrite(workspaceID, kind, name, value string) secret.Write {
	return secret.Write{
		WorkspaceID: workspaceID, Name: name, Value: []byte(value), At: clock.Now(), By: "key_maker",
		Limit:   secret.Limit{Count: noLimit, Bytes: noLimit},
		Created: newEntry(workspaceID, kind+".created", name), Updated: newEntry(workspaceID, kind+".updated", name),
	}
}

// written returns the metadata of a value that the write created.
func written(w secret.Write) secret.Metadata {
	return secret.Metadata{WorkspaceID: w.WorkspaceID, Name: w.Name, CreatedAt: w.At, CreatedBy: w.By, UpdatedAt: w.At, UpdatedBy: w.By}
}

func (w *harness) putSecret(ctx context.Context, workspaceID, name string, atMost int) (secret.Outcome, error) {
	in := newWrite(workspaceID, "secret", name, "sealed "+name)
	in.Limit.Count = atMost
	_, outcome, err := w.Secrets.Secrets().Put(ctx, in)
	return outcome, err
}

func (w *harness) putVariable(ctx context.Context, workspaceID, name, value string, maxBytes int) (secret.Outcome, error) {
	in := newWrite(workspaceID, "variable", name, value)
	in.Limit = secret.Limit{Count: noLimit, Bytes: maxBytes}
	_, outcome, err := w.Secrets.Variables().Put(ctx, in)
	return outcome, err
}

// actions lists the audit actions on a target, newest first.
func (w *harness) actions(t *testing.T, workspaceID, target string) []string {
	t.Helper()
	return collect(t, w, `SELECT action FROM audit WHERE workspace_id = $1 AND target_id = $2 ORDER BY id DESC`, []any{workspaceID, target}, text)
}

func testSecrets(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID

	t.Run("put, read, replace and delete", func(t *testing.T) {
		empty(w.Secrets.Secrets().List(ctx, ws, fullPage))(t, "a workspace without one")
		first := newWrite(ws, "secret", "token", "one")
		made := secret.Secret{Metadata: written(first)}
		got, outcome, err := w.Secrets.Secrets().Put(ctx, first)
		returns(outcome, err)(t, "a new name", secret.Created)
		equal(t, "made", got, made)
		again := newWrite(ws, "secret", "token", "two")
		again.At, again.By = first.At.Add(time.Second), "key_other"
		got, outcome, err = w.Secrets.Secrets().Put(ctx, again)
		returns(outcome, err)(t, "an existing name", secret.Updated)
		want := made
		want.UpdatedAt, want.UpdatedBy = again.At, "key_other"
		equal(t, "replaced", got, want)
		equal(t, "read", found(w.Secrets.Secrets().Get(ctx, ws, "token"))(t), want)
		equal(t, "sealed", must(w.Secrets.SealedSecrets(ctx, ws, []string{"token", "none"}))(t), map[string][]byte{"token": []byte("two")})
		missing(w.Secrets.Secrets().Get(ctx, ws, "Token"))(t, "a name in other letters")
		returns(w.Secrets.Secrets().Delete(ctx, ws, "none", newEntry(ws, "secret.deleted", "none")))(t, "delete an unknown one", false)
		returns(w.Secrets.Secrets().Delete(ctx, ws, "token", newEntry(ws, "secret.deleted", "token")))(t, "delete", true)
		returns(w.Secrets.Secrets().Delete(ctx, ws, "token", newEntry(ws, "secret.deleted", "token")))(t, "again", false)
		missing(w.Secrets.Secrets().Get(ctx, ws, "token"))(t, "the deleted one")
		equal(t, "sealed", must(w.Secrets.SealedSecrets(ctx, ws, []string{"token"}))(t), map[string][]byte{})
		equal(t, "audit entries", w.actions(t, ws, "token"), []string{"secret.deleted", "secret.updated", "secret.created"})
		equal(t, "audit entries of others", w.audited(t, ws, "none"), 0)
	})

	t.Run("names are listed by kind and in order", func(t *testing.T) {
		ws := w.workspace(t).ID
		for _, name := range []string{"b", "a", "B", "_x"} {
			returns(w.putSecret(ctx, ws, name, noLimit))(t, name, secret.Created)
		}
		returns(w.putVariable(ctx, ws, "a", "1", noLimit))(t, "a variable of the same name", secret.Created)
		equal(t, "names", must(w.Secrets.ValueNames(ctx, ws))(t), secret.Names{Secrets: []string{"B", "_x", "a", "b"}, Variables: []string{"a"}})
		equal(t, "of an unknown workspace", must(w.Secrets.ValueNames(ctx, "ws_none"))(t), secret.Names{Secrets: []string{}, Variables: []string{}})
	})

	t.Run("one of many concurrent calls creates the name", func(t *testing.T) {
		made := concurrently(t, 32, func(int) (bool, error) {
			outcome, err := w.putSecret(ctx, ws, "race", noLimit)
			return outcome == secret.Created, err
		})
		equal(t, "winners", made, 1)
		equal(t, "audit entries", w.audited(t, ws, "race"), 32)
		equal(t, "counted", must(w.Usage.UsageCurrent(ctx, ws))(t).Secrets, 1)
	})

	t.Run("replacing works at the limit", func(t *testing.T) {
		returns(w.putSecret(ctx, ws, "race", 0))(t, "an existing name", secret.Updated)
	})

	t.Run("moved ciphertexts do not decrypt", func(t *testing.T) { testMovedSecrets(t, w) })
}

// testMovedSecrets swaps ciphertexts between names and workspaces.
func testMovedSecrets(t *testing.T, w *harness) {
	ctx := t.Context()
	v := must(vault.New([]byte(strings.Repeat("k", 32)), w.DB.Workspaces))(t)
	service := secret.NewService(w.DB.Secrets, v)
	var actors []auth.Actor
	for range 2 {
		ws := newWorkspace()
		if err := w.Workspaces.InsertWorkspace(ctx, ws, v.NewDataKey(ws.ID), newKey(ws.ID), "", newEntry(ws.ID, "workspace.created", ws.ID)); err != nil {
			t.Fatal(err)
		}
		actors = append(actors, auth.Actor{Workspace: ws})
		for _, name := range []string{"one", "two"} {
			if _, _, err := service.Secrets.Put(ctx, auth.Actor{Workspace: ws}, name, "value of "+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, second := actors[0].Workspace.ID, actors[1].Workspace.ID
	names := []string{"one", "two", "three"}
	equal(t, "opened", must(service.Open(ctx, first, names))(t), map[string]string{"one": "value of one", "two": "value of two"})
	const move = `UPDATE secrets SET value = (SELECT value FROM secrets WHERE workspace_id = $1 AND name = $2) WHERE workspace_id = $3 AND name = $4`
	w.exec(t, move, first, "one", first, "two")
	_, err := service.Open(ctx, first, names)
	if !errors.Is(err, vault.ErrSealed) {
		t.Errorf("a value moved to another name: %v", err)
	}
	equal(t, "the one that stayed", must(service.Open(ctx, first, []string{"one"}))(t), map[string]string{"one": "value of one"})
	w.exec(t, move, first, "one", second, "one")
	if _, err := service.Open(ctx, second, []string{"one"}); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("a value moved to another workspace: %v", err)
	}
}

func testVariables(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID

	t.Run("put, read, replace and delete", func(t *testing.T) {
		empty(w.Secrets.Variables().List(ctx, ws, fullPage))(t, "a workspace without one")
		first := newWrite(ws, "variable", "region", `{"a":[1,"ä"]}`)
		made := secret.Variable{Metadata: written(first), Value: first.Value}
		got, outcome, err := w.Secrets.Variables().Put(ctx, first)
		returns(outcome, err)(t, "a new name", secret.Created)
		equal(t, "made", got, made)
		again := newWrite(ws, "variable", "region", "null")
		again.At, again.By = first.At.Add(time.Second), "key_other"
		got, outcome, err = w.Secrets.Variables().Put(ctx, again)
		returns(outcome, err)(t, "an existing name", secret.Updated)
		want := made
		want.Value, want.UpdatedAt, want.UpdatedBy = again.Value, again.At, "key_other"
		equal(t, "replaced", got, want)
		equal(t, "read", found(w.Secrets.Variables().Get(ctx, ws, "region"))(t), want)
		equal(t, "values", must(w.Secrets.VariableValues(ctx, ws))(t), map[string]json.RawMessage{"region": json.RawMessage("null")})
		returns(w.Secrets.Variables().Delete(ctx, ws, "none", newEntry(ws, "variable.deleted", "none")))(t, "delete an unknown one", false)
		returns(w.Secrets.Variables().Delete(ctx, ws, "region", newEntry(ws, "variable.deleted", "region")))(t, "delete", true)
		returns(w.Secrets.Variables().Delete(ctx, ws, "region", newEntry(ws, "variable.deleted", "region")))(t, "again", false)
		missing(w.Secrets.Variables().Get(ctx, ws, "region"))(t, "the deleted one")
		equal(t, "audit entries", w.actions(t, ws, "region"), []string{"variable.deleted", "variable.updated", "variable.created"})
	})

	t.Run("share a limit in bytes", func(t *testing.T) {
		ws, value := w.workspace(t).ID, `"`+strings.Repeat("ä", 49)+`"` // 100 bytes
		bytes := func() int { return must(w.Usage.UsageCurrent(ctx, ws))(t).VariableBytes }
		returns(w.putVariable(ctx, ws, "a", value, 250))(t, "the first", secret.Created)
		concurrently(t, 16, func(i int) (bool, error) {
			outcome, err := w.putVariable(ctx, ws, fmt.Sprintf("v%d", i), value, 250)
			return outcome == secret.Created, err
		})
		equal(t, "bytes", bytes(), 200)
		returns(w.putVariable(ctx, ws, "one_more", value, 250))(t, "over the limit", secret.TooLarge)
		returns(w.putVariable(ctx, ws, "a", value+strings.Repeat(" ", 51), 250))(t, "a variable that grew too much", secret.TooLarge)
		equal(t, "audit entries", w.audited(t, ws, "one_more"), 0)
		returns(w.putVariable(ctx, ws, "a", "1", 50))(t, "a smaller one, also beyond the limit", secret.Updated)
		equal(t, "bytes", bytes(), 101)
		returns(w.Secrets.Variables().Delete(ctx, ws, "a", newEntry(ws, "variable.deleted", "a")))(t, "delete", true)
		equal(t, "bytes", bytes(), 100)
		sum := 0
		for raw := range maps.Values(must(w.Secrets.VariableValues(ctx, ws))(t)) {
			sum += len(raw)
		}
		equal(t, "sum of the stored bytes", sum, bytes())
	})
}

// testNamedTenants checks that names of one workspace are not visible in another.
func testNamedTenants(t *testing.T, w *harness) {
	ctx := t.Context()
	owner, stranger := w.workspace(t).ID, w.workspace(t).ID
	returns(w.putSecret(ctx, owner, "token", noLimit))(t, "put", secret.Created)
	returns(w.putVariable(ctx, owner, "region", `"eu"`, noLimit))(t, "put", secret.Created)

	missing(w.Secrets.Secrets().Get(ctx, stranger, "token"))(t, "secret")
	missing(w.Secrets.Variables().Get(ctx, stranger, "region"))(t, "variable")
	for _, page := range []paging.Request{fullPage, {Limit: 1}, {Limit: 1, After: "a"}} {
		empty(w.Secrets.Secrets().List(ctx, stranger, page))(t, "secrets")
		empty(w.Secrets.Variables().List(ctx, stranger, page))(t, "variables")
	}
	equal(t, "sealed", must(w.Secrets.SealedSecrets(ctx, stranger, []string{"token"}))(t), map[string][]byte{})
	equal(t, "values", must(w.Secrets.VariableValues(ctx, stranger))(t), map[string]json.RawMessage{})
	equal(t, "names", must(w.Secrets.ValueNames(ctx, stranger))(t), secret.Names{Secrets: []string{}, Variables: []string{}})
	returns(w.Secrets.Secrets().Delete(ctx, stranger, "token", newEntry(stranger, "attempt", "attempt")))(t, "delete a secret", false)
	returns(w.Secrets.Variables().Delete(ctx, stranger, "region", newEntry(stranger, "attempt", "attempt")))(t, "delete a variable", false)
	equal(t, "audit entries", w.audited(t, stranger, "attempt"), 0)
	equal(t, "usage", must(w.Usage.UsageCurrent(ctx, stranger))(t), usage.Current{APIKeys: 1})

	returns(w.putVariable(ctx, stranger, "region", `"us"`, noLimit))(t, "put the same name", secret.Created)
	equal(t, "of the owner", string(found(w.Secrets.Variables().Get(ctx, owner, "region"))(t).Value), `"eu"`)
}

func limitedSecrets(t *testing.T, w *harness, workspaceID string) limited {
	return limitedValues(t, w.Secrets.Secrets(), "secret", workspaceID, func(c usage.Current) int { return c.Secrets })
}

func limitedVariables(t *testing.T, w *harness, workspaceID string) limited {
	return limitedValues(t, w.Secrets.Variables(), "variable", workspaceID, func(c usage.Current) int { return c.Variables })
}

func limitedValues[T described](t *testing.T, table secret.Table[T], kind, workspaceID string, count func(usage.Current) int) limited {
	ctx := t.Context()
	return limited{
		insert: func(atMost int) (bool, error) {
			in := newWrite(workspaceID, kind, uid.New(uid.Event), "1")
			in.Limit.Count = atMost
			_, outcome, err := table.Put(ctx, in)
			return outcome == secret.Created, err
		},
		remove: func() (bool, error) {
			last := must(table.List(ctx, workspaceID, fullPage))(t).Items[0].Meta().Name
			return table.Delete(ctx, workspaceID, last, newEntry(workspaceID, kind+".deleted", last))
		},
		listed: func() int { return len(must(table.List(ctx, workspaceID, fullPage))(t).Items) },
		count:  count,
	}
}

// described is a secret or a variable.
type described interface{ Meta() secret.Metadata }

func listSecrets(t *testing.T, w *harness) pagedList {
	return listValues(t, w, w.Secrets.Secrets(), "secret")
}

func listVariables(t *testing.T, w *harness) pagedList {
	return listValues(t, w, w.Secrets.Variables(), "variable")
}

func listValues[T described](t *testing.T, w *harness, table secret.Table[T], kind string) pagedList {
	ws := w.workspace(t).ID
	return pagedList{
		kind: uid.Event, byName: true,
		insert: func(ctx context.Context, id string) error {
			_, outcome, err := table.Put(ctx, newWrite(ws, kind, id, "1"))
			return rejected(outcome == secret.Created, err)
		},
		remove: func(ctx context.Context, id string) error {
			return rejected(table.Delete(ctx, ws, id, newEntry(ws, kind+".deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := table.List(ctx, ws, page)
			return idsOf(got, err, func(v T) string { return v.Meta().Name })
		},
	}
}
