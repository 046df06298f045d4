package account_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
)

// grace is a person at an identity provider.
var grace = account.Identity{Issuer: "https://id.example", Subject: "1", Email: "Grace@Example.com", Verified: true, Name: "Grace"}

func TestSignInAsNewUser(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	_, _, err := h.people.SignInAs(t.Context(), grace, "", account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidCredentials)
	unverified := grace
	unverified.Verified = false
	_, _, err = h.people.SignInAs(t.Context(), unverified, account.Operator, account.ClientInfo{})
	faulttest.Want(t, err, fault.InsufficientScope)
	nowhere := grace
	nowhere.Email = "no address"
	_, _, err = h.people.SignInAs(t.Context(), nowhere, account.Operator, account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidRequest, "/email")
	if needed, err := h.people.NeedsSetup(t.Context()); err != nil || !needed {
		t.Fatalf("a rejected sign-in created a user: %v", err)
	}

	in := h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Operator, account.ClientInfo{}))
	if in.Role != account.Operator || in.Workspace.ID != h.Admin.Workspace.ID {
		t.Errorf("signed in to %s as %s", in.Workspace.ID, in.Role)
	}
	if u := h.user(in.User.ID); u.Email != "grace@example.com" || u.Name != "Grace" || u.Password != "" || u.Identity != "https://id.example 1" {
		t.Errorf("the user is %+v", u)
	}
	h.wantIn(in)
}

// A user is found by the issuer and subject once the identity is bound.
func TestSignInAsExistingUser(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada := h.member(h.Admin, account.Editor, "ada@example.com")
	identity := account.Identity{Issuer: "https://id.example", Subject: "7", Email: "ada@example.com", Verified: true}
	enter := func(identity account.Identity) error {
		t.Helper()
		in, _, err := h.people.SignInAs(t.Context(), identity, "", account.ClientInfo{})
		if err == nil && in.User.ID != ada.User.ID {
			t.Errorf("%+v is user %s", identity, in.User.ID)
		}
		return err
	}
	unverified := identity
	unverified.Verified = false
	faulttest.Want(t, enter(unverified), fault.InsufficientScope)
	if got := h.user(ada.User.ID).Identity; got != "" {
		t.Fatalf("an unverified address was bound to %s", got)
	}
	if err := enter(identity); err != nil {
		t.Fatal(err)
	}
	if got := h.Actions(h.t, ada.Workspace.ID, ada.User.ID)[0]; got != "user.updated" {
		t.Errorf("the last audit entry is %s", got)
	}
	// With another address, even an unverified one.
	renamed := identity
	renamed.Email, renamed.Verified = "lovelace@example.com", false
	if err := enter(renamed); err != nil {
		t.Error(err)
	}
	// The provider has reassigned the address to another person.
	other := identity
	other.Subject = "8"
	faulttest.Want(t, enter(other), fault.InvalidCredentials)
	// An identity of another provider replaces the first, which is no longer bound.
	moved := identity
	moved.Issuer = "https://other.example"
	if err := enter(moved); err != nil {
		t.Error(err)
	}
	faulttest.Want(t, enter(renamed), fault.InsufficientScope)
}

// Whoever accepts an invitation to somebody else's address loses the account when its
// owner arrives with the identity provider: their password and their sessions end.
func TestSignInAsOccupiedUser(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	other := h.Workspace(t, auth.Free)
	attacker := h.member(other, account.Viewer, "grace@example.com")
	link, err := h.people.ResetLink(t.Context(), "", attacker.User.Email, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, reset, _ := strings.Cut(link, "#token=")
	in := h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Editor, account.ClientInfo{}))
	if in.User.ID != attacker.User.ID {
		t.Errorf("signed in as %+v", in.User)
	}
	h.wantIn(in)
	h.wantOut(attacker)
	_, _, err = h.people.SignIn(t.Context(), "grace@example.com", password, account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidCredentials)
	_, _, err = h.people.ResetPassword(t.Context(), reset, "another "+password, account.ClientInfo{})
	faulttest.Want(t, err, fault.LinkNotFound)
	all, err := h.people.Workspaces(t.Context(), in.SignedIn)
	if err != nil || len(all) != 2 || all[1].Workspace.ID != h.Admin.Workspace.ID || all[1].Role != account.Editor {
		t.Errorf("she is in %+v, %v", all, err)
	}
	// The role is that of the first sign-in, not of later ones.
	h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Owner, account.ClientInfo{}))
	if all, err := h.people.Workspaces(t.Context(), in.SignedIn); err != nil || all[1].Role != account.Editor {
		t.Errorf("she is in %+v, %v", all, err)
	}
}

