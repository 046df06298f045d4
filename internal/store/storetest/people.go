package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

func testPeople(t *testing.T, w *world) {
	for _, part := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"users", testUsers},
		{"identities", testIdentities},
		{"races of sign-ins", testSignInRaces},
		{"members", testMembers},
		{"the last owner", testLastOwner},
		{"invitations", testInvitations},
		{"the first user", testFounding},
		{"new passwords", testResets},
		{"purge of sessions", testPurgeSessions},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, newWorld(t, w.open))
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

// member puts a new user into a workspace, signed in.
func (w *world) member(t *testing.T, workspaceID string, role account.Role) (account.User, account.NewSession) {
	t.Helper()
	u := newUser()
	s := newSession(u, workspaceID)
	answers(w.Join(t.Context(), u, role, s, newEntry(workspaceID, "user.created", u.ID)))(t, "join", true)
	u.SeenAt = found(w.User(t.Context(), u.ID))(t).SeenAt
	return u, s
}

func testUsers(t *testing.T, w *world) {
	ctx := t.Context()
	answers(w.HasUsers(ctx))(t, "whether there are users", false)
	ws, other := w.workspace(t), w.workspace(t)
	u, s := w.member(t, ws.ID, account.Editor)
	answers(w.HasUsers(ctx))(t, "whether there are users", true)
	same(t, "by address", found(w.UserByEmail(ctx, u.Email))(t), u)
	same(t, "by id", found(w.User(ctx, u.ID))(t), u)
	gone(w.UserByEmail(ctx, "nobody@example.com"))(t, "an unknown address")
	same(t, "memberships", must(w.Memberships(ctx, u.ID))(t), []account.Membership{{Workspace: ws, Role: account.Editor}})
	empty(w.Users(ctx, paging.Request{Limit: 5, After: u.ID}))(t, "older users")

	t.Run("an address belongs to one", func(t *testing.T) {
		twin := newUser()
		twin.Email = u.Email
		answers(w.Join(ctx, twin, account.Viewer, newSession(twin, other.ID)))(t, "a second one", false)
		gone(w.User(ctx, twin.ID))(t, "the second one")
		same(t, "members", len(must(w.Members(ctx, other.ID, whole))(t).Items), 0)
	})
	t.Run("a session", func(t *testing.T) {
		want := account.SignedIn{Session: s.Session, User: u, Role: account.Editor, Workspace: ws}
		same(t, "signed in", found(w.SessionByHash(ctx, s.Hash))(t), want)
		gone(w.SessionByHash(ctx, []byte("x")))(t, "an unknown one")
		answers(w.MoveSession(ctx, u.ID, s.ID, other.ID))(t, "to a workspace of others", false)
		same(t, "audit entries", w.audited(t, ws.ID, s.ID), 1)
	})
	t.Run("needs the password that was read", func(t *testing.T) {
		answers(w.InsertSession(ctx, u, "another", newSession(u, ws.ID)))(t, "with another", false)
		answers(w.InsertSession(ctx, u, u.Password, newSession(u, other.ID)))(t, "where the user is no member", false)
		next := u
		next.Password = "made anew"
		answers(w.InsertSession(ctx, next, u.Password, newSession(u, ws.ID)))(t, "with it", true)
		same(t, "password", found(w.User(ctx, u.ID))(t).Password, "made anew")
		u.Password = "made anew"
	})
	t.Run("a new password ends the others", func(t *testing.T) {
		changed, entry := u, newEntry(ws.ID, "user.password_changed", "change")
		changed.Password = "changed"
		answers(w.ChangePassword(ctx, changed, "another", s.ID, entry))(t, "of another", false)
		answers(w.ChangePassword(ctx, changed, u.Password, s.ID, entry))(t, "change", true)
		same(t, "sessions", len(must(w.Sessions(ctx, u.ID, whole))(t).Items), 1)
		same(t, "audit entries", w.audited(t, ws.ID, "change"), 1)
	})
	t.Run("use", func(t *testing.T) {
		at := clock.Now().Add(time.Minute)
		if err := w.TouchSession(ctx, s.ID, at); err != nil {
			t.Fatal(err)
		}
		in := found(w.SessionByHash(ctx, s.Hash))(t)
		same(t, "session", in.Session.SeenAt, at)
		same(t, "user", *in.User.SeenAt, at)
	})
	t.Run("ends", func(t *testing.T) {
		entry := newEntry(ws.ID, "session.ended", "end")
		answers(w.EndSession(ctx, "usr_other", s.ID, entry))(t, "by another", false)
		answers(w.EndSession(ctx, u.ID, s.ID, entry))(t, "end", true)
		answers(w.EndSession(ctx, u.ID, s.ID, newEntry(ws.ID, "session.ended", "end")))(t, "twice", false)
		gone(w.SessionByHash(ctx, s.Hash))(t, "the session")
		same(t, "audit entries", w.audited(t, ws.ID, "end"), 1)
	})
	t.Run("rename", func(t *testing.T) {
		answers(w.RenameUser(ctx, u.ID, "New", newEntry(ws.ID, "user.updated", u.ID)))(t, "rename", true)
		same(t, "name", found(w.User(ctx, u.ID))(t).Name, "New")
		answers(w.RenameUser(ctx, "usr_none", "New", newEntry(ws.ID, "user.updated", u.ID)))(t, "nobody", false)
	})
}

