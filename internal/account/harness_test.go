package account_test

import (
	"flag"
	"testing"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
)

func TestMain(m *testing.M) {
	// Each check makes dozens of commits. A flag on the command line overrides this.
	if err := flag.Set("rapid.checks", "8"); err != nil {
		panic(err)
	}
	m.Run()
}

const password = "correct horse battery"

// cheap is the cost of password hashes in tests.
var cheap = account.Cost{Memory: 8, Passes: 1, Threads: 1}

// whole requests all items of any list in these tests.
var whole = paging.Request{Limit: paging.MaxLimit}

// env is an installation with an account service.
type env struct {
	*sqlitetest.Installation
	t      *testing.T
	people *account.Service
}

func newEnv(t *testing.T) *env {
	t.Helper()
	in := sqlitetest.New(t, store.Notify{})
	return &env{Installation: in, t: t, people: account.NewService(in.DB.Accounts, account.WithCost(cheap))}
}

// another returns the same installation with the service of another process.
func (h *env) another() *env {
	copied := *h
	copied.people = account.NewService(h.DB.Accounts, account.WithCost(cheap))
	return &copied
}

// login is a signed-in user with their session token.
type login struct {
	account.SignedIn
	token string
}

// mustSignIn fails the test unless the sign-in succeeded.
func (h *env) mustSignIn(in account.SignedIn, token string, err error) login {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	return login{in, token}
}

// invite returns the token of a new invitation.
func (h *env) invite(actor auth.Actor, email string, role account.Role) string {
	h.t.Helper()
	_, token, err := h.people.Invite(h.t.Context(), actor, email, string(role))
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

// member adds a member to the actor's workspace, who signs in with password.
func (h *env) member(actor auth.Actor, role account.Role, email string) login {
	h.t.Helper()
	return h.mustSignIn(h.people.Accept(h.t.Context(), h.invite(actor, email, role), "Test Person", password, account.ClientInfo{}))
}

// signIn signs a user in with password.
func (h *env) signIn(email string) login {
	h.t.Helper()
	return h.mustSignIn(h.people.SignIn(h.t.Context(), email, password, account.ClientInfo{}))
}

// wantIn fails the test unless the session is valid, and returns it.
func (h *env) wantIn(g login) account.SignedIn {
	h.t.Helper()
	in, err := h.people.Authenticate(h.t.Context(), g.token)
	if err != nil {
		h.t.Fatalf("%s is not signed in: %v", g.User.Email, err)
	}
	return in
}

// wantOut fails the test unless the session has ended.
func (h *env) wantOut(g login) {
	h.t.Helper()
	_, err := h.people.Authenticate(h.t.Context(), g.token)
	faulttest.Want(h.t, err, fault.Unauthorized)
}

// user returns a user, who must exist.
func (h *env) user(id string) account.User {
	h.t.Helper()
	u, err := h.DB.Accounts.User(h.t.Context(), id)
	if err != nil || u == nil {
		h.t.Fatalf("user %s: %v, %v", id, u, err)
	}
	return *u
}
