package account_test

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
)

func TestRename(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada := h.member(h.Admin, account.Viewer, "ada@example.com")
	h.wantIn(ada)
	changed, err := h.people.Update(t.Context(), ada.Actor(), ada.SignedIn, account.Change{Name: new(" Countess of Lovelace ")})
	if err != nil || changed.User.Name != "Countess of Lovelace" {
		t.Errorf("the name is %q, %v", changed.User.Name, err)
	}
	if got := h.wantIn(ada).User.Name; got != "Countess of Lovelace" {
		t.Errorf("the name in the session is %q", got)
	}
	if got := h.Actions(h.t, ada.Workspace.ID, ada.User.ID)[0]; got != "user.updated" {
		t.Errorf("the last audit entry is %s", got)
	}
	if err := h.people.Remove(t.Context(), h.Admin, ada.User.ID); err != nil {
		t.Fatal(err)
	}
	for _, change := range []account.Change{{}, {Name: new("Ada")}, {Password: new("another long one"), Current: new(password)}} {
		_, err = h.people.Update(t.Context(), ada.Actor(), ada.SignedIn, change)
		faulttest.Want(t, err, fault.Unauthorized)
	}
}

// A rejected update changes nothing, and the error names the invalid field.
func TestUpdateRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada := h.member(h.Admin, account.Viewer, "ada.lovelace@example.com")
	other := h.signIn("ada.lovelace@example.com")
	before := h.user(ada.User.ID)
	const fresh = "another long one"
	for _, tc := range []struct {
		change account.Change
		points string
	}{
		{account.Change{Password: new(fresh)}, "/current_password"},
		{account.Change{Password: new(fresh), Current: new("")}, "/current_password"},
		{account.Change{Password: new(fresh), Current: new(fresh)}, "/current_password"},
		{account.Change{Password: new(fresh), Current: new(fresh), Name: new("New")}, "/current_password"},
		{account.Change{Current: new(password)}, "/password"},
		{account.Change{Current: new(password), Name: new("New")}, "/password"},
		{account.Change{Password: new("too short"), Current: new(password)}, "/password"},
		{account.Change{Password: new("Ada.Lovelace"), Current: new(password)}, "/password"},
		{account.Change{Password: new("ada.lovelace@EXAMPLE.com"), Current: new(password)}, "/password"},
		{account.Change{Password: new("abcabcabcabc"), Current: new(password)}, "/password"},
		{account.Change{Password: new(strings.Repeat("abcd", 51)), Current: new(password)}, "/password"},
		{account.Change{Password: new(fresh), Current: new(password), Name: new("")}, "/name"},
		{account.Change{Name: new(strings.Repeat("n", 101))}, "/name"},
		{account.Change{Name: new("a\tb")}, "/name"},
	} {
		_, err := h.people.Update(t.Context(), ada.Actor(), ada.SignedIn, tc.change)
		faulttest.Want(t, err, fault.InvalidRequest, tc.points)
		if now := h.user(ada.User.ID); now.Name != before.Name || now.Password != before.Password {
			t.Errorf("an update rejected because of %s changed the user", tc.points)
		}
	}
	h.wantIn(other)
}

// A new password ends other sessions and open links, but not the current session.
func TestChangePassword(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada, other := h.member(h.Admin, account.Viewer, "ada@example.com"), h.member(h.Admin, account.Viewer, "grace@example.com")
	second := h.signIn("ada@example.com")
	link := h.reset("ada@example.com")
	for _, g := range []login{ada, second, other} {
		h.wantIn(g)
	}
	change := account.Change{Password: new("another long one"), Current: new(password), Name: new("New")}
	if in, err := h.people.Update(t.Context(), ada.Actor(), ada.SignedIn, change); err != nil || in.User.Name != "New" {
		t.Fatalf("the user is %+v, %v", in.User, err)
	}
	h.wantIn(ada)
	h.wantOut(second)
	h.wantIn(other)
	_, _, err := h.people.ResetPassword(t.Context(), link, "yet another one", account.ClientInfo{})
	faulttest.Want(t, err, fault.LinkNotFound)
	_, _, err = h.people.SignIn(t.Context(), "ada@example.com", password, account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidCredentials)
	h.mustSignIn(h.people.SignIn(t.Context(), "ada@example.com", "another long one", account.ClientInfo{}))
}

// A user of an identity provider can set a first password without a current one.
func TestFirstPassword(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	in := h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Viewer, account.ClientInfo{}))
	if _, err := h.people.Update(t.Context(), in.Actor(), in.SignedIn, account.Change{Password: new(password)}); err != nil {
		t.Fatal(err)
	}
	h.wantIn(in)
	h.signIn("grace@example.com")
	h.mustSignIn(h.people.SignInAs(t.Context(), grace, "", account.ClientInfo{}))
}

// A password matches in any Unicode normalization form.
func TestPasswordNormalization(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	composed := strings.Repeat("àéîöŭöàŭéîàŭîöéîéàöŭ", 5)
	decomposed := norm.NFD.String(composed)
	token := h.invite(h.Admin, "ada@example.com", account.Viewer)
	_, _, err := h.people.Accept(t.Context(), token, "Ada", "a\u0300e\u0301i\u0302o\u0308u\u0306", account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidRequest, "/password") // five characters
	h.mustSignIn(h.people.Accept(t.Context(), token, "Ada", composed, account.ClientInfo{}))
	for _, typed := range []string{composed, decomposed} {
		if _, _, err := h.people.SignIn(t.Context(), "ada@example.com", typed, account.ClientInfo{}); err != nil {
			t.Errorf("in the form with %d bytes: %v", len(typed), err)
		}
	}
}
