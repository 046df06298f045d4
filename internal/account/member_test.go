package account_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/test/lane"
)

// The last owner of a workspace cannot be removed or lose the role.
func TestLastOwnerIsKept(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	first, second := h.member(h.Admin, account.Owner, "ada@example.com"), h.member(h.Admin, account.Viewer, "grace@example.com")
	actor := first.Actor()
	for _, role := range []account.Role{account.Editor, account.Operator, account.Viewer} {
		_, err := h.people.SetRole(t.Context(), actor, first.User.ID, string(role))
		faulttest.Want(t, err, fault.LastOwner)
	}
	faulttest.Want(t, h.people.Remove(t.Context(), actor, first.User.ID), fault.LastOwner)
	faulttest.Want(t, h.people.Remove(t.Context(), h.Admin, first.User.ID), fault.LastOwner)
	if got := h.wantIn(first).Role; got != account.Owner {
		t.Errorf("the role is %s", got)
	}
	if _, err := h.people.SetRole(t.Context(), actor, first.User.ID, "owner"); err != nil {
		t.Errorf("staying the owner: %v", err)
	}
	if _, err := h.people.SetRole(t.Context(), actor, second.User.ID, "owner"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.people.SetRole(t.Context(), actor, first.User.ID, "viewer"); err != nil {
		t.Errorf("with a second owner: %v", err)
	}
	faulttest.Want(t, h.people.Remove(t.Context(), second.Actor(), second.User.ID), fault.LastOwner)
}

// An owner of one workspace does not count as an owner of another.
func TestLastOwnerOfEachWorkspaceIsKept(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	other := h.Workspace(t, auth.Free)
	h.member(other, account.Owner, "grace@example.com")
	ada := h.member(h.Admin, account.Owner, "ada@example.com")
	h.member(other, account.Owner, "ada@example.com")
	faulttest.Want(t, h.people.Remove(t.Context(), h.Admin, ada.User.ID), fault.LastOwner)
	if err := h.people.Remove(t.Context(), other, ada.User.ID); err != nil {
		t.Errorf("one of two owners: %v", err)
	}
}

// A new role takes effect at once, also in cached sessions.
func TestSetRole(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Owner, "owner@example.com")
	ada := h.member(h.Admin, account.Viewer, "ada@example.com")
	for _, role := range append(account.Roles(), account.Viewer) {
		h.wantIn(ada)
		changed, err := h.people.SetRole(t.Context(), h.Admin, ada.User.ID, string(role))
		if err != nil || changed.Role != role || changed.User.ID != ada.User.ID {
			t.Fatalf("%s: %+v, %v", role, changed, err)
		}
		if diff := cmp.Diff(role.Scopes(), h.wantIn(ada).Actor().Scopes); diff != "" {
			t.Errorf("scopes of a new %s (-want +got):\n%s", role, diff)
		}
		entry := h.Audited(t, ada.Workspace.ID)[0]
		if entry.Action != "member.updated" || entry.TargetID != ada.User.ID || entry.Details["role"] != string(role) || entry.ActorID != h.Admin.ID {
			t.Errorf("the audit entry is %+v", entry)
		}
	}
	for _, role := range []string{"", "admin", "Owner"} {
		_, err := h.people.SetRole(t.Context(), h.Admin, ada.User.ID, role)
		faulttest.Want(t, err, fault.InvalidRequest, "/role")
	}
	if got := h.wantIn(ada).Role; got != account.Viewer {
		t.Errorf("after a rejected change the role is %s", got)
	}
}

