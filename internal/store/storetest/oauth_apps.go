package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

func newApp(workspaceID, integration string) connection.SealedApp {
	now := clock.Now()
	return connection.SealedApp{
		App: connection.App{
			ID: uid.At(uid.OAuthApp, now), WorkspaceID: workspaceID, Integration: integration, Auth: "oauth2", ClientID: "client of " + workspaceID, Fields: map[string]string{"team": "ä"},
			CreatedAt: now, CreatedBy: "usr_maker", UpdatedAt: now, UpdatedBy: "usr_maker",
		},
		Secret: []byte("sealed \x00\xff " + workspaceID),
	}
}

func (w *harness) putApp(ctx context.Context, app connection.SealedApp) (connection.App, bool, error) {
	return w.Connections.PutApp(ctx, app, newEntry(app.WorkspaceID, "oauth_app.created", app.ID), newEntry(app.WorkspaceID, "oauth_app.updated", app.ID))
}

func (w *harness) app(t *testing.T, app connection.SealedApp) connection.SealedApp {
	t.Helper()
	stored, isNew, err := w.putApp(t.Context(), app)
	returns(isNew, err)(t, "put a new app", true)
	equal(t, "stored", stored, app.App)
	return app
}

func testOAuthApps(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	empty(w.Connections.Apps(ctx, ws, fullPage))(t, "a workspace without one")
	made := w.app(t, newApp(ws, "slack"))
	other := w.app(t, newApp(ws, "github"))
	equal(t, "read", found(w.Connections.App(ctx, ws, made.ID))(t), made.App)
	equal(t, "listed", must(w.Connections.Apps(ctx, ws, fullPage))(t).Items, []connection.App{other.App, made.App})
	equal(t, "for its service", found(w.Connections.AppFor(ctx, ws, "slack", "oauth2"))(t), made)
	missing(w.Connections.AppFor(ctx, ws, "slack", "other"))(t, "for another way")
	missing(w.Connections.AppFor(ctx, ws, "notion", "oauth2"))(t, "for another service")

	again := newApp(ws, "slack")
	again.Fields = map[string]string{}
	again.ClientID, again.Secret, again.UpdatedAt, again.UpdatedBy = "new", []byte("another"), made.UpdatedAt.Add(time.Second), "usr_other"
	stored, isNew, err := w.putApp(ctx, again)
	returns(isNew, err)(t, "replace", false)
	want := made
	want.Fields = again.Fields
	want.ClientID, want.Secret, want.UpdatedAt, want.UpdatedBy = again.ClientID, again.Secret, again.UpdatedAt, again.UpdatedBy
	equal(t, "replaced", stored, want.App)
	equal(t, "for its service", found(w.Connections.AppFor(ctx, ws, "slack", "oauth2"))(t), want)
	equal(t, "audit entries", w.actions(t, ws, made.ID), []string{"oauth_app.updated", "oauth_app.created"})
	equal(t, "new apps of a race for a service", concurrently(t, 8, func(int) (bool, error) {
		_, isNew, err := w.putApp(ctx, newApp(ws, "notion"))
		return isNew, err
	}), 1)

	missing(w.Connections.App(ctx, stranger, made.ID))(t, "of another workspace")
	empty(w.Connections.Apps(ctx, stranger, fullPage))(t, "of another workspace")
	missing(w.Connections.AppFor(ctx, stranger, "slack", "oauth2"))(t, "one that is not shared")
	returns(w.Connections.DeleteApp(ctx, stranger, made.ID, newEntry(stranger, "attempt", "attempt")))(t, "delete that of another", false)
	equal(t, "audit entries", w.audited(t, stranger, "attempt"), 0)

	want.Shared = true
	_, _, err = w.putApp(ctx, want)
	returns(true, err)(t, "share", true)
	equal(t, "a shared one", found(w.Connections.AppFor(ctx, stranger, "slack", "oauth2"))(t), want)
	missing(w.Connections.App(ctx, stranger, made.ID))(t, "a shared one by its id")
	own := w.app(t, newApp(stranger, "slack"))
	equal(t, "one's own before a shared one", found(w.Connections.AppFor(ctx, stranger, "slack", "oauth2"))(t), own)
	equal(t, "the owner's", found(w.Connections.AppFor(ctx, ws, "slack", "oauth2"))(t), want)

	returns(w.Connections.DeleteApp(ctx, ws, made.ID, newEntry(ws, "oauth_app.deleted", made.ID)))(t, "delete", true)
	returns(w.Connections.DeleteApp(ctx, ws, made.ID, newEntry(ws, "oauth_app.deleted", made.ID)))(t, "again", false)
	missing(w.Connections.AppFor(ctx, ws, "slack", "oauth2"))(t, "the deleted one")
}

