package account_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
)

const base = "https://flows.example"

// welcome returns the token of a welcome link.
func (h *env) welcome() string {
	h.t.Helper()
	link, err := h.people.WelcomeLink(h.t.Context(), base, nil)
	if err != nil || !strings.HasPrefix(link, base+"/welcome#token=") {
		h.t.Fatalf("the link is %q, %v", link, err)
	}
	return tokenOf(h.t, link)
}

// createOwner tries to create the first owner.
func (h *env) createOwner(token string) (login, error) {
	in, session, err := h.people.CreateFirstOwner(h.t.Context(), token, "ada@example.com", "Ada", password, account.ClientInfo{})
	return login{in, session}, err
}

// reset returns the token of a password reset link.
func (h *env) reset(email string) string {
	h.t.Helper()
	link, err := h.people.ResetLink(h.t.Context(), base, email, nil)
	if err != nil || !strings.HasPrefix(link, base+"/reset#token=") {
		h.t.Fatalf("the link is %q, %v", link, err)
	}
	return tokenOf(h.t, link)
}

func TestCreateFirstOwner(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	if needed, err := h.people.NeedsSetup(t.Context()); err != nil || !needed {
		t.Errorf("setup is not needed: %v", err)
	}
	first, second := h.welcome(), h.welcome()
	// A rejected attempt does not consume the link.
	for _, tc := range []struct{ email, name, password, points string }{
		{"no address", "Ada", password, "/email"},
		{"ada@example.com", " ", password, "/name"},
		{"ada@example.com", strings.Repeat("n", 101), password, "/name"},
		{"ada@example.com", "Ada", "too short", "/password"},
		{"ada@example.com", "Ada", "ADA@EXAMPLE.COM", "/password"},
	} {
		_, _, err := h.people.CreateFirstOwner(t.Context(), first, tc.email, tc.name, tc.password, account.ClientInfo{})
		faulttest.Want(t, err, fault.InvalidRequest, tc.points)
	}
	owner, err := h.createOwner(first)
	if err != nil || owner.Role != account.Owner || owner.Workspace.ID != h.Admin.Workspace.ID || !owner.Actor().IsOperator() {
		t.Fatalf("the owner is %+v, %v", owner.SignedIn, err)
	}
	h.wantIn(owner)
	if needed, err := h.people.NeedsSetup(t.Context()); err != nil || needed {
		t.Errorf("setup is still needed: %v", err)
	}
	// Once there is an owner, no link works and no new one is created.
	for _, token := range []string{first, second} {
		_, err := h.createOwner(token)
		faulttest.Want(t, err, fault.LinkNotFound)
	}
	if link, err := h.people.WelcomeLink(t.Context(), base, nil); err != nil || link != "" {
		t.Errorf("with an owner the link is %q, %v", link, err)
	}
}

// Users who do not own the first workspace do not invalidate the link.
func TestCreateFirstOwnerWithOtherUsers(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Editor, "editor@example.com")
	h.member(h.Workspace(t, auth.Free), account.Owner, "elsewhere@example.com")
	owner, err := h.createOwner(h.welcome())
	if err != nil || owner.Role != account.Owner {
		t.Errorf("the owner is %+v, %v", owner.SignedIn, err)
	}
}

// An invited owner invalidates open links.
func TestCreateFirstOwnerWithOwner(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	token := h.welcome()
	h.member(h.Admin, account.Owner, "owner@example.com")
	_, err := h.createOwner(token)
	faulttest.Want(t, err, fault.LinkNotFound)
}

// Of concurrent attempts, one creates the owner. The others are rejected before
// their password is hashed.
func TestConcurrentCreateFirstOwner(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	tokens := []string{h.welcome(), h.welcome(), h.welcome()}
	var all sync.WaitGroup
	var created atomic.Int32
	for n := range 24 {
		all.Go(func() {
			_, _, err := h.people.CreateFirstOwner(t.Context(), tokens[n%3], fmt.Sprintf("p%d@example.com", n), "P", password, account.ClientInfo{})
			switch {
			case err == nil:
				created.Add(1)
			case !fault.Is(err, fault.LinkNotFound) && !fault.Is(err, fault.RateLimited):
				t.Error(err)
			}
		})
	}
	all.Wait()
	users, err := h.people.Users(t.Context(), whole)
	if err != nil || created.Load() != 1 || len(users.Items) != 1 {
		t.Errorf("%d became owners, there are %d users, %v", created.Load(), len(users.Items), err)
	}
}

