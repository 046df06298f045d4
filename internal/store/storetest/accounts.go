package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

func testAccounts(t *testing.T, w *harness) {
	for _, part := range []struct {
		name string
		test func(*testing.T, *harness)
	}{
		{"users", testUsers},
		{"identities", testIdentities},
		{"races of sign-ins", testSignInRaces},
		{"members", testMembers},
		{"the last owner", testLastOwner},
		{"invitations", testInvitations},
		{"the first user", testFirstOwner},
		{"new passwords", testResets},
		{"purge of sessions", testPurgeSessions},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, newHarness(t, w.open))
		})
	}
}

func newUser() account.User {
	now := clock.Now()
	id := uid.At(uid.User, now)
	return account.User{ID: id, Email: id + "@example.com", Name: "A user", Password: "hash of " + id, SeenAt: &now, CreatedAt: now}
}

func newSession(u account.User, workspaceID string) account.NewSession {
	now := clock.Now()
	id := uid.At(uid.Session, now)
	return account.NewSession{
		Session: account.Session{
			ID: id, UserID: u.ID, WorkspaceID: workspaceID, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(time.Hour), Address: "::1", Agent: "test",
		},
		Hash: []byte("hash of " + id), Entry: newEntry(workspaceID, "session.created", id),
	}
}

// member adds a new user to a workspace, signed in.
func (w *harness) member(t *testing.T, workspaceID string, role account.Role) (account.User, account.NewSession) {
	t.Helper()
	u := newUser()
	s := newSession(u, workspaceID)
	returns(w.Accounts.Join(t.Context(), u, role, s, newEntry(workspaceID, "user.created", u.ID)))(t, "join", true)
	u.SeenAt = found(w.Accounts.User(t.Context(), u.ID))(t).SeenAt
	return u, s
}