// What somebody is called at an identity provider belongs to one user.
func testIdentities(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	first, _ := w.member(t, ws.ID, account.Editor)
	second, _ := w.member(t, ws.ID, account.Viewer)
	bound := func(user account.User, was, identity string) (bool, error) {
		user.Identity = identity
		return w.BindIdentity(ctx, user, was, newEntry(ws.ID, "user.updated", "identity"))
	}
	gone(w.UserByIdentity(ctx, "https://a 1"))(t, "an unknown one")
	gone(w.UserByIdentity(ctx, ""))(t, "none")
	answers(bound(first, "", "https://a 1"))(t, "bind", true)
	same(t, "user", found(w.UserByIdentity(ctx, "https://a 1"))(t).ID, first.ID)
	answers(bound(second, "", "https://a 1"))(t, "somebody else's", false)
	answers(bound(first, "", "https://b 1"))(t, "in the place of none", false)
	answers(bound(first, "https://a 1", "https://b 1"))(t, "another provider", true)
	gone(w.UserByIdentity(ctx, "https://a 1"))(t, "the one before")
	answers(bound(second, "", "https://a 1"))(t, "one that is free", true)
	same(t, "audit entries", w.audited(t, ws.ID, "identity"), 3)
	third := newUser()
	third.Identity = "https://a 1"
	answers(w.Join(ctx, third, account.Viewer, newSession(third, ws.ID)))(t, "a new user with it", false)
}

// No sign-in survives the change of the password that it was made with.
func testSignInRaces(t *testing.T, w *world) {
	ctx := t.Context()
	ws := w.workspace(t)
	for range 10 {
		u, _ := w.member(t, ws.ID, account.Viewer)
		changed := u
		changed.Password = "changed"
		together(t, 8, func(i int) (bool, error) {
			if i == 3 {
				return w.ChangePassword(ctx, changed, u.Password, "none", newEntry(ws.ID, "user.password_changed", u.ID))
			}
			return w.InsertSession(ctx, u, u.Password, newSession(u, ws.ID))
		})
		same(t, "sessions", len(must(w.Sessions(ctx, u.ID, whole))(t).Items), 0)
	}
}

