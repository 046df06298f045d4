package account_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

const day = 24 * time.Hour

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct{ seen, ends int }{{0, 30}, {1, 31}, {59, 89}, {60, 90}, {61, 90}, {89, 90}} {
		s := account.Session{SeenAt: start.Add(time.Duration(tc.seen) * day), ExpiresAt: start.Add(account.SessionLifetime)}
		if want := start.Add(time.Duration(tc.ends) * day); !s.Ends().Equal(want) {
			t.Errorf("a session used on day %d ends at %v", tc.seen, s.Ends())
		}
	}
}

// An unused session ends after 30 days.
func TestIdleSessionEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		idle  time.Duration
		lasts bool
	}{
		{account.IdleTimeout - time.Microsecond, true}, {account.IdleTimeout, false}, {account.SessionLifetime * 2, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newEnv(t)
			ada := h.member(h.Admin, account.Viewer, "ada@example.com")
			time.Sleep(tc.idle)
			if tc.lasts {
				h.wantIn(ada)
			} else {
				h.wantOut(ada)
				h.wantOut(ada) // a rejected request does not count as use
			}
		})
	}
}

// A session ends after 90 days even if it is used.
func TestUsedSessionEnds(t *testing.T) {
	t.Parallel()
	for _, flush := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := newEnv(t)
			ada := h.member(h.Admin, account.Viewer, "ada@example.com")
			for range 3 {
				time.Sleep(account.IdleTimeout - time.Hour)
				h.wantIn(ada)
				if !flush {
					continue
				}
				if err := h.people.FlushLastUsed(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(3*time.Hour - time.Microsecond)
			h.wantIn(ada)
			time.Sleep(time.Microsecond)
			h.wantOut(ada)
		})
	}
}

// Other processes see the last use of a session after a flush.
func TestLastUseIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEnv(t)
		ada, grace := h.member(h.Admin, account.Viewer, "ada@example.com"), h.member(h.Admin, account.Viewer, "grace@example.com")
		time.Sleep(20 * day)
		h.wantIn(ada)
		used := time.Now()
		if err := h.people.FlushLastUsed(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seen := h.user(ada.User.ID).SeenAt; !seen.Equal(used) {
			t.Errorf("ada was last seen at %v", seen)
		}
		time.Sleep(20 * day)
		elsewhere := h.another()
		if got := elsewhere.wantIn(ada).Session.SeenAt; !got.Equal(used) {
			t.Errorf("the session was last used at %v", got)
		}
		elsewhere.wantOut(grace)
	})
}

// The last use is written at most once in five minutes.
func TestLastUseIsThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEnv(t)
		ada := h.member(h.Admin, account.Viewer, "ada@example.com")
		start := ada.Session.SeenAt
		for _, tc := range []struct{ after, written time.Duration }{
			{5*time.Minute - time.Microsecond, 0}, {time.Microsecond, 5 * time.Minute}, {time.Minute, 5 * time.Minute}, {4 * time.Minute, 10 * time.Minute},
		} {
			time.Sleep(tc.after)
			h.wantIn(ada)
			if err := h.people.FlushLastUsed(t.Context()); err != nil {
				t.Fatal(err)
			}
			page, err := h.people.Sessions(t.Context(), ada.SignedIn, whole)
			if err != nil {
				t.Fatal(err)
			}
			if got := page.Items[0].SeenAt.Sub(start); got != tc.written {
				t.Errorf("after %v the last use is %v, want %v", time.Since(start), got, tc.written)
			}
		}
	})
}

// A malformed token is rejected without a lookup.
func TestMalformedTokens(t *testing.T) {
	t.Parallel()
	people := account.NewService(nil)
	for _, token := range []string{"", "x", strings.Repeat("x", 42), strings.Repeat("x", 44), strings.Repeat("x", 1<<20)} {
		_, err := people.Authenticate(t.Context(), token)
		faulttest.Want(t, err, fault.Unauthorized)
		_, err = people.PreviewInvitation(t.Context(), token)
		faulttest.Want(t, err, fault.LinkNotFound)
		_, _, err = people.ResetPassword(t.Context(), token, password, account.ClientInfo{})
		faulttest.Want(t, err, fault.LinkNotFound)
		_, _, err = people.CreateFirstOwner(t.Context(), token, "ada@example.com", "Ada", password, account.ClientInfo{})
		faulttest.Want(t, err, fault.LinkNotFound)
	}
	h := newEnv(t)
	h.wantOut(login{token: strings.Repeat("x", 43)})
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada, other := h.member(h.Admin, account.Viewer, "ada@example.com"), h.member(h.Admin, account.Owner, "grace@example.com")
	second, third := h.signIn("ada@example.com"), h.signIn("ada@example.com")
	for _, g := range []login{ada, second, third, other} {
		h.wantIn(g)
	}
	for _, id := range []string{second.Session.ID, uid.New(uid.Session), "nonsense"} {
		faulttest.Want(t, h.people.SignOut(t.Context(), other.Actor(), id), fault.SessionNotFound)
	}
	h.wantIn(second)
	if err := h.people.SignOut(t.Context(), ada.Actor(), second.Session.ID); err != nil {
		t.Fatal(err)
	}
	h.wantOut(second)
	h.wantIn(ada)
	h.wantIn(third)
	faulttest.Want(t, h.people.SignOut(t.Context(), ada.Actor(), second.Session.ID), fault.SessionNotFound)
	if diff := cmp.Diff([]string{"session.ended", "session.created"}, h.Actions(h.t, ada.Workspace.ID, second.Session.ID)); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	if err := h.people.SignOutEverywhere(t.Context(), ada.Actor()); err != nil {
		t.Fatal(err)
	}
	h.wantOut(ada)
	h.wantOut(third)
	h.wantIn(other)
	if got := h.Actions(h.t, ada.Workspace.ID, ada.User.ID)[0]; got != "session.ended" {
		t.Errorf("the last audit entry is %s", got)
	}
}