func testUsers(t *testing.T, w *harness) {
	ctx := t.Context()
	returns(w.Accounts.HasUsers(ctx))(t, "has users", false)
	ws, other := w.workspace(t), w.workspace(t)
	u, s := w.member(t, ws.ID, account.Editor)
	returns(w.Accounts.HasUsers(ctx))(t, "has users", true)
	equal(t, "by address", found(w.Accounts.UserByEmail(ctx, u.Email))(t), u)
	equal(t, "by id", found(w.Accounts.User(ctx, u.ID))(t), u)
	missing(w.Accounts.UserByEmail(ctx, "nobody@example.com"))(t, "an unknown address")
	equal(t, "memberships", must(w.Accounts.Memberships(ctx, u.ID))(t), []account.Membership{{Workspace: ws, Role: account.Editor}})
	empty(w.Accounts.Users(ctx, paging.Request{Limit: 5, After: u.ID}))(t, "older users")

	t.Run("an address belongs to one user", func(t *testing.T) {
		twin := newUser()
		twin.Email = u.Email
		returns(w.Accounts.Join(ctx, twin, account.Viewer, newSession(twin, other.ID)))(t, "a second one", false)
		missing(w.Accounts.User(ctx, twin.ID))(t, "the second one")
		equal(t, "members", len(must(w.Accounts.Members(ctx, other.ID, fullPage))(t).Items), 0)
	})
	t.Run("a session", func(t *testing.T) {
		want := account.SignedIn{Session: s.Session, User: u, Role: account.Editor, Workspace: ws}
		equal(t, "signed in", found(w.Accounts.SessionByHash(ctx, s.Hash))(t), want)
		missing(w.Accounts.SessionByHash(ctx, []byte("x")))(t, "an unknown one")
		returns(w.Accounts.SetSessionWorkspace(ctx, u.ID, s.ID, other.ID))(t, "to another workspace", false)
		equal(t, "audit entries", w.audited(t, ws.ID, s.ID), 1)
	})
	t.Run("requires the current password", func(t *testing.T) {
		returns(w.Accounts.InsertSession(ctx, u, "another", newSession(u, ws.ID)))(t, "with another", false)
		returns(w.Accounts.InsertSession(ctx, u, u.Password, newSession(u, other.ID)))(t, "where the user is no member", false)
		next := u
		next.Password = "created again"
		returns(w.Accounts.InsertSession(ctx, next, u.Password, newSession(u, ws.ID)))(t, "with it", true)
		equal(t, "password", found(w.Accounts.User(ctx, u.ID))(t).Password, "created again")
		u.Password = "created again"
	})
	t.Run("a new password ends other sessions", func(t *testing.T) {
		changed, entry := u, newEntry(ws.ID, "user.password_changed", "change")
		changed.Password = "changed"
		returns(w.Accounts.ChangePassword(ctx, changed, "another", s.ID, entry))(t, "of another", false)
		returns(w.Accounts.ChangePassword(ctx, changed, u.Password, s.ID, entry))(t, "change", true)
		equal(t, "sessions", len(must(w.Accounts.Sessions(ctx, u.ID, fullPage))(t).Items), 1)
		equal(t, "audit entries", w.audited(t, ws.ID, "change"), 1)
	})
	t.Run("use", func(t *testing.T) {
		at := clock.Now().Add(time.Minute)
		if err := w.Accounts.TouchSession(ctx, s.ID, at); err != nil {
			t.Fatal(err)
		}
		in := found(w.Accounts.SessionByHash(ctx, s.Hash))(t)
		equal(t, "session", in.Session.SeenAt, at)
		equal(t, "user", *in.User.SeenAt, at)
	})
	t.Run("ends", func(t *testing.T) {
		entry := newEntry(ws.ID, "session.ended", "end")
		returns(w.Accounts.EndSession(ctx, "usr_other", s.ID, entry))(t, "by another", false)
		returns(w.Accounts.EndSession(ctx, u.ID, s.ID, entry))(t, "end", true)
		returns(w.Accounts.EndSession(ctx, u.ID, s.ID, newEntry(ws.ID, "session.ended", "end")))(t, "twice", false)
		missing(w.Accounts.SessionByHash(ctx, s.Hash))(t, "the session")
		equal(t, "audit entries", w.audited(t, ws.ID, "end"), 1)
	})
	t.Run("rename", func(t *testing.T) {
		returns(w.Accounts.RenameUser(ctx, u.ID, "New", newEntry(ws.ID, "user.updated", u.ID)))(t, "rename", true)
		equal(t, "name", found(w.Accounts.User(ctx, u.ID))(t).Name, "New")
		returns(w.Accounts.RenameUser(ctx, "usr_none", "New", newEntry(ws.ID, "user.updated", u.ID)))(t, "an unknown user", false)
	})
}

// testIdentities checks that an identity of an identity provider belongs to one
// user.
func testIdentities(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	first, session := w.member(t, ws.ID, account.Editor)
	second, _ := w.member(t, ws.ID, account.Viewer)
	ticket := w.ticket(t, account.Reset, first.ID)
	bound := func(user account.User, was, identity string) (bool, error) {
		user.Identity = identity
		return w.Accounts.BindIdentity(ctx, user, was, nil, newEntry(ws.ID, "user.updated", "identity"))
	}
	missing(w.Accounts.UserByIdentity(ctx, "https://a 1"))(t, "an unknown one")
	missing(w.Accounts.UserByIdentity(ctx, ""))(t, "none")
	returns(bound(first, "", "https://a 1"))(t, "bind", true)
	equal(t, "user", found(w.Accounts.UserByIdentity(ctx, "https://a 1"))(t).ID, first.ID)
	equal(t, "password", found(w.Accounts.User(ctx, first.ID))(t).Password, "")
	missing(w.Accounts.SessionByHash(ctx, session.Hash))(t, "the session")
	missing(w.Accounts.TicketByHash(ctx, account.Reset, ticket.Hash, clock.Now()))(t, "the link")
	returns(bound(second, "", "https://a 1"))(t, "an identity of another user", false)
	returns(bound(first, "", "https://b 1"))(t, "in the place of none", false)
	returns(bound(first, "https://a 1", "https://b 1"))(t, "another provider", true)
	missing(w.Accounts.UserByIdentity(ctx, "https://a 1"))(t, "the previous one")
	returns(bound(second, "", "https://a 1"))(t, "one that is free", true)
	equal(t, "audit entries", w.audited(t, ws.ID, "identity"), 3)
	first.Identity = "https://c 1"
	other := account.Membership{Workspace: w.workspace(t), Role: account.Operator}
	returns(w.Accounts.BindIdentity(ctx, first, "https://b 1", &other))(t, "bind and join", true)
	equal(t, "role", found(w.Accounts.Member(ctx, other.Workspace.ID, first.ID))(t).Role, account.Operator)
	first.Identity = "https://d 1"
	returns(w.Accounts.BindIdentity(ctx, first, "https://c 1", &account.Membership{Workspace: ws, Role: account.Owner}))(t, "bind a member", true)
	equal(t, "role", found(w.Accounts.Member(ctx, ws.ID, first.ID))(t).Role, account.Editor)
	third := newUser()
	third.Identity = "https://a 1"
	returns(w.Accounts.Join(ctx, third, account.Viewer, newSession(third, ws.ID)))(t, "a new user with it", false)
}

