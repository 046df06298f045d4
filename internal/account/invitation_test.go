package account_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/uid"
)

// tokenOf returns the token in the fragment of a link.
func tokenOf(t *testing.T, link string) string {
	t.Helper()
	_, token, found := strings.Cut(link, "#token=")
	if !found || len(token) != 43 {
		t.Fatalf("the link is %q", link)
	}
	return token
}

func TestInvite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEnv(t)
		owner := h.member(h.Admin, account.Owner, "owner@example.com")
		made, token, err := h.people.Invite(t.Context(), owner.Actor(), " Ada@Example.com ", "operator")
		if err != nil {
			t.Fatal(err)
		}
		if made.Email != "ada@example.com" || made.Role != account.Operator || made.CreatedBy != owner.User.ID || made.ExpiresAt.Sub(made.CreatedAt) != 7*day {
			t.Errorf("the invitation is %+v", made)
		}
		if strings.Contains(string(made.Hash), token) || len(made.Hash) != 32 {
			t.Errorf("the token is stored: %q", made.Hash)
		}
		if got := account.InvitationLink("https://flows.example", token); got != "https://flows.example/invitation#token="+token {
			t.Errorf("the link is %s", got)
		}
		read, err := h.people.Invitation(t.Context(), h.Admin, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		page, err := h.people.Invitations(t.Context(), h.Admin, whole)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range append(page.Items, read) {
			if diff := cmp.Diff(made, found); diff != "" {
				t.Errorf("the invitation (-made +found):\n%s", diff)
			}
		}
		seen, err := h.people.PreviewInvitation(t.Context(), token)
		if err != nil || seen.By != "Test Person" || seen.HasAccount || seen.Workspace.ID != h.Admin.Workspace.ID || seen.Role != account.Operator {
			t.Errorf("the preview is %+v, %v", seen, err)
		}
		if got := h.Actions(h.t, h.Admin.Workspace.ID, made.ID); fmt.Sprint(got) != "[invitation.created]" {
			t.Errorf("the audit log has %v", got)
		}
	})
}

func TestInviteRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Viewer, "ada@example.com")
	for _, tc := range []struct {
		email, role string
		code        fault.Code
		points      []string
	}{
		{"no address", "viewer", fault.InvalidRequest, []string{"/email"}},
		{"", "viewer", fault.InvalidRequest, []string{"/email"}},
		{"x@example.com", "admin", fault.InvalidRequest, []string{"/role"}},
		{"x@example.com", "", fault.InvalidRequest, []string{"/role"}},
		{"ADA@example.com", "owner", fault.AlreadyMember, nil},
	} {
		_, token, err := h.people.Invite(t.Context(), h.Admin, tc.email, tc.role)
		faulttest.Want(t, err, tc.code, tc.points...)
		if token != "" {
			t.Errorf("%+v: there is a token", tc)
		}
	}
	if page, err := h.people.Invitations(t.Context(), h.Admin, whole); err != nil || len(page.Items) > 0 {
		t.Errorf("invitations are %+v, %v", page.Items, err)
	}
	// A member of another workspace can be invited; the preview shows the account.
	other := h.Workspace(t, auth.Free)
	seen, err := h.people.PreviewInvitation(t.Context(), h.invite(other, "ada@example.com", account.Viewer))
	if err != nil || !seen.HasAccount || seen.By != "" {
		t.Errorf("the preview is %+v, %v", seen, err)
	}
}