// A member of the first workspace keeps their role there.
func TestSignInAsKeepsRole(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Owner, "grace@example.com")
	in := h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Viewer, account.ClientInfo{}))
	if in.Role != account.Owner {
		t.Errorf("she is %s", in.Role)
	}
}

// An issuer that is a prefix of another one is a different issuer.
func TestIssuersAreNotComparedByPrefix(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Viewer, "grace@example.com")
	for _, issuer := range []string{"https://id.example/tenant", "https://id.example"} {
		identity := grace
		identity.Issuer, identity.Subject = issuer, "2"
		h.mustSignIn(h.people.SignInAs(t.Context(), identity, "", account.ClientInfo{}))
	}
}

// A person without a password accepts an invitation to their address.
func TestAcceptAs(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	other := h.Workspace(t, auth.Free)
	accept := func(identity account.Identity, token string) (login, error) {
		in, session, err := h.people.AcceptAs(t.Context(), identity, token, account.ClientInfo{})
		return login{in, session}, err
	}

	// A rejected attempt neither creates a user nor consumes the invitation.
	token := h.invite(other, "grace@example.com", account.Editor)
	unverified, stranger := grace, grace
	unverified.Verified = false
	stranger.Email = "stranger@example.com"
	_, err := accept(unverified, token)
	faulttest.Want(t, err, fault.InsufficientScope)
	if _, err = accept(stranger, token); !errors.Is(err, account.ErrOtherAddress) {
		t.Errorf("for another address: %v", err)
	}
	if needed, err := h.people.NeedsSetup(t.Context()); err != nil || !needed {
		t.Fatalf("a rejected attempt created a user: %v", err)
	}

	in, err := accept(grace, token)
	if err != nil || in.Workspace.ID != other.Workspace.ID || in.Role != account.Editor {
		t.Fatalf("accepted as %+v, %v", in.SignedIn, err)
	}
	h.wantIn(in)
	if u := h.user(in.User.ID); u.Email != "grace@example.com" || u.Name != "Grace" || u.Password != "" || u.Identity != "https://id.example 1" {
		t.Errorf("the user is %+v", u)
	}
	_, err = accept(grace, token)
	faulttest.Want(t, err, fault.LinkNotFound)

	// The same person joins a second workspace, now invited under a new address.
	token = h.invite(h.Admin, "hopper@example.com", account.Viewer)
	_, err = accept(unverified, token)
	faulttest.Want(t, err, fault.InsufficientScope)
	renamed := grace
	renamed.Email = "hopper@example.com"
	if again, err := accept(renamed, token); err != nil || again.User.ID != in.User.ID || again.Workspace.ID != h.Admin.Workspace.ID {
		t.Errorf("accepted as %+v, %v", again.SignedIn, err)
	}
	// Their own address needs no confirmation by the provider.
	token = h.invite(h.Workspace(t, auth.Free), "grace@example.com", account.Viewer)
	if _, err := accept(unverified, token); err != nil {
		t.Error(err)
	}
}

// Accepting through the provider binds the identity to a user with a password, who may be
// somebody else, and so ends that password and its sessions.
func TestAcceptAsUserWithPassword(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	squatter := h.member(h.Admin, account.Viewer, "grace@example.com")
	other := h.Workspace(t, auth.Free)
	token := h.invite(other, "grace@example.com", account.Editor)
	if seen, err := h.people.PreviewInvitation(t.Context(), token); err != nil || !seen.HasAccount || !seen.HasPassword {
		t.Errorf("the preview is %+v, %v", seen, err)
	}
	in := h.mustSignIn(h.people.AcceptAs(t.Context(), grace, token, account.ClientInfo{}))
	if in.User.ID != squatter.User.ID || in.Workspace.ID != other.Workspace.ID {
		t.Errorf("accepted as %+v", in.SignedIn)
	}
	h.wantOut(squatter)
	_, _, err := h.people.SignIn(t.Context(), "grace@example.com", password, account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidCredentials)
	third := h.invite(h.Workspace(t, auth.Free), "grace@example.com", account.Viewer)
	if seen, err := h.people.PreviewInvitation(t.Context(), third); err != nil || !seen.HasAccount || seen.HasPassword {
		t.Errorf("the preview is %+v, %v", seen, err)
	}
}