// A removed member is signed out at once. A user without a workspace is deleted,
// and the address can be used again.
func TestRemove(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	ada := h.member(h.Admin, account.Editor, "ada@example.com")
	second := h.signIn("ada@example.com")
	reset, err := h.people.ResetLink(t.Context(), "", "ada@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wantIn(ada)
	if err := h.people.Remove(t.Context(), h.Admin, ada.User.ID); err != nil {
		t.Fatal(err)
	}
	h.wantOut(ada)
	h.wantOut(second)
	if got := h.Actions(h.t, ada.Workspace.ID, ada.User.ID)[0]; got != "member.removed" {
		t.Errorf("the last audit entry is %s", got)
	}
	if u, err := h.DB.Accounts.User(t.Context(), ada.User.ID); err != nil || u != nil {
		t.Errorf("the user is %+v, %v", u, err)
	}
	_, _, err = h.people.SignIn(t.Context(), "ada@example.com", password, account.ClientInfo{})
	faulttest.Want(t, err, fault.InvalidCredentials)
	_, _, err = h.people.ResetPassword(t.Context(), tokenOf(t, reset), "another long one", account.ClientInfo{})
	faulttest.Want(t, err, fault.LinkNotFound)
	faulttest.Want(t, h.people.Remove(t.Context(), h.Admin, ada.User.ID), fault.MemberNotFound)
	if again := h.member(h.Admin, account.Viewer, "ada@example.com"); again.User.ID == ada.User.ID {
		t.Error("the deleted user was reused")
	}
}

// A user who is removed from one workspace stays in the others.
func TestRemoveFromOneOfTwoWorkspaces(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	other := h.Workspace(t, auth.Free)
	here, there := h.member(h.Admin, account.Viewer, "ada@example.com"), h.member(other, account.Editor, "ada@example.com")
	if err := h.people.Remove(t.Context(), h.Admin, here.User.ID); err != nil {
		t.Fatal(err)
	}
	h.wantOut(here)
	if got := h.wantIn(there).Role; got != account.Editor {
		t.Errorf("the role is %s", got)
	}
	if got := h.signIn("ada@example.com").Workspace.ID; got != other.Workspace.ID {
		t.Errorf("signed in to %s", got)
	}
}

// The members of a workspace are not visible to other workspaces.
func TestMembersOfOtherWorkspaces(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	stranger := h.Workspace(t, auth.Free)
	ada := h.member(h.Admin, account.Viewer, "ada@example.com")
	for _, id := range []string{ada.User.ID, uid.New(uid.User), "usr_", "nonsense", ""} {
		_, err := h.people.Member(t.Context(), stranger, id)
		faulttest.Want(t, err, fault.MemberNotFound)
		_, err = h.people.SetRole(t.Context(), stranger, id, "viewer")
		faulttest.Want(t, err, fault.MemberNotFound)
		faulttest.Want(t, h.people.Remove(t.Context(), stranger, id), fault.MemberNotFound)
	}
	if page, err := h.people.Members(t.Context(), stranger, whole); err != nil || len(page.Items) > 0 {
		t.Errorf("members of the other workspace: %+v, %v", page.Items, err)
	}
	if m, err := h.people.Member(t.Context(), h.Admin, ada.User.ID); err != nil || m.Role != account.Viewer || m.User.Email != "ada@example.com" {
		t.Errorf("the member is %+v, %v", m, err)
	}
}

// Members are listed newest first, page by page.
func TestMembers(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	var want, got []string
	for i := range 5 {
		want = append(want, h.member(h.Admin, account.Viewer, fmt.Sprintf("p%d@example.com", i)).User.ID)
	}
	slices.Reverse(want)
	for page := (paging.Request{Limit: 2}); ; {
		found, err := h.people.Members(t.Context(), h.Admin, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found.Items {
			got = append(got, m.User.ID)
		}
		if page.After = found.Next; found.Next == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	users, err := h.people.Users(t.Context(), whole)
	if err != nil || len(users.Items) != 5 {
		t.Errorf("there are %d users, %v", len(users.Items), err)
	}
	memberships, err := h.people.MembershipsOf(t.Context(), want[0])
	if err != nil || len(memberships) != 1 || memberships[0].Workspace.ID != h.Admin.Workspace.ID {
		t.Errorf("memberships are %+v, %v", memberships, err)
	}
}

// For any sequence of changes, the members match the accepted changes, and a
// workspace that has an owner keeps one.
func TestMembersProperty(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	lane.Check(t, func(rt *rapid.T) {
		actor := h.Workspace(t, auth.Free)
		roles := map[string]account.Role{} // what the workspace should hold
		joined := 0
		owners := func() (n int) {
			for _, role := range roles {
				if role == account.Owner {
					n++
				}
			}
			return n
		}
		anyone := func(rt *rapid.T) string { return rapid.SampledFrom(slices.Sorted(maps.Keys(roles))).Draw(rt, "member") }
		anyRole := rapid.SampledFrom(account.Roles())
		rt.Repeat(map[string]func(*rapid.T){
			"join": func(rt *rapid.T) {
				joined++
				role := anyRole.Draw(rt, "role")
				roles[h.member(actor, role, fmt.Sprintf("p%d@%s.example", joined, actor.Workspace.ID[3:])).User.ID] = role
			},
			"set role": func(rt *rapid.T) {
				if len(roles) == 0 {
					rt.Skip("there are no members")
				}
				id, role := anyone(rt), anyRole.Draw(rt, "role")
				_, err := h.people.SetRole(t.Context(), actor, id, string(role))
				if last := roles[id] == account.Owner && owners() == 1 && role != account.Owner; last != fault.Is(err, fault.LastOwner) || err != nil && !last {
					rt.Fatalf("%s from %s to %s with %d owners: %v", id, roles[id], role, owners(), err)
				} else if !last {
					roles[id] = role
				}
			},
			"remove": func(rt *rapid.T) {
				if len(roles) == 0 {
					rt.Skip("there are no members")
				}
				id := anyone(rt)
				err := h.people.Remove(t.Context(), actor, id)
				if last := roles[id] == account.Owner && owners() == 1; last != fault.Is(err, fault.LastOwner) || err != nil && !last {
					rt.Fatalf("removal of %s, %s, with %d owners: %v", id, roles[id], owners(), err)
				} else if !last {
					delete(roles, id)
				}
			},
			"": func(rt *rapid.T) {
				page, err := h.people.Members(t.Context(), actor, whole)
				if err != nil {
					rt.Fatal(err)
				}
				got := map[string]account.Role{}
				for _, m := range page.Items {
					got[m.User.ID] = m.Role
				}
				if diff := cmp.Diff(roles, got); diff != "" {
					rt.Fatalf("members (-want +got):\n%s", diff)
				}
			},
		})
	})
}
