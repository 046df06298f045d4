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

func testInstallation(t *testing.T, w *world) {
	ctx := t.Context()
	if check := must(w.KeyCheck(ctx))(t); check != nil {
		t.Errorf("an empty store has the key check %q", check)
	}
	gone(w.FirstWorkspace(ctx))(t, "the first workspace of an empty store")
	in := newInstallation()
	answers(w.Install(ctx, in))(t, "the first installation", true)

	t.Run("writes all of it", func(t *testing.T) {
		want := in.Workspace
		want.First = true
		same(t, "first workspace", found(w.FirstWorkspace(ctx))(t), want)
		same(t, "workspace", found(w.Workspace(ctx, in.Workspace.ID))(t), want)
		same(t, "key check", must(w.KeyCheck(ctx))(t), in.KeyCheck)
		same(t, "data key", must(w.DataKey(ctx, in.Workspace.ID))(t), in.DataKey)
		key, workspace, err := w.KeyByLookup(ctx, in.AdminKey.Lookup)
		same(t, "admin key", found(key, err)(t), in.AdminKey)
		same(t, "workspace of the admin key", *workspace, want)
		same(t, "audit entries", w.audited(t, in.Workspace.ID, in.Workspace.ID), 1)
	})

	t.Run("happens once", func(t *testing.T) {
		again := newInstallation()
		answers(w.Install(ctx, again))(t, "the second installation", false)
		gone(w.Workspace(ctx, again.Workspace.ID))(t, "its workspace")
		gone(w.Key(ctx, again.Workspace.ID, again.AdminKey.ID))(t, "its key")
		same(t, "its audit entries", w.audited(t, again.Workspace.ID, again.Workspace.ID), 0)
		same(t, "key check", must(w.KeyCheck(ctx))(t), in.KeyCheck)
	})

	t.Run("happens once when many try", func(t *testing.T) {
		other := newWorld(t, w.open)
		installed := together(t, 8, func(int) (bool, error) { return other.Install(t.Context(), newInstallation()) })
		same(t, "installations", installed, 1)
		same(t, "workspaces", len(must(other.Workspaces(t.Context(), whole))(t).Items), 1)
	})
}

func testWorkspaces(t *testing.T, w *world) {
	ctx := t.Context()
	made := w.workspace(t)

	t.Run("read", func(t *testing.T) {
		same(t, "workspace", found(w.Workspace(ctx, made.ID))(t), made)
		gone(w.Workspace(ctx, "ws_none"))(t, "an unknown workspace")
		same(t, "data key", must(w.DataKey(ctx, made.ID))(t), []byte("data key of "+made.ID))
		fails(w.DataKey(ctx, "ws_none"))(t, "the data key of an unknown workspace")
		same(t, "audit entries", w.audited(t, made.ID, made.ID), 1)
	})

	t.Run("is written whole or not at all", func(t *testing.T) {
		next, key := newWorkspace(), newKey("")
		taken := must(w.Keys(ctx, made.ID, whole))(t).Items[0]
		key.WorkspaceID, key.Lookup = next.ID, taken.Lookup
		if err := w.InsertWorkspace(ctx, next, []byte("k"), key, "", newEntry(next.ID, "workspace.created", next.ID)); err == nil {
			t.Error("two keys have the same lookup")
		}
		gone(w.Workspace(ctx, next.ID))(t, "the workspace")
		same(t, "its audit entries", w.audited(t, next.ID, next.ID), 0)
	})

	t.Run("update", func(t *testing.T) {
		changed := made
		changed.Name, changed.Plan, changed.RequestsPerMinute = "Renamed", auth.Enterprise, 1234
		changed.UpdatedAt = made.UpdatedAt.Add(time.Microsecond)
		entry := newEntry(made.ID, "workspace.updated", "update")
		answers(w.UpdateWorkspace(ctx, changed, made.UpdatedAt.Add(-time.Microsecond), entry))(t, "a stale update", false)
		same(t, "workspace", found(w.Workspace(ctx, made.ID))(t), made)
		same(t, "audit entries of a stale update", w.audited(t, made.ID, "update"), 0)

		answers(w.UpdateWorkspace(ctx, changed, made.UpdatedAt, entry))(t, "an update", true)
		same(t, "workspace", found(w.Workspace(ctx, made.ID))(t), changed)
		same(t, "audit entries", w.audited(t, made.ID, "update"), 1)

		answers(w.UpdateWorkspace(ctx, changed, made.UpdatedAt, newEntry(made.ID, "workspace.updated", "update")))(t, "the same again", false)
		unknown := newWorkspace()
		answers(w.UpdateWorkspace(ctx, unknown, unknown.UpdatedAt, newEntry(made.ID, "x", "x")))(t, "of an unknown one", false)
	})

	t.Run("one of many updates wins", func(t *testing.T) {
		was := w.workspace(t)
		won := together(t, 32, func(int) (bool, error) {
			now := was
			now.UpdatedAt = was.UpdatedAt.Add(time.Second)
			return w.UpdateWorkspace(t.Context(), now, was.UpdatedAt, newEntry(was.ID, "workspace.updated", "race"))
		})
		same(t, "winners", won, 1)
		same(t, "audit entries", w.audited(t, was.ID, "race"), 1)
	})

	t.Run("list", func(t *testing.T) {
		w.workspace(t)
		all := must(w.Workspaces(ctx, whole))(t).Items
		first := must(w.Workspaces(ctx, paging.Request{Limit: 2}))(t)
		same(t, "first page", first.Items, all[:2])
		same(t, "next", first.Next, all[1].ID)
		rest := must(w.Workspaces(ctx, paging.Request{Limit: 2, After: first.Next}))(t)
		same(t, "last page", rest, paging.Page[auth.Workspace]{Items: all[2:]})
	})
}