// testConsents checks that a consent is completed once, in time, by whoever was asked.
func testConsents(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t).ID, clock.Now()
	insert := func(hash string) connection.Consent {
		t.Helper()
		c := connection.Consent{StateHash: []byte(hash), WorkspaceID: ws, UserID: "usr_1", Pending: []byte("sealed \x00"), ExpiresAt: now.Add(10 * time.Minute)}
		if err := w.Connections.InsertConsent(ctx, c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	made := insert("one\x00\xff")
	missing(w.Connections.TakeConsent(ctx, []byte("other"), "usr_1", now))(t, "an unknown state")
	missing(w.Connections.TakeConsent(ctx, made.StateHash, "usr_2", now))(t, "of another person")
	missing(w.Connections.TakeConsent(ctx, made.StateHash, "usr_1", made.ExpiresAt))(t, "an expired one")
	equal(t, "taken", found(w.Connections.TakeConsent(ctx, made.StateHash, "usr_1", made.ExpiresAt.Add(-time.Microsecond)))(t), made)
	missing(w.Connections.TakeConsent(ctx, made.StateHash, "usr_1", now))(t, "again")
	made = insert("two")
	missing(w.Connections.Consent(ctx, made.StateHash, "usr_2", now))(t, "read that of another person")
	missing(w.Connections.Consent(ctx, made.StateHash, "usr_1", made.ExpiresAt))(t, "read an expired one")
	equal(t, "read", found(w.Connections.Consent(ctx, made.StateHash, "usr_1", now))(t), made)
	was := made.Pending
	equal(t, "updates in a race", concurrently(t, 16, func(i int) (bool, error) {
		next := made
		next.Pending = []byte{byte(i), 0}
		return w.Connections.UpdateConsent(ctx, next, was)
	}), 1)
	made = found(w.Connections.Consent(ctx, made.StateHash, "usr_1", now))(t)
	for what, change := range map[string]func(*connection.Consent){
		"an unknown one": func(c *connection.Consent) { c.StateHash = []byte("other") },
		"of a stranger":  func(c *connection.Consent) { c.WorkspaceID = "ws_other" },
		"of another":     func(c *connection.Consent) { c.UserID = "usr_2" },
	} {
		other := made
		change(&other)
		returns(w.Connections.UpdateConsent(ctx, other, made.Pending))(t, "update "+what, false)
	}
	equal(t, "winners of a race", concurrently(t, 16, func(int) (bool, error) {
		got, err := w.Connections.TakeConsent(ctx, made.StateHash, "usr_1", now)
		return got != nil, err
	}), 1)

	insert("three")
	for name, at := range map[string]time.Time{"before it expires": now, "after": now.Add(10 * time.Minute)} {
		_, err := w.Accounts.PurgeSessions(ctx, at, at, 100)
		returns(true, err)(t, "purge "+name, true)
	}
	equal(t, "consents after a purge", w.count(t, `SELECT count(*) FROM consents`), 0)
}

func listApps(t *testing.T, w *harness) pagedList {
	ws := w.workspace(t).ID
	return pagedList{
		kind: uid.OAuthApp,
		insert: func(ctx context.Context, id string) error {
			app := newApp(ws, "service "+id)
			app.ID = id
			_, isNew, err := w.putApp(ctx, app)
			return rejected(isNew, err)
		},
		remove: func(ctx context.Context, id string) error {
			return rejected(w.Connections.DeleteApp(ctx, ws, id, newEntry(ws, "oauth_app.deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Connections.Apps(ctx, ws, page)
			return idsOf(got, err, func(a connection.App) string { return a.ID })
		},
	}
}