// testSignInRaces checks that no session survives the change of the password that
// it was created with.
func testSignInRaces(t *testing.T, w *harness) {
	ctx := t.Context()
	ws := w.workspace(t)
	for range 10 {
		u, _ := w.member(t, ws.ID, account.Viewer)
		changed := u
		changed.Password = "changed"
		concurrently(t, 8, func(i int) (bool, error) {
			if i == 3 {
				return w.Accounts.ChangePassword(ctx, changed, u.Password, "none", newEntry(ws.ID, "user.password_changed", u.ID))
			}
			return w.Accounts.InsertSession(ctx, u, u.Password, newSession(u, ws.ID))
		})
		equal(t, "sessions", len(must(w.Accounts.Sessions(ctx, u.ID, fullPage))(t).Items), 0)
	}
}

func testMembers(t *testing.T, w *harness) {
	ctx := t.Context()
	ws, other := w.workspace(t), w.workspace(t)
	first, _ := w.member(t, ws.ID, account.Owner)
	set := func(id string, role account.Role) (account.Outcome, error) {
		return w.Accounts.SetRole(ctx, ws.ID, id, role, newEntry(ws.ID, "member.updated", id))
	}
	remove := func(id string) (account.Outcome, error) {
		return w.Accounts.RemoveMember(ctx, ws.ID, id, newEntry(ws.ID, "member.removed", id))
	}
	returns(set(first.ID, account.Viewer))(t, "the last owner's role", account.LastOwner)
	returns(set(first.ID, account.Owner))(t, "the same role", account.Done)
	returns(remove(first.ID))(t, "the last owner", account.LastOwner)
	returns(set("usr_none", account.Viewer))(t, "the role of an unknown user", account.Missing)
	returns(w.Accounts.SetRole(ctx, other.ID, first.ID, account.Viewer, newEntry(ws.ID, "member.updated", "x")))(t, "elsewhere", account.Missing)

	second, session := w.member(t, ws.ID, account.Viewer)
	returns(set(second.ID, account.Operator))(t, "a role", account.Done)
	equal(t, "role", found(w.Accounts.Member(ctx, ws.ID, second.ID))(t).Role, account.Operator)
	equal(t, "role of the session", found(w.Accounts.SessionByHash(ctx, session.Hash))(t).Role, account.Operator)
	missing(w.Accounts.Member(ctx, other.ID, second.ID))(t, "a member of another workspace")
	page := must(w.Accounts.Members(ctx, ws.ID, paging.Request{Limit: 1}))(t)
	equal(t, "first of the list", page.Items[0].User.ID, second.ID)
	equal(t, "next", page.Next, second.ID)

	elsewhere := newSession(second, other.ID)
	returns(w.Accounts.Join(ctx, found(w.Accounts.User(ctx, second.ID))(t), account.Owner, elsewhere))(t, "join another workspace", true)
	returns(w.Accounts.SetSessionWorkspace(ctx, second.ID, elsewhere.ID, ws.ID))(t, "move a session", true)
	returns(w.Accounts.SetSessionWorkspace(ctx, second.ID, elsewhere.ID, other.ID))(t, "and back", true)
	returns(remove(second.ID))(t, "remove", account.Done)
	returns(remove(second.ID))(t, "remove again", account.Missing)
	missing(w.Accounts.SessionByHash(ctx, session.Hash))(t, "the session there")
	equal(t, "the session elsewhere", found(w.Accounts.SessionByHash(ctx, elsewhere.Hash))(t).Role, account.Owner)

	made := newWorkspace()
	if err := w.Workspaces.InsertWorkspace(ctx, made, []byte("k"), newKey(made.ID), first.ID, newEntry(made.ID, "workspace.created", made.ID)); err != nil {
		t.Fatal(err)
	}
	equal(t, "role of who made a workspace", found(w.Accounts.Member(ctx, made.ID, first.ID))(t).Role, account.Owner)

	third, session := w.member(t, ws.ID, account.Viewer)
	returns(remove(third.ID))(t, "remove", account.Done)
	missing(w.Accounts.User(ctx, third.ID))(t, "a user without a workspace")
	missing(w.Accounts.SessionByHash(ctx, session.Hash))(t, "their session")
}