// Sessions are listed newest first, page by page, and only those of the user.
func TestSessions(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada := h.member(h.Admin, account.Viewer, "ada@example.com")
	h.member(h.Admin, account.Viewer, "grace@example.com")
	want := []string{h.signIn("ada@example.com").Session.ID, ada.Session.ID}
	var got []string
	for page := (paging.Request{Limit: 1}); ; {
		found, err := h.people.Sessions(t.Context(), ada.SignedIn, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found.Items {
			got = append(got, s.ID)
		}
		if page.After = found.Next; found.Next == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

// Changes by another process take effect within two seconds.
func TestCacheExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEnv(t)
		ada, grace := h.member(h.Admin, account.Owner, "ada@example.com"), h.member(h.Admin, account.Owner, "grace@example.com")
		h.wantIn(ada)
		h.wantIn(grace)
		elsewhere := h.another()
		if err := elsewhere.people.SignOutEverywhere(t.Context(), ada.Actor()); err != nil {
			t.Fatal(err)
		}
		if _, err := elsewhere.people.SetRole(t.Context(), h.Admin, grace.User.ID, "viewer"); err != nil {
			t.Fatal(err)
		}
		elsewhere.wantOut(ada)
		time.Sleep(2*time.Second + time.Microsecond)
		h.wantOut(ada)
		if got := h.wantIn(grace).Role; got != account.Viewer {
			t.Errorf("the role is %s", got)
		}
	})
}

// A session is in one workspace of its user at a time.
func TestSwitchWorkspace(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	first, second, foreign := h.Workspace(t, auth.Free), h.Workspace(t, auth.Pro), h.Workspace(t, auth.Free)
	ada := h.member(first, account.Viewer, "ada@example.com")
	other := h.member(second, account.Owner, "ada@example.com")
	for _, id := range []string{foreign.Workspace.ID, uid.New(uid.Workspace), ""} {
		_, err := h.people.SwitchWorkspace(t.Context(), h.wantIn(ada), id)
		faulttest.Want(t, err, fault.WorkspaceNotFound)
	}
	if got := h.wantIn(ada).Workspace.ID; got != first.Workspace.ID {
		t.Errorf("after a rejected switch the session is in workspace %s", got)
	}
	switched, err := h.people.SwitchWorkspace(t.Context(), h.wantIn(ada), second.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(switched, h.wantIn(ada)); diff != "" {
		t.Errorf("the session (-returned +found):\n%s", diff)
	}
	if switched.Workspace.Plan != auth.Pro || switched.Role != account.Owner || switched.Session.ID != ada.Session.ID {
		t.Errorf("the session is %+v", switched)
	}
	back, err := h.people.SwitchWorkspace(t.Context(), h.wantIn(other), first.Workspace.ID)
	if err != nil || back.Role != account.Viewer {
		t.Errorf("back in the first workspace: %s, %v", back.Role, err)
	}
	memberships, err := h.people.Workspaces(t.Context(), switched)
	if err != nil {
		t.Fatal(err)
	}
	want := []account.Membership{{Workspace: first.Workspace, Role: account.Viewer}, {Workspace: second.Workspace, Role: account.Owner}}
	if diff := cmp.Diff(want, memberships); diff != "" {
		t.Errorf("workspaces (-want +got):\n%s", diff)
	}
	if err := h.people.SignOut(t.Context(), ada.Actor(), ada.Session.ID); err != nil {
		t.Fatal(err)
	}
	_, err = h.people.SwitchWorkspace(t.Context(), switched, first.Workspace.ID)
	faulttest.Want(t, err, fault.WorkspaceNotFound)
}