// A workspace has at most 500 open invitations. A second invitation to an address
// replaces the first.
func TestInvitationLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEnv(t)
		first := h.invite(h.Admin, "p0@example.com", account.Viewer)
		for i := range 499 {
			h.invite(h.Admin, fmt.Sprintf("p%d@example.com", i+1), account.Viewer)
		}
		_, _, err := h.people.Invite(t.Context(), h.Admin, "one.more@example.com", "viewer")
		faulttest.Want(t, err, fault.PlanLimitExceeded)
		second := h.invite(h.Admin, "p0@example.com", account.Editor)
		_, err = h.people.PreviewInvitation(t.Context(), first)
		faulttest.Want(t, err, fault.LinkNotFound)
		if seen, err := h.people.PreviewInvitation(t.Context(), second); err != nil || seen.Role != account.Editor {
			t.Errorf("the preview of the second link is %+v, %v", seen, err)
		}
		h.invite(h.Workspace(t, auth.Free), "one.more@example.com", account.Viewer)
		time.Sleep(7 * day)
		h.invite(h.Admin, "one.more@example.com", account.Viewer) // expired invitations do not count
	})
}

// accept accepts an invitation as a person without an account.
func (h *env) accept(token string) (login, error) {
	in, session, err := h.people.Accept(h.t.Context(), token, "Ada", password, account.ClientInfo{})
	return login{in, session}, err
}

func TestAccept(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	made, token, err := h.people.Invite(t.Context(), h.Admin, "ada@example.com", "operator")
	if err != nil {
		t.Fatal(err)
	}
	// A rejected attempt does not consume the invitation.
	for _, tc := range []struct{ name, password, points string }{
		{"", password, "/name"}, {"a\nb", password, "/name"}, {strings.Repeat("n", 101), password, "/name"},
		{"Ada", "too short", "/password"}, {"Ada", "ada@example.com", "/password"}, {"Ada", "aaaaaaaaaaaa", "/password"}, {"Ada", strings.Repeat("abcd", 51), "/password"},
	} {
		_, _, err := h.people.Accept(t.Context(), token, tc.name, tc.password, account.ClientInfo{})
		faulttest.Want(t, err, fault.InvalidRequest, tc.points)
	}
	if needed, err := h.people.NeedsSetup(t.Context()); err != nil || !needed {
		t.Fatalf("a rejected attempt created a user: %v", err)
	}
	ada, err := h.accept(token)
	if err != nil || ada.Role != account.Operator || ada.Workspace.ID != h.Admin.Workspace.ID || ada.User.Name != "Ada" || ada.User.Email != "ada@example.com" {
		t.Fatalf("accepted as %+v, %v", ada.SignedIn, err)
	}
	h.wantIn(ada)
	if got := h.Actions(h.t, h.Admin.Workspace.ID, made.ID); fmt.Sprint(got) != "[invitation.accepted invitation.created]" {
		t.Errorf("the audit log has %v", got)
	}
	if got := h.Actions(h.t, h.Admin.Workspace.ID, ada.User.ID); fmt.Sprint(got) != "[user.created]" {
		t.Errorf("the audit log has %v", got)
	}
	_, err = h.accept(token)
	faulttest.Want(t, err, fault.LinkNotFound)
	h.wantClosed(made, token)
}

// wantClosed fails the test unless an invitation can no longer be used.
func (h *env) wantClosed(in account.Invitation, token string) {
	h.t.Helper()
	ctx := h.t.Context()
	_, err := h.people.PreviewInvitation(ctx, token)
	faulttest.Want(h.t, err, fault.LinkNotFound)
	_, err = h.accept(token)
	faulttest.Want(h.t, err, fault.LinkNotFound)
	_, err = h.people.Invitation(ctx, h.Admin, in.ID)
	faulttest.Want(h.t, err, fault.InvitationNotFound)
	page, err := h.people.Invitations(ctx, h.Admin, whole)
	if err != nil || len(page.Items) > 0 {
		h.t.Errorf("invitations are %+v, %v", page.Items, err)
	}
}

func TestInvitationExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEnv(t)
		made, token, err := h.people.Invite(t.Context(), h.Admin, "ada@example.com", "viewer")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(7*day - time.Microsecond)
		if _, err := h.people.PreviewInvitation(t.Context(), token); err != nil {
			t.Fatalf("just before it expires: %v", err)
		}
		time.Sleep(time.Microsecond)
		h.wantClosed(made, token)
	})
}

