package auth_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
)

// whole requests all items of any list in these tests.
var whole = paging.Request{Limit: paging.MaxLimit}

// env is a new installation.
type env struct {
	*sqlitetest.Installation
	t *testing.T
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return &env{sqlitetest.New(t, store.Notify{}), t}
}

// another returns the same installation with the service of another process.
func (w *env) another() *env {
	copied := *w.Installation
	copied.Auth = auth.NewService(w.DB.Workspaces, w.Vault)
	return &env{&copied, w.t}
}

// key creates a key and returns it with its value.
func (w *env) key(actor auth.Actor, in auth.NewKey) (auth.Key, string) {
	w.t.Helper()
	key, value, err := w.Auth.CreateKey(w.t.Context(), actor, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return key, value
}

// wantWorks fails the test unless the value of a key is accepted.
func (w *env) wantWorks(value string) auth.Actor {
	w.t.Helper()
	actor, err := w.Auth.Authenticate(w.t.Context(), value)
	if err != nil {
		w.t.Fatalf("the key does not work: %v", err)
	}
	return actor
}

// wantRejected fails the test unless the value of a key is rejected.
func (w *env) wantRejected(value string) {
	w.t.Helper()
	actor, err := w.Auth.Authenticate(w.t.Context(), value)
	faulttest.Want(w.t, err, fault.Unauthorized)
	if actor.ID != "" || actor.Workspace.ID != "" || actor.Scopes != nil {
		w.t.Errorf("a rejected key returns the actor %+v", actor)
	}
}