// testLastOwner checks that one owner stays when owners leave concurrently.
func testLastOwner(t *testing.T, w *harness) {
	ctx := t.Context()
	for range 8 {
		ws := w.workspace(t)
		owners := make([]account.User, 8)
		for i := range owners {
			owners[i], _ = w.member(t, ws.ID, account.Owner)
		}
		left := concurrently(t, 2*len(owners), func(i int) (bool, error) {
			id := owners[i/2].ID
			if i%2 == 0 {
				outcome, err := w.Accounts.SetRole(ctx, ws.ID, id, account.Viewer, newEntry(ws.ID, "member.updated", id))
				return outcome == account.Done, err
			}
			outcome, err := w.Accounts.RemoveMember(ctx, ws.ID, id, newEntry(ws.ID, "member.removed", id))
			return outcome == account.Done, err
		})
		remaining := 0
		for _, m := range must(w.Accounts.Members(ctx, ws.ID, fullPage))(t).Items {
			if m.Role == account.Owner {
				remaining++
			}
		}
		if remaining != 1 || left < 7 {
			t.Errorf("%d owners remain after %d changes", remaining, left)
		}
	}
}

func newInvitation(workspaceID, email string) account.Invitation {
	now := clock.Now()
	id := uid.At(uid.Invitation, now)
	return account.Invitation{
		ID: id, WorkspaceID: workspaceID, Email: email, Role: account.Editor, Hash: []byte("hash of " + id),
		CreatedAt: now, CreatedBy: "usr_x", ExpiresAt: now.Add(time.Hour),
	}
}