func testMembers(t *testing.T, w *world) {
	ctx := t.Context()
	ws, other := w.workspace(t), w.workspace(t)
	first, _ := w.member(t, ws.ID, account.Owner)
	set := func(id string, role account.Role) (account.Outcome, error) {
		return w.SetRole(ctx, ws.ID, id, role, newEntry(ws.ID, "member.updated", id))
	}
	remove := func(id string) (account.Outcome, error) {
		return w.RemoveMember(ctx, ws.ID, id, newEntry(ws.ID, "member.removed", id))
	}
	answers(set(first.ID, account.Viewer))(t, "the last owner's role", account.LastOwner)
	answers(set(first.ID, account.Owner))(t, "the same role", account.Done)
	answers(remove(first.ID))(t, "the last owner", account.LastOwner)
	answers(set("usr_none", account.Viewer))(t, "nobody's role", account.Missing)
	answers(w.SetRole(ctx, other.ID, first.ID, account.Viewer, newEntry(ws.ID, "member.updated", "x")))(t, "elsewhere", account.Missing)

	second, session := w.member(t, ws.ID, account.Viewer)
	answers(set(second.ID, account.Operator))(t, "a role", account.Done)
	same(t, "role", found(w.Member(ctx, ws.ID, second.ID))(t).Role, account.Operator)
	same(t, "role of the session", found(w.SessionByHash(ctx, session.Hash))(t).Role, account.Operator)
	gone(w.Member(ctx, other.ID, second.ID))(t, "a member of another workspace")
	page := must(w.Members(ctx, ws.ID, paging.Request{Limit: 1}))(t)
	same(t, "first of the list", page.Items[0].User.ID, second.ID)
	same(t, "next", page.Next, second.ID)

	elsewhere := newSession(second, other.ID)
	answers(w.Join(ctx, found(w.User(ctx, second.ID))(t), account.Owner, elsewhere))(t, "join another workspace", true)
	answers(w.MoveSession(ctx, second.ID, elsewhere.ID, ws.ID))(t, "move a session", true)
	answers(w.MoveSession(ctx, second.ID, elsewhere.ID, other.ID))(t, "and back", true)
	answers(remove(second.ID))(t, "remove", account.Done)
	answers(remove(second.ID))(t, "remove again", account.Missing)
	gone(w.SessionByHash(ctx, session.Hash))(t, "the session there")
	same(t, "the session elsewhere", found(w.SessionByHash(ctx, elsewhere.Hash))(t).Role, account.Owner)

	made := newWorkspace()
	if err := w.InsertWorkspace(ctx, made, []byte("k"), newKey(made.ID), first.ID, newEntry(made.ID, "workspace.created", made.ID)); err != nil {
		t.Fatal(err)
	}
	same(t, "role of who made a workspace", found(w.Member(ctx, made.ID, first.ID))(t).Role, account.Owner)

	third, session := w.member(t, ws.ID, account.Viewer)
	answers(remove(third.ID))(t, "remove", account.Done)
	gone(w.User(ctx, third.ID))(t, "a user without a workspace")
	gone(w.SessionByHash(ctx, session.Hash))(t, "their session")
}

