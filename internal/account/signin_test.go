package account_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/store"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	made := h.member(h.Admin, account.Editor, "ada@example.com")
	client := account.ClientInfo{Address: "203.0.113.7", Agent: "Browser/1", RequestID: "req_1"}
	in := h.mustSignIn(h.people.SignIn(t.Context(), " ADA@Example.com ", password, client))
	if in.User.ID != made.User.ID || in.Role != account.Editor || in.Workspace.ID != h.Admin.Workspace.ID {
		t.Errorf("signed in is %+v", in.SignedIn)
	}
	session := in.Session
	if session.Address != client.Address || session.Agent != client.Agent || session.UserID != in.User.ID {
		t.Errorf("the session is %+v", session)
	}
	if got := session.ExpiresAt.Sub(session.CreatedAt); got != account.SessionLifetime {
		t.Errorf("the session lasts %v", got)
	}
	if in.token == made.token || len(in.token) != 43 {
		t.Errorf("the tokens are %q and %q", made.token, in.token)
	}
	if diff := cmp.Diff(session, h.wantIn(in).Session); diff != "" {
		t.Errorf("the session of the token (-created +found):\n%s", diff)
	}
	want := auth.Actor{Workspace: in.Workspace, Type: "user", ID: in.User.ID, Label: in.User.Name, Scopes: []auth.Scope{auth.Read, auth.Write, auth.Execute}}
	if diff := cmp.Diff(want, h.wantIn(in).Actor()); diff != "" {
		t.Errorf("the actor (-want +got):\n%s", diff)
	}
	entry := h.Audited(t, in.Workspace.ID)[0]
	if entry.Action != "session.created" || entry.TargetID != session.ID || entry.ActorID != in.User.ID || entry.RequestID != "req_1" {
		t.Errorf("the audit entry is %+v", entry)
	}
}

// Failed sign-ins do not reveal the reason, and write nothing before they respond.
func TestSignInFailuresAreIndistinguishable(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Viewer, "ada@example.com")
	h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Viewer, account.ClientInfo{}))
	before := len(h.Audited(t, h.Admin.Workspace.ID))
	var messages []string
	for _, tc := range []struct{ email, password string }{
		{"ada@example.com", "correct horse battery "},
		{"ada@example.com", "Correct horse battery"},
		{"ada@example.com", ""},
		{"ada@example.com", strings.Repeat("x", 1<<20)},
		{"nobody@example.com", password},
		{"grace@example.com", ""}, // has no password
		{"grace@example.com", password},
	} {
		hashed := 0
		ctx := account.WithRecheck(t.Context(), func() error { hashed++; return nil })
		_, token, err := h.people.SignIn(ctx, tc.email, tc.password, account.ClientInfo{})
		faulttest.Want(t, err, fault.InvalidCredentials)
		messages = append(messages, err.Error())
		if hashed != 1 {
			t.Errorf("%s: %d passwords were hashed, so the response time reveals whether the user exists", tc.email, hashed)
		}
		if token != "" {
			t.Errorf("%s: there is a token", tc.email)
		}
	}
	for _, message := range messages {
		if message != messages[0] {
			t.Errorf("the messages differ: %q", messages)
		}
	}
	if got := len(h.Audited(t, h.Admin.Workspace.ID)); got != before {
		t.Errorf("%d audit entries were written", got-before)
	}
	_, _, err := h.people.SignIn(t.Context(), "no address", password, account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidRequest, "/email")
}

// A hash of another cost is replaced at the next sign-in.
func TestSignInRehashesPassword(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	id := h.member(h.Admin, account.Viewer, "ada@example.com").User.ID
	old := h.user(id).Password
	if !strings.HasPrefix(old, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Fatalf("the first hash is %s", old)
	}
	costlier := h.another()
	costlier.people = account.NewService(h.DB.Accounts, account.WithCost(account.Cost{Memory: 16, Passes: 2, Threads: 1}))
	if _, _, err := costlier.people.SignIn(t.Context(), "ada@example.com", "wrong password", account.ClientInfo{}); err == nil {
		t.Fatal("a wrong password is accepted")
	}
	if got := h.user(id).Password; got != old {
		t.Errorf("a failed sign-in replaced the hash with %s", got)
	}
	costlier.signIn("ada@example.com")
	replaced := h.user(id).Password
	if !strings.HasPrefix(replaced, "$argon2id$v=19$m=16,t=2,p=1$") {
		t.Errorf("the hash is %s", replaced)
	}
	costlier.signIn("ada@example.com")
	if got := h.user(id).Password; got != replaced {
		t.Errorf("a hash of the current cost was replaced with %s", got)
	}
}

// A session starts in the workspace that the user joined first.
func TestSignInToOldestMembership(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	first, second := h.Workspace(t, auth.Free), h.Workspace(t, auth.Free)
	h.member(second, account.Viewer, "ada@example.com")
	h.member(first, account.Owner, "ada@example.com")
	if in := h.signIn("ada@example.com"); in.Workspace.ID != second.Workspace.ID || in.Role != account.Viewer {
		t.Errorf("signed in to %s as %s", in.Workspace.ID, in.Role)
	}
}

// hookedStore calls a function after a read.
type hookedStore struct {
	store.Accounts
	afterMemberships func()
	afterSession     func()
}

func (m *hookedStore) Memberships(ctx context.Context, userID string) ([]account.Membership, error) {
	found, err := m.Accounts.Memberships(ctx, userID)
	if m.afterMemberships != nil {
		m.afterMemberships()
	}
	return found, err
}

func (m *hookedStore) SessionByHash(ctx context.Context, hash []byte) (*account.SignedIn, error) {
	found, err := m.Accounts.SessionByHash(ctx, hash)
	if m.afterSession != nil {
		m.afterSession()
	}
	return found, err
}

// A sign-in fails if the password or the membership changes before the session is
// inserted.
func TestSignInDuringChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h *env, ada login) error{
		"password": func(h *env, ada login) error {
			change := account.Change{Password: new("another long one"), Current: new(password)}
			_, err := h.people.Update(h.t.Context(), ada.Actor(), ada.SignedIn, change)
			return err
		},
		"membership": func(h *env, ada login) error { return h.people.Remove(h.t.Context(), h.Admin, ada.User.ID) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t)
			ada := h.member(h.Admin, account.Viewer, "ada@example.com")
			slow := account.NewService(&hookedStore{Accounts: h.Accounts, afterMemberships: func() {
				if err := change(h, ada); err != nil {
					t.Error(err)
				}
			}}, account.WithCost(cheap))
			_, _, err := slow.SignIn(t.Context(), "ada@example.com", password, account.ClientInfo{})
			faulttest.Want(t, err, fault.InvalidCredentials)
		})
	}
}