func testInvitations(t *testing.T, w *harness) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	insert := func(in account.Invitation, atMost int) (bool, error) {
		return w.Accounts.InsertInvitation(ctx, in, atMost, newEntry(ws.ID, "invitation.created", in.ID))
	}
	first := newInvitation(ws.ID, "a@example.com")
	returns(insert(first, 2))(t, "insert", true)
	equal(t, "by hash", found(w.Accounts.InvitationByHash(ctx, first.Hash, now))(t), first)
	equal(t, "by id", found(w.Accounts.Invitation(ctx, ws.ID, first.ID, now))(t), first)
	missing(w.Accounts.Invitation(ctx, "ws_other", first.ID, now))(t, "in another workspace")
	missing(w.Accounts.InvitationByHash(ctx, first.Hash, first.ExpiresAt))(t, "one that has expired")
	again := newInvitation(ws.ID, "a@example.com")
	returns(insert(again, 2))(t, "to the same address", true)
	missing(w.Accounts.InvitationByHash(ctx, first.Hash, now))(t, "the previous one")
	returns(insert(newInvitation(ws.ID, "b@example.com"), 2))(t, "a second one", true)
	returns(insert(newInvitation(ws.ID, "c@example.com"), 2))(t, "over the limit", false)
	equal(t, "listed", len(must(w.Accounts.Invitations(ctx, ws.ID, now, fullPage))(t).Items), 2)
	empty(w.Accounts.Invitations(ctx, ws.ID, again.ExpiresAt.Add(time.Minute), fullPage))(t, "listed after their time")

	t.Run("expires", func(t *testing.T) {
		old := newInvitation(ws.ID, "d@example.com")
		old.CreatedAt, old.ExpiresAt = now.Add(-time.Hour), now.Add(-time.Minute)
		returns(insert(old, noLimit))(t, "insert", true)
		u := newUser()
		returns(w.Accounts.Accept(ctx, old, u, newSession(u, ws.ID)))(t, "accept", false)
		returns(insert(newInvitation(ws.ID, "b@example.com"), 2))(t, "in its place", true)
	})
	t.Run("is accepted once", func(t *testing.T) {
		accepted := concurrently(t, 16, func(int) (bool, error) {
			u := newUser()
			return w.Accounts.Accept(ctx, again, u, newSession(u, ws.ID), newEntry(ws.ID, "invitation.accepted", again.ID))
		})
		equal(t, "accepted", accepted, 1)
		equal(t, "members", len(must(w.Accounts.Members(ctx, ws.ID, fullPage))(t).Items), 1)
		equal(t, "users", len(must(w.Accounts.Users(ctx, fullPage))(t).Items), 1)
		equal(t, "audit entries", w.audited(t, ws.ID, again.ID), 2)
	})
	t.Run("for a member stays", func(t *testing.T) {
		u, _ := w.member(t, ws.ID, account.Viewer)
		in := newInvitation(ws.ID, u.Email)
		returns(insert(in, noLimit))(t, "insert", true)
		returns(w.Accounts.Accept(ctx, in, u, newSession(u, ws.ID)))(t, "accept", false)
		equal(t, "by hash", found(w.Accounts.InvitationByHash(ctx, in.Hash, now))(t), in)
		returns(w.Accounts.RevokeInvitation(ctx, "ws_other", in.ID, newEntry(ws.ID, "invitation.revoked", in.ID)))(t, "revoke elsewhere", false)
		returns(w.Accounts.RevokeInvitation(ctx, ws.ID, in.ID, newEntry(ws.ID, "invitation.revoked", in.ID)))(t, "revoke", true)
		returns(w.Accounts.RevokeInvitation(ctx, ws.ID, in.ID, newEntry(ws.ID, "invitation.revoked", in.ID)))(t, "twice", false)
	})
}