func testKeys(t *testing.T, w *world) {
	ctx := t.Context()
	ws := w.workspace(t)
	expires := clock.Now().Add(-time.Hour)
	made := newKey(ws.ID)
	made.ExpiresAt, made.Scopes = &expires, []auth.Scope{auth.Admin}
	answers(w.InsertKey(ctx, made, plenty, newEntry(ws.ID, "api_key.created", made.ID)))(t, "insert", true)

	t.Run("read", func(t *testing.T) {
		same(t, "key", found(w.Key(ctx, ws.ID, made.ID))(t), made)
		same(t, "first of the list", must(w.Keys(ctx, ws.ID, whole))(t).Items[0], made)
		gone(w.Key(ctx, ws.ID, "key_none"))(t, "an unknown key")
		same(t, "audit entries", w.audited(t, ws.ID, made.ID), 1)
	})

	t.Run("lookup", func(t *testing.T) {
		key, workspace, err := w.KeyByLookup(ctx, made.Lookup)
		same(t, "an expired key, which is not the store's to refuse", found(key, err)(t), made)
		same(t, "its workspace", *workspace, ws)
		key, workspace, err = w.KeyByLookup(ctx, "nobody")
		gone(key, err)(t, "the key of an unknown lookup")
		gone(workspace, err)(t, "the workspace of an unknown lookup")
	})

	t.Run("a lookup belongs to one key", func(t *testing.T) {
		twin := newKey(ws.ID)
		twin.Lookup = made.Lookup
		fails(w.InsertKey(ctx, twin, plenty, newEntry(ws.ID, "api_key.created", twin.ID)))(t, "a second one")
		gone(w.Key(ctx, ws.ID, twin.ID))(t, "the second one")
		same(t, "audit entries of the second one", w.audited(t, ws.ID, twin.ID), 0)
		same(t, "counted", must(w.UsageCurrent(ctx, ws.ID))(t).APIKeys, len(must(w.Keys(ctx, ws.ID, whole))(t).Items))
	})

	t.Run("use", func(t *testing.T) {
		used, other := w.key(t, ws.ID), w.key(t, ws.ID)
		at := clock.Now()
		if err := w.TouchKeys(ctx, map[string]time.Time{used.ID: at, "key_none": at}); err != nil {
			t.Fatal(err)
		}
		if err := w.TouchKeys(ctx, nil); err != nil {
			t.Errorf("nothing to touch: %v", err)
		}
		used.LastUsedAt = &at
		same(t, "the key that was used", found(w.Key(ctx, ws.ID, used.ID))(t), used)
		same(t, "the other", found(w.Key(ctx, ws.ID, other.ID))(t), other)
	})

	t.Run("revocation", func(t *testing.T) {
		key := w.key(t, ws.ID)
		entry := newEntry(ws.ID, "api_key.revoked", "revocation")
		answers(w.RevokeKey(ctx, ws.ID, "key_none", entry.At, entry))(t, "of an unknown key", false)
		answers(w.RevokeKey(ctx, ws.ID, key.ID, entry.At, entry))(t, "of a key", true)
		answers(w.RevokeKey(ctx, ws.ID, key.ID, entry.At, newEntry(ws.ID, "api_key.revoked", "revocation")))(t, "once more", false)
		same(t, "audit entries", w.audited(t, ws.ID, "revocation"), 1)
		gone(w.Key(ctx, ws.ID, key.ID))(t, "the key")
		revoked, _, err := w.KeyByLookup(ctx, key.Lookup)
		gone(revoked, err)(t, "its lookup")
		for _, listed := range must(w.Keys(ctx, ws.ID, whole))(t).Items {
			if listed.ID == key.ID {
				t.Error("the key is still listed")
			}
		}
	})
}
