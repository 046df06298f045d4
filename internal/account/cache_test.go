package account_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/store"
)

// A session that ends while a request reads it from the store is not cached.
func TestSessionEndsDuringRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(people *account.Service, h *env, ada login) error{
		"sign-out": func(people *account.Service, h *env, ada login) error {
			return people.SignOut(h.t.Context(), ada.Actor(), ada.Session.ID)
		},
		"removal": func(people *account.Service, h *env, ada login) error {
			return people.Remove(h.t.Context(), h.Admin, ada.User.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t)
			ada := h.member(h.Admin, account.Viewer, "ada@example.com")
			rows := &hookedStore{Accounts: h.Accounts}
			h.people = account.NewService(rows, account.WithCost(cheap))
			rows.afterSession = func() {
				rows.afterSession = nil
				if err := change(h.people, h, ada); err != nil {
					t.Error(err)
				}
			}
			h.wantIn(ada) // the read began before the change
			h.wantOut(ada)
		})
	}
}

// flakyStore fails the first writes of last use.
type flakyStore struct {
	store.Accounts
	fails int
}

func (f *flakyStore) TouchSession(ctx context.Context, id string, at time.Time) error {
	if f.fails > 0 {
		f.fails--
		return errors.New("the disk is full")
	}
	return f.Accounts.TouchSession(ctx, id, at)
}

// A failed write of last use is retried with the next flush.
func TestFlushLastUsedRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEnv(t)
		logins := []login{
			h.member(h.Admin, account.Viewer, "ada@example.com"), h.member(h.Admin, account.Viewer, "grace@example.com"), h.member(h.Admin, account.Viewer, "joan@example.com"),
		}
		rows := &flakyStore{Accounts: h.Accounts, fails: 1}
		h.people = account.NewService(rows, account.WithCost(cheap))
		time.Sleep(time.Hour)
		for _, g := range logins {
			h.wantIn(g)
		}
		used := time.Now()
		if err := h.people.FlushLastUsed(t.Context()); err == nil {
			t.Fatal("the error is not reported")
		}
		time.Sleep(time.Second)
		if err := h.people.FlushLastUsed(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, g := range logins {
			if seen := h.user(g.User.ID).SeenAt; !seen.Equal(used) {
				t.Errorf("%s was last seen at %v, want %v", g.User.Email, seen, used)
			}
		}
	})
}