// Links work for one day, and only for their own purpose.
func TestLinkExpires(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := newEnv(t)
			h.member(h.Admin, account.Viewer, "grace@example.com")
			welcome, reset := h.welcome(), h.reset("grace@example.com")
			_, err := h.createOwner(reset)
			faulttest.Want(t, err, fault.LinkNotFound)
			_, _, err = h.people.ResetPassword(t.Context(), welcome, "another long one", account.ClientInfo{})
			faulttest.Want(t, err, fault.LinkNotFound)
			_, err = h.people.PreviewInvitation(t.Context(), welcome)
			faulttest.Want(t, err, fault.LinkNotFound)
			time.Sleep(day - time.Microsecond)
			if late {
				time.Sleep(time.Microsecond)
			}
			_, err = h.createOwner(welcome)
			_, _, resetErr := h.people.ResetPassword(t.Context(), reset, "another long one", account.ClientInfo{})
			for _, err := range []error{err, resetErr} {
				if late {
					faulttest.Want(t, err, fault.LinkNotFound)
				} else if err != nil {
					t.Errorf("just before it expires: %v", err)
				}
			}
		})
	}
}

// A password reset ends all sessions and open links, and signs the user in.
func TestResetPassword(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada, other := h.member(h.Admin, account.Editor, "ada@example.com"), h.member(h.Admin, account.Viewer, "grace@example.com")
	second := h.signIn("ada@example.com")
	for _, g := range []login{ada, second, other} {
		h.wantIn(g)
	}
	token, spare := h.reset(" ADA@example.com "), h.reset("ada@example.com")
	for _, invalid := range []string{"too short", "ada@example.com", "aaaaaaaaaaaa", strings.Repeat("abcd", 51)} {
		_, _, err := h.people.ResetPassword(t.Context(), token, invalid, account.ClientInfo{})
		faulttest.Want(t, err, fault.InvalidRequest, "/password")
	}
	h.wantIn(ada)
	in := h.mustSignIn(h.people.ResetPassword(t.Context(), token, "another long one", account.ClientInfo{RequestID: "req_1"}))
	if in.User.ID != ada.User.ID || in.Role != account.Editor {
		t.Errorf("signed in as %+v", in.SignedIn)
	}
	h.wantIn(in)
	h.wantOut(ada)
	h.wantOut(second)
	h.wantIn(other)
	for _, used := range []string{token, spare} {
		_, _, err := h.people.ResetPassword(t.Context(), used, "yet another one", account.ClientInfo{})
		faulttest.Want(t, err, fault.LinkNotFound)
	}
	_, _, err := h.people.SignIn(t.Context(), "ada@example.com", password, account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidCredentials)
	h.mustSignIn(h.people.SignIn(t.Context(), "ada@example.com", "another long one", account.ClientInfo{}))
	want := "[user.password_changed user.link_created user.link_created user.created]"
	if got := h.Actions(h.t, h.Admin.Workspace.ID, ada.User.ID); fmt.Sprint(got) != want {
		t.Errorf("the audit log has %v", got)
	}
}

func TestResetLinkForUnknownUser(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	for _, email := range []string{"nobody@example.com", "no address", ""} {
		link, err := h.people.ResetLink(t.Context(), base, email, nil)
		faulttest.Want(t, err, fault.InvalidRequest, "/email")
		if link != "" {
			t.Errorf("%q: the link is %s", email, link)
		}
	}
}

// A password reset unbinds the identity. To bind it again, the provider must have
// verified the address.
func TestResetUnbindsIdentity(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	in := h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Viewer, account.ClientInfo{}))
	h.mustSignIn(h.people.ResetPassword(t.Context(), h.reset("grace@example.com"), password, account.ClientInfo{}))
	h.wantOut(in)
	if got := h.user(in.User.ID).Identity; got != "" {
		t.Errorf("the identity is still %s", got)
	}
	h.signIn("grace@example.com")
	unverified := grace
	unverified.Verified = false
	_, _, err := h.people.SignInAs(t.Context(), unverified, account.Viewer, account.ClientInfo{})
	faulttest.Want(t, err, fault.InsufficientScope)
}