func TestRevokeInvitation(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	made, token, err := h.people.Invite(t.Context(), h.Admin, "ada@example.com", "viewer")
	if err != nil {
		t.Fatal(err)
	}
	stranger := h.Workspace(t, auth.Free)
	for _, id := range []string{made.ID, uid.New(uid.Invitation), "nonsense", ""} {
		_, err := h.people.Invitation(t.Context(), stranger, id)
		faulttest.Want(t, err, fault.InvitationNotFound)
		faulttest.Want(t, h.people.RevokeInvitation(t.Context(), stranger, id), fault.InvitationNotFound)
	}
	if _, err := h.people.PreviewInvitation(t.Context(), token); err != nil {
		t.Fatalf("a stranger revoked it: %v", err)
	}
	if err := h.people.RevokeInvitation(t.Context(), h.Admin, made.ID); err != nil {
		t.Fatal(err)
	}
	h.wantClosed(made, token)
	faulttest.Want(t, h.people.RevokeInvitation(t.Context(), h.Admin, made.ID), fault.InvitationNotFound)
}

// A person with an account accepts an invitation with the password of the account.
func TestAcceptWithExistingAccount(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	other := h.Workspace(t, auth.Free)
	ada := h.member(h.Admin, account.Viewer, "ada@example.com")
	token := h.invite(other, "ada@example.com", account.Editor)
	for _, wrong := range []string{"", "another long one", strings.Repeat("x", 1000)} {
		_, _, err := h.people.Accept(t.Context(), token, "Mallory", wrong, account.ClientInfo{})
		faulttest.Want(t, err, fault.InvalidCredentials)
	}
	in := h.mustSignIn(h.people.Accept(t.Context(), token, "Another Name", password, account.ClientInfo{}))
	if in.User.ID != ada.User.ID || in.Role != account.Editor || in.Workspace.ID != other.Workspace.ID {
		t.Errorf("accepted as %+v", in.SignedIn)
	}
	if got := h.user(ada.User.ID).Name; got != "Test Person" {
		t.Errorf("the name is %q", got)
	}
	if got := h.wantIn(ada).Workspace.ID; got != h.Admin.Workspace.ID {
		t.Errorf("the first session is in workspace %s", got)
	}

	// A user of an identity provider has no password to confirm with.
	h.mustSignIn(h.people.SignInAs(t.Context(), grace, account.Viewer, account.ClientInfo{}))
	token = h.invite(other, "grace@example.com", account.Owner)
	for _, wrong := range []string{"", password} {
		_, _, err := h.people.Accept(t.Context(), token, "Grace", wrong, account.ClientInfo{})
		faulttest.Want(t, err, fault.InvalidCredentials)
	}
}

// A person may become a member by other means while the invitation is open.
func TestAcceptAsExistingMember(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	token := h.invite(h.Admin, "ada@example.com", account.Owner)
	link, err := h.people.WelcomeLink(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.mustSignIn(h.people.CreateFirstOwner(t.Context(), tokenOf(t, link), "ada@example.com", "Ada", password, account.ClientInfo{}))
	_, err = h.accept(token)
	faulttest.Want(t, err, fault.AlreadyMember)
}

// Of concurrent attempts with one link, one succeeds.
func TestConcurrentAccept(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	token := h.invite(h.Admin, "ada@example.com", account.Viewer)
	var all sync.WaitGroup
	var accepted atomic.Int32
	for range 16 {
		all.Go(func() {
			switch _, _, err := h.people.Accept(t.Context(), token, "Ada", password, account.ClientInfo{}); {
			case err == nil:
				accepted.Add(1)
			case !fault.Is(err, fault.LinkNotFound) && !fault.Is(err, fault.AlreadyMember):
				t.Error(err)
			}
		})
	}
	all.Wait()
	page, err := h.people.Members(t.Context(), h.Admin, whole)
	if err != nil || accepted.Load() != 1 || len(page.Items) != 1 {
		t.Errorf("%d were accepted, there are %d members, %v", accepted.Load(), len(page.Items), err)
	}
}
