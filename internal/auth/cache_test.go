package auth_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
)

// flakyStore calls a function after a key was read, and fails the first writes of
// last use.
type flakyStore struct {
	auth.Store
	afterKey func()
	fails    int
}

func (s *flakyStore) KeyByLookup(ctx context.Context, lookup string) (*auth.Key, *auth.Workspace, error) {
	key, workspace, err := s.Store.KeyByLookup(ctx, lookup)
	if act := s.afterKey; act != nil {
		s.afterKey = nil
		act()
	}
	return key, workspace, err
}

func (s *flakyStore) TouchKeys(ctx context.Context, usedAt map[string]time.Time) error {
	if s.fails > 0 {
		s.fails--
		return errors.New("the disk is full")
	}
	return s.Store.TouchKeys(ctx, usedAt)
}

// A key that is revoked, or whose plan changes, while a request reads it from the
// store is not cached.
func TestKeyChangesDuringRead(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	actor := w.Workspace(t, auth.Free)
	key, value := w.key(actor, auth.NewKey{Name: "n", Scopes: []string{"read"}})
	rows := &flakyStore{Store: w.Workspaces}
	w.Auth = auth.NewService(rows, w.Vault)
	rows.afterKey = func() {
		if _, err := w.Auth.UpdateWorkspace(t.Context(), w.Admin, actor.Workspace.ID, auth.WorkspacePatch{Plan: new(auth.Pro)}); err != nil {
			t.Error(err)
		}
	}
	w.wantWorks(value)
	if got := w.wantWorks(value).Workspace.Plan; got != auth.Pro {
		t.Errorf("the plan is %s", got)
	}
	w.Auth = auth.NewService(rows, w.Vault)
	rows.afterKey = func() {
		if err := w.Auth.RevokeKey(t.Context(), actor, key.ID); err != nil {
			t.Error(err)
		}
	}
	w.wantWorks(value) // the read began before the change
	w.wantRejected(value)
}

// A failed write of last use is retried with the next flush.
func TestFlushLastUsedRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t)
		key, value := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"read"}})
		w.Auth = auth.NewService(&flakyStore{Store: w.Workspaces, fails: 1}, w.Vault)
		w.wantWorks(value)
		used := time.Now()
		if err := w.Auth.FlushLastUsed(t.Context()); err == nil {
			t.Fatal("the error is not reported")
		}
		time.Sleep(time.Second)
		w.wantWorks(value)
		if err := w.Auth.FlushLastUsed(t.Context()); err != nil {
			t.Fatal(err)
		}
		if read, err := w.Auth.GetKey(t.Context(), w.Admin, key.ID); err != nil || read.LastUsedAt == nil || !read.LastUsedAt.Equal(used) {
			t.Errorf("the last use is %v, want %v; %v", read.LastUsedAt, used, err)
		}
	})
}
