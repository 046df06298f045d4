package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

func newInstallation() auth.Installation {
	first := newWorkspace()
	return auth.Installation{
		Workspace: first, DataKey: []byte("data key of " + first.ID), KeyCheck: []byte("check of " + first.ID),
		AdminKey: newKey(first.ID), Entry: newEntry(first.ID, "workspace.created", first.ID),
	}
}

func testInstallation(t *testing.T, w *harness) {
	ctx := t.Context()
	if check := must(w.Installation.KeyCheck(ctx))(t); check != nil {
		t.Errorf("an empty store has the key check %q", check)
	}
	missing(w.Workspaces.FirstWorkspace(ctx))(t, "the first workspace of an empty store")
	in := newInstallation()
	returns(w.Workspaces.Install(ctx, in))(t, "the first installation", true)
	returns(w.Workspaces.HasSeveralWorkspaces(ctx))(t, "whether there are several workspaces after the installation", false)

	t.Run("writes everything", func(t *testing.T) {
		want := in.Workspace
		want.First = true
		equal(t, "first workspace", found(w.Workspaces.FirstWorkspace(ctx))(t), want)
		equal(t, "workspace", found(w.Workspaces.Workspace(ctx, in.Workspace.ID))(t), want)
		equal(t, "key check", must(w.Installation.KeyCheck(ctx))(t), in.KeyCheck)
		equal(t, "data key", must(w.Workspaces.DataKey(ctx, in.Workspace.ID))(t), in.DataKey)
		key, workspace, err := w.Workspaces.KeyByLookup(ctx, in.AdminKey.Lookup)
		equal(t, "admin key", found(key, err)(t), in.AdminKey)
		equal(t, "workspace of the admin key", *workspace, want)
		equal(t, "audit entries", w.audited(t, in.Workspace.ID, in.Workspace.ID), 1)
	})

	t.Run("is done once", func(t *testing.T) {
		again := newInstallation()
		returns(w.Workspaces.Install(ctx, again))(t, "the second installation", false)
		missing(w.Workspaces.Workspace(ctx, again.Workspace.ID))(t, "its workspace")
		missing(w.Workspaces.Key(ctx, again.Workspace.ID, again.AdminKey.ID))(t, "its key")
		equal(t, "its audit entries", w.audited(t, again.Workspace.ID, again.Workspace.ID), 0)
		equal(t, "key check", must(w.Installation.KeyCheck(ctx))(t), in.KeyCheck)
	})

	t.Run("several workspaces", func(t *testing.T) {
		w.workspace(t)
		returns(w.Workspaces.HasSeveralWorkspaces(ctx))(t, "with a second workspace", true)
		w.workspace(t)
		returns(w.Workspaces.HasSeveralWorkspaces(ctx))(t, "with a third workspace", true)
	})

	t.Run("is done once by concurrent callers", func(t *testing.T) {
		other := newHarness(t, w.open)
		installed := concurrently(t, 8, func(int) (bool, error) { return other.Workspaces.Install(t.Context(), newInstallation()) })
		equal(t, "installations", installed, 1)
		equal(t, "workspaces", len(must(other.Workspaces.Workspaces(t.Context(), fullPage))(t).Items), 1)
	})
}

func testWorkspaces(t *testing.T, w *harness) {
	ctx := t.Context()
	made := w.workspace(t)

	t.Run("read", func(t *testing.T) {
		equal(t, "workspace", found(w.Workspaces.Workspace(ctx, made.ID))(t), made)
		missing(w.Workspaces.Workspace(ctx, "ws_none"))(t, "an unknown workspace")
		equal(t, "data key", must(w.Workspaces.DataKey(ctx, made.ID))(t), []byte("data key of "+made.ID))
		fails(w.Workspaces.DataKey(ctx, "ws_none"))(t, "the data key of an unknown workspace")
		equal(t, "audit entries", w.audited(t, made.ID, made.ID), 1)
	})

	t.Run("is atomic", func(t *testing.T) {
		next, key := newWorkspace(), newKey("")
		taken := must(w.Workspaces.Keys(ctx, made.ID, fullPage))(t).Items[0]
		key.WorkspaceID, key.Lookup = next.ID, taken.Lookup
		if err := w.Workspaces.InsertWorkspace(ctx, next, []byte("k"), key, "", newEntry(next.ID, "workspace.created", next.ID)); err == nil {
			t.Error("two keys have the same lookup")
		}
		missing(w.Workspaces.Workspace(ctx, next.ID))(t, "the workspace")
		equal(t, "its audit entries", w.audited(t, next.ID, next.ID), 0)
	})

	t.Run("update", func(t *testing.T) {
		changed := made
		changed.Name, changed.Plan, changed.RequestsPerMinute = "Renamed", auth.Enterprise, 1234
		changed.UpdatedAt = made.UpdatedAt.Add(time.Microsecond)
		entry := newEntry(made.ID, "workspace.updated", "update")
		returns(w.Workspaces.UpdateWorkspace(ctx, changed, made.UpdatedAt.Add(-time.Microsecond), entry))(t, "a stale update", false)
		equal(t, "workspace", found(w.Workspaces.Workspace(ctx, made.ID))(t), made)
		equal(t, "audit entries of a stale update", w.audited(t, made.ID, "update"), 0)

		returns(w.Workspaces.UpdateWorkspace(ctx, changed, made.UpdatedAt, entry))(t, "an update", true)
		equal(t, "workspace", found(w.Workspaces.Workspace(ctx, made.ID))(t), changed)
		equal(t, "audit entries", w.audited(t, made.ID, "update"), 1)

		returns(w.Workspaces.UpdateWorkspace(ctx, changed, made.UpdatedAt, newEntry(made.ID, "workspace.updated", "update")))(t, "the same again", false)
		unknown := newWorkspace()
		returns(w.Workspaces.UpdateWorkspace(ctx, unknown, unknown.UpdatedAt, newEntry(made.ID, "x", "x")))(t, "of an unknown one", false)
	})

	t.Run("one of many concurrent updates wins", func(t *testing.T) {
		was := w.workspace(t)
		won := concurrently(t, 32, func(int) (bool, error) {
			now := was
			now.UpdatedAt = was.UpdatedAt.Add(time.Second)
			return w.Workspaces.UpdateWorkspace(t.Context(), now, was.UpdatedAt, newEntry(was.ID, "workspace.updated", "race"))
		})
		equal(t, "winners", won, 1)
		equal(t, "audit entries", w.audited(t, was.ID, "race"), 1)
	})

	t.Run("list", func(t *testing.T) {
		w.workspace(t)
		all := must(w.Workspaces.Workspaces(ctx, fullPage))(t).Items
		first := must(w.Workspaces.Workspaces(ctx, paging.Request{Limit: 2}))(t)
		equal(t, "first page", first.Items, all[:2])
		equal(t, "next", first.Next, all[1].ID)
		rest := must(w.Workspaces.Workspaces(ctx, paging.Request{Limit: 2, After: first.Next}))(t)
		equal(t, "last page", rest, paging.Page[auth.Workspace]{Items: all[2:]})
	})
}