func newTicket(kind account.TicketKind, userID string) account.Ticket {
	now := clock.Now()
	return account.Ticket{Hash: []byte("hash of " + uid.At(uid.Request, now)), Kind: kind, UserID: userID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
}

func (w *harness) ticket(t *testing.T, kind account.TicketKind, userID string) account.Ticket {
	t.Helper()
	made := newTicket(kind, userID)
	if err := w.Accounts.InsertTicket(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	return made
}

// testFirstOwner checks that one user becomes the first, however many links are
// used concurrently.
func testFirstOwner(t *testing.T, w *harness) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	tickets := []account.Ticket{w.ticket(t, account.Welcome, ""), w.ticket(t, account.Welcome, ""), w.ticket(t, account.Welcome, "")}
	equal(t, "ticket", found(w.Accounts.TicketByHash(ctx, account.Welcome, tickets[0].Hash, now))(t), tickets[0])
	missing(w.Accounts.TicketByHash(ctx, account.Reset, tickets[0].Hash, now))(t, "of another kind")
	missing(w.Accounts.TicketByHash(ctx, account.Welcome, tickets[0].Hash, tickets[0].ExpiresAt))(t, "after its time")
	_, _ = w.member(t, ws.ID, account.Editor) // not an owner
	returns(w.Accounts.HasOwner(ctx, ws.ID))(t, "has an owner", false)
	u := newUser()
	returns(w.Accounts.CreateFirstOwner(ctx, []byte("none"), now, u, newSession(u, ws.ID)))(t, "without a ticket", false)
	founded := concurrently(t, 64, func(i int) (bool, error) {
		u := newUser()
		return w.Accounts.CreateFirstOwner(ctx, tickets[i%3].Hash, now, u, newSession(u, ws.ID), newEntry(ws.ID, "user.created", "first owners"))
	})
	equal(t, "first owners", founded, 1)
	returns(w.Accounts.HasOwner(ctx, ws.ID))(t, "has an owner", true)
	equal(t, "users", len(must(w.Accounts.Users(ctx, fullPage))(t).Items), 2)
	equal(t, "owners", must(w.Accounts.Members(ctx, ws.ID, fullPage))(t).Items[0].Role, account.Owner)
	equal(t, "audit entries", w.audited(t, ws.ID, "first owners"), 1)
	late := w.ticket(t, account.Welcome, "")
	returns(w.Accounts.CreateFirstOwner(ctx, late.Hash, now, u, newSession(u, ws.ID)))(t, "when there is an owner", false)
}

func testResets(t *testing.T, w *harness) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	u, _ := w.member(t, ws.ID, account.Owner)
	u.Password, u.Identity = "", "https://a 1"
	returns(w.Accounts.BindIdentity(ctx, u, "", nil, newEntry(ws.ID, "user.updated", "identity")))(t, "bind", true)
	s := newSession(u, ws.ID)
	returns(w.Accounts.InsertSession(ctx, u, "", s))(t, "sign in", true)
	ticket, other := w.ticket(t, account.Reset, u.ID), w.ticket(t, account.Reset, u.ID)
	changed := u
	changed.Password = "reset"
	reset := concurrently(t, 8, func(int) (bool, error) {
		return w.Accounts.ResetPassword(ctx, ticket.Hash, now, changed, newSession(u, ws.ID), newEntry(ws.ID, "user.password_changed", "reset"))
	})
	equal(t, "resets", reset, 1)
	equal(t, "password", found(w.Accounts.User(ctx, u.ID))(t).Password, "reset")
	missing(w.Accounts.UserByIdentity(ctx, "https://a 1"))(t, "the previous identity")
	missing(w.Accounts.SessionByHash(ctx, s.Hash))(t, "the previous session")
	equal(t, "sessions", len(must(w.Accounts.Sessions(ctx, u.ID, fullPage))(t).Items), 1)
	missing(w.Accounts.TicketByHash(ctx, account.Reset, other.Hash, now))(t, "the other ticket")
	equal(t, "audit entries", w.audited(t, ws.ID, "reset"), 1)
}

func testPurgeSessions(t *testing.T, w *harness) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	u, kept := w.member(t, ws.ID, account.Owner)
	for range 3 {
		old := newSession(u, ws.ID)
		old.ExpiresAt = now
		returns(w.Accounts.InsertSession(ctx, u, u.Password, old))(t, "insert", true)
	}
	idle := newSession(u, ws.ID)
	idle.SeenAt = now.Add(-time.Hour)
	returns(w.Accounts.InsertSession(ctx, u, u.Password, idle))(t, "insert", true)
	expired := newTicket(account.Reset, u.ID)
	expired.ExpiresAt = now
	if err := w.Accounts.InsertTicket(ctx, expired); err != nil {
		t.Fatal(err)
	}
	returns(w.Accounts.PurgeSessions(ctx, now, now.Add(-time.Minute), 2))(t, "more than a batch", true)
	returns(w.Accounts.PurgeSessions(ctx, now, now.Add(-time.Minute), 20))(t, "the rest", false)
	equal(t, "sessions", must(w.Accounts.Sessions(ctx, u.ID, fullPage))(t).Items, []account.Session{kept.Session})
	equal(t, "tickets", w.count(t, `SELECT count(*) FROM tickets`), 0)
}