// However owners leave at the same time, one stays.
func testLastOwner(t *testing.T, w *world) {
	ctx := t.Context()
	for range 8 {
		ws := w.workspace(t)
		owners := make([]account.User, 8)
		for i := range owners {
			owners[i], _ = w.member(t, ws.ID, account.Owner)
		}
		left := together(t, 2*len(owners), func(i int) (bool, error) {
			id := owners[i/2].ID
			if i%2 == 0 {
				outcome, err := w.SetRole(ctx, ws.ID, id, account.Viewer, newEntry(ws.ID, "member.updated", id))
				return outcome == account.Done, err
			}
			outcome, err := w.RemoveMember(ctx, ws.ID, id, newEntry(ws.ID, "member.removed", id))
			return outcome == account.Done, err
		})
		remaining := 0
		for _, m := range must(w.Members(ctx, ws.ID, whole))(t).Items {
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

func testInvitations(t *testing.T, w *world) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	insert := func(in account.Invitation, atMost int) (bool, error) {
		return w.InsertInvitation(ctx, in, atMost, newEntry(ws.ID, "invitation.created", in.ID))
	}
	first := newInvitation(ws.ID, "a@example.com")
	answers(insert(first, 2))(t, "insert", true)
	same(t, "by hash", found(w.InvitationByHash(ctx, first.Hash, now))(t), first)
	same(t, "by id", found(w.Invitation(ctx, ws.ID, first.ID, now))(t), first)
	gone(w.Invitation(ctx, "ws_other", first.ID, now))(t, "in another workspace")
	gone(w.InvitationByHash(ctx, first.Hash, first.ExpiresAt))(t, "one that has expired")
	again := newInvitation(ws.ID, "a@example.com")
	answers(insert(again, 2))(t, "to the same address", true)
	gone(w.InvitationByHash(ctx, first.Hash, now))(t, "the one before")
	answers(insert(newInvitation(ws.ID, "b@example.com"), 2))(t, "a second one", true)
	answers(insert(newInvitation(ws.ID, "c@example.com"), 2))(t, "one too many", false)
	same(t, "listed", len(must(w.Invitations(ctx, ws.ID, now, whole))(t).Items), 2)
	empty(w.Invitations(ctx, ws.ID, again.ExpiresAt.Add(time.Minute), whole))(t, "listed after their time")

	t.Run("ends with its time", func(t *testing.T) {
		old := newInvitation(ws.ID, "d@example.com")
		old.CreatedAt, old.ExpiresAt = now.Add(-time.Hour), now.Add(-time.Minute)
		answers(insert(old, plenty))(t, "insert", true)
		u := newUser()
		answers(w.Accept(ctx, old, u, newSession(u, ws.ID)))(t, "accept", false)
		answers(insert(newInvitation(ws.ID, "b@example.com"), 2))(t, "in its place", true)
	})
	t.Run("is accepted once", func(t *testing.T) {
		accepted := together(t, 16, func(int) (bool, error) {
			u := newUser()
			return w.Accept(ctx, again, u, newSession(u, ws.ID), newEntry(ws.ID, "invitation.accepted", again.ID))
		})
		same(t, "accepted", accepted, 1)
		same(t, "members", len(must(w.Members(ctx, ws.ID, whole))(t).Items), 1)
		same(t, "users", len(must(w.Users(ctx, whole))(t).Items), 1)
		same(t, "audit entries", w.audited(t, ws.ID, again.ID), 2)
	})
	t.Run("of a member stays", func(t *testing.T) {
		u, _ := w.member(t, ws.ID, account.Viewer)
		in := newInvitation(ws.ID, u.Email)
		answers(insert(in, plenty))(t, "insert", true)
		answers(w.Accept(ctx, in, u, newSession(u, ws.ID)))(t, "accept", false)
		same(t, "by hash", found(w.InvitationByHash(ctx, in.Hash, now))(t), in)
		answers(w.RevokeInvitation(ctx, "ws_other", in.ID, newEntry(ws.ID, "invitation.revoked", in.ID)))(t, "revoke elsewhere", false)
		answers(w.RevokeInvitation(ctx, ws.ID, in.ID, newEntry(ws.ID, "invitation.revoked", in.ID)))(t, "revoke", true)
		answers(w.RevokeInvitation(ctx, ws.ID, in.ID, newEntry(ws.ID, "invitation.revoked", in.ID)))(t, "twice", false)
	})
}

func newTicket(kind account.TicketKind, userID string) account.Ticket {
	now := clock.Now()
	return account.Ticket{Hash: []byte("hash of " + uid.At(uid.Request, now)), Kind: kind, UserID: userID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
}

func (w *world) ticket(t *testing.T, kind account.TicketKind, userID string) account.Ticket {
	t.Helper()
	made := newTicket(kind, userID)
	if err := w.InsertTicket(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	return made
}

// However many come with however many links, one becomes the first user.
func testFounding(t *testing.T, w *world) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	tickets := []account.Ticket{w.ticket(t, account.Welcome, ""), w.ticket(t, account.Welcome, ""), w.ticket(t, account.Welcome, "")}
	same(t, "ticket", found(w.TicketByHash(ctx, account.Welcome, tickets[0].Hash, now))(t), tickets[0])
	gone(w.TicketByHash(ctx, account.Reset, tickets[0].Hash, now))(t, "of another kind")
	gone(w.TicketByHash(ctx, account.Welcome, tickets[0].Hash, tickets[0].ExpiresAt))(t, "after its time")
	_, _ = w.member(t, ws.ID, account.Editor) // who owns nothing
	answers(w.HasOwner(ctx, ws.ID))(t, "whether it is owned", false)
	u := newUser()
	answers(w.Found(ctx, []byte("none"), now, u, newSession(u, ws.ID)))(t, "without a ticket", false)
	founded := together(t, 64, func(i int) (bool, error) {
		u := newUser()
		return w.Found(ctx, tickets[i%3].Hash, now, u, newSession(u, ws.ID), newEntry(ws.ID, "user.created", "founded"))
	})
	same(t, "founded", founded, 1)
	answers(w.HasOwner(ctx, ws.ID))(t, "whether it is owned", true)
	same(t, "users", len(must(w.Users(ctx, whole))(t).Items), 2)
	same(t, "owners", must(w.Members(ctx, ws.ID, whole))(t).Items[0].Role, account.Owner)
	same(t, "audit entries", w.audited(t, ws.ID, "founded"), 1)
	late := w.ticket(t, account.Welcome, "")
	answers(w.Found(ctx, late.Hash, now, u, newSession(u, ws.ID)))(t, "when there is an owner", false)
}

func testResets(t *testing.T, w *world) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	u, s := w.member(t, ws.ID, account.Owner)
	ticket, other := w.ticket(t, account.Reset, u.ID), w.ticket(t, account.Reset, u.ID)
	changed := u
	changed.Password, changed.Identity = "reset", "https://a 1"
	answers(w.BindIdentity(ctx, changed, "", newEntry(ws.ID, "user.updated", "identity")))(t, "bind", true)
	reset := together(t, 8, func(int) (bool, error) {
		return w.ResetPassword(ctx, ticket.Hash, now, changed, newSession(u, ws.ID), newEntry(ws.ID, "user.password_changed", "reset"))
	})
	same(t, "resets", reset, 1)
	same(t, "password", found(w.User(ctx, u.ID))(t).Password, "reset")
	gone(w.UserByIdentity(ctx, "https://a 1"))(t, "the identity before")
	gone(w.SessionByHash(ctx, s.Hash))(t, "the session before")
	same(t, "sessions", len(must(w.Sessions(ctx, u.ID, whole))(t).Items), 1)
	gone(w.TicketByHash(ctx, account.Reset, other.Hash, now))(t, "the other ticket")
	same(t, "audit entries", w.audited(t, ws.ID, "reset"), 1)
}

func testPurgeSessions(t *testing.T, w *world) {
	ctx, now := t.Context(), clock.Now()
	ws := w.workspace(t)
	u, kept := w.member(t, ws.ID, account.Owner)
	for range 3 {
		old := newSession(u, ws.ID)
		old.ExpiresAt = now
		answers(w.InsertSession(ctx, u, u.Password, old))(t, "insert", true)
	}
	idle := newSession(u, ws.ID)
	idle.SeenAt = now.Add(-time.Hour)
	answers(w.InsertSession(ctx, u, u.Password, idle))(t, "insert", true)
	expired := newTicket(account.Reset, u.ID)
	expired.ExpiresAt = now
	if err := w.InsertTicket(ctx, expired); err != nil {
		t.Fatal(err)
	}
	answers(w.PurgeSessions(ctx, now, now.Add(-time.Minute), 2))(t, "more than a batch", true)
	answers(w.PurgeSessions(ctx, now, now.Add(-time.Minute), 20))(t, "the rest", false)
	same(t, "sessions", must(w.Sessions(ctx, u.ID, whole))(t).Items, []account.Session{kept.Session})
	same(t, "tickets", w.count(t, `SELECT count(*) FROM tickets`), 0)
}