func testKeys(t *testing.T, w *harness) {
	ctx := t.Context()
	ws := w.workspace(t)
	expires := clock.Now().Add(-time.Hour)
	made := newKey(ws.ID)
	made.ExpiresAt, made.Scopes = &expires, []auth.Scope{auth.Admin}
	returns(w.Workspaces.InsertKey(ctx, made, noLimit, newEntry(ws.ID, "api_key.created", made.ID)))(t, "insert", true)

	t.Run("a probe leaves nothing", func(t *testing.T) {
		if err := w.Installation.Probe(ctx); err != nil {
			t.Fatal(err)
		}
		equal(t, "probes", w.count(t, `SELECT count(*) FROM tickets WHERE kind = 'probe'`), 0)
	})
	t.Run("read", func(t *testing.T) {
		equal(t, "key", found(w.Workspaces.Key(ctx, ws.ID, made.ID))(t), made)
		equal(t, "first of the list", must(w.Workspaces.Keys(ctx, ws.ID, fullPage))(t).Items[0], made)
		missing(w.Workspaces.Key(ctx, ws.ID, "key_none"))(t, "an unknown key")
		equal(t, "audit entries", w.audited(t, ws.ID, made.ID), 1)
	})

	t.Run("lookup", func(t *testing.T) {
		key, workspace, err := w.Workspaces.KeyByLookup(ctx, made.Lookup)
		equal(t, "an expired key, which the store does not reject", found(key, err)(t), made)
		equal(t, "its workspace", *workspace, ws)
		key, workspace, err = w.Workspaces.KeyByLookup(ctx, "nobody")
		missing(key, err)(t, "the key of an unknown lookup")
		missing(workspace, err)(t, "the workspace of an unknown lookup")
	})

	t.Run("a lookup belongs to one key", func(t *testing.T) {
		twin := newKey(ws.ID)
		twin.Lookup = made.Lookup
		fails(w.Workspaces.InsertKey(ctx, twin, noLimit, newEntry(ws.ID, "api_key.created", twin.ID)))(t, "a second one")
		missing(w.Workspaces.Key(ctx, ws.ID, twin.ID))(t, "the second one")
		equal(t, "audit entries of the second one", w.audited(t, ws.ID, twin.ID), 0)
		equal(t, "counted", must(w.Usage.UsageCurrent(ctx, ws.ID))(t).APIKeys, len(must(w.Workspaces.Keys(ctx, ws.ID, fullPage))(t).Items))
	})

	t.Run("use", func(t *testing.T) {
		used, other := w.key(t, ws.ID), w.key(t, ws.ID)
		at := clock.Now()
		if err := w.Workspaces.TouchKeys(ctx, map[string]time.Time{used.ID: at, "key_none": at}); err != nil {
			t.Fatal(err)
		}
		if err := w.Workspaces.TouchKeys(ctx, nil); err != nil {
			t.Errorf("nothing to touch: %v", err)
		}
		used.LastUsedAt = &at
		equal(t, "the key that was used", found(w.Workspaces.Key(ctx, ws.ID, used.ID))(t), used)
		equal(t, "the other", found(w.Workspaces.Key(ctx, ws.ID, other.ID))(t), other)
	})

	t.Run("revocation", func(t *testing.T) {
		key := w.key(t, ws.ID)
		entry := newEntry(ws.ID, "api_key.revoked", "revocation")
		returns(w.Workspaces.RevokeKey(ctx, ws.ID, "key_none", entry.At, entry))(t, "of an unknown key", false)
		returns(w.Workspaces.RevokeKey(ctx, ws.ID, key.ID, entry.At, entry))(t, "of a key", true)
		returns(w.Workspaces.RevokeKey(ctx, ws.ID, key.ID, entry.At, newEntry(ws.ID, "api_key.revoked", "revocation")))(t, "again", false)
		equal(t, "audit entries", w.audited(t, ws.ID, "revocation"), 1)
		missing(w.Workspaces.Key(ctx, ws.ID, key.ID))(t, "the key")
		revoked, _, err := w.Workspaces.KeyByLookup(ctx, key.Lookup)
		missing(revoked, err)(t, "its lookup")
		for _, listed := range must(w.Workspaces.Keys(ctx, ws.ID, fullPage))(t).Items {
			if listed.ID == key.ID {
				t.Error("the key is still listed")
			}
		}
	})
}
