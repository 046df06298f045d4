package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/ownintegration"
)

func newManifest(workspaceID, id string) ownintegration.Manifest {
	now := clock.Now()
	return ownintegration.Manifest{
		WorkspaceID: workspaceID, ID: id, Text: "# ä\nid: " + id + "\n", Digest: "digest of " + id,
		CreatedAt: now, CreatedBy: "usr_maker", UpdatedAt: now, UpdatedBy: "usr_maker",
	}
}

func (w *harness) insertManifest(ctx context.Context, m ownintegration.Manifest) (ownintegration.Outcome, error) {
	return w.OwnIntegrations.InsertManifest(ctx, m, newEntry(m.WorkspaceID, "integration.created", m.ID))
}

func (w *harness) replaceManifest(ctx context.Context, m ownintegration.Manifest, was, problem string) (ownintegration.Outcome, error) {
	return w.OwnIntegrations.ReplaceManifest(ctx, m, was, problem, newEntry(m.WorkspaceID, "integration.updated", m.ID))
}

func testOwnIntegrations(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	made, second := newManifest(ws, "x_acme"), newManifest(ws, "x_beta")
	returns(w.insertManifest(ctx, second))(t, "insert", ownintegration.Done)
	returns(w.insertManifest(ctx, made))(t, "insert", ownintegration.Done)
	returns(w.insertManifest(ctx, made))(t, "insert again", ownintegration.Exists)
	equal(t, "read", found(w.OwnIntegrations.Manifest(ctx, ws, "x_acme"))(t), made)
	equal(t, "head", found(w.OwnIntegrations.ManifestHead(ctx, ws, "x_acme"))(t), ownintegration.Head{ID: "x_acme", Digest: made.Digest})
	equal(t, "heads", must(w.OwnIntegrations.ManifestHeads(ctx, ws))(t), []ownintegration.Head{{ID: "x_acme", Digest: made.Digest}, {ID: "x_beta", Digest: second.Digest}})
	missing(w.OwnIntegrations.Manifest(ctx, stranger, "x_acme"))(t, "of another workspace")
	missing(w.OwnIntegrations.ManifestHead(ctx, stranger, "x_acme"))(t, "of another workspace")

	changed := made
	changed.Text, changed.Digest, changed.UpdatedAt, changed.UpdatedBy = "changed", "another", made.UpdatedAt.Add(time.Second), "usr_other"
	returns(w.replaceManifest(ctx, changed, "not the digest", ""))(t, "replace what has changed", ownintegration.Stale)
	returns(w.replaceManifest(ctx, changed, made.Digest, ""))(t, "replace", ownintegration.Done)
	equal(t, "replaced", found(w.OwnIntegrations.Manifest(ctx, ws, "x_acme"))(t), changed)
	equal(t, "audit entries", w.actions(t, ws, "x_acme"), []string{"integration.updated", "integration.created"})
	equal(t, "new integrations of a race for an id", concurrently(t, 8, func(int) (bool, error) {
		outcome, err := w.insertManifest(ctx, newManifest(ws, "x_race"))
		return outcome == ownintegration.Done, err
	}), 1)

	t.Run("connections", func(t *testing.T) { testConnectionsOfOwn(t, w, changed) })
	t.Run("limits", func(t *testing.T) { testManifestLimits(t, w) })
}

func testConnectionsOfOwn(t *testing.T, w *harness, m ownintegration.Manifest) {
	ctx := t.Context()
	connect := func(name, integration string) (connection.Sealed, connection.Outcome) {
		c := newConnection(m.WorkspaceID, name)
		c.Integration = integration
		return c, must(w.insertConnection(ctx, c, 10))(t)
	}
	if _, outcome := connect("none", "x_none"); outcome != connection.NoIntegration {
		t.Errorf("a connection of an integration that does not exist: %v", outcome)
	}
	c, outcome := connect("acme", m.ID)
	equal(t, "a connection of an own integration", outcome, connection.Created)
	other, _ := connect("other", "slack")
	deleteIt := func(m ownintegration.Manifest) (ownintegration.Outcome, string) {
		outcome, used, err := w.OwnIntegrations.DeleteManifest(ctx, m, newEntry(m.WorkspaceID, "integration.deleted", m.ID))
		if err != nil {
			t.Fatal(err)
		}
		return outcome, used
	}
	if outcome, used := deleteIt(m); outcome != ownintegration.InUse || used != "acme" {
		t.Errorf("delete an integration with a connection: %v %q", outcome, used)
	}
	next := m
	next.Digest = "used in another way"
	returns(w.replaceManifest(ctx, next, m.Digest, "was changed"))(t, "replace", ownintegration.Done)
	broken := found(w.Connections.Connection(ctx, m.WorkspaceID, c.ID))(t)
	if broken.Status != connection.NeedsReconnect || broken.Problem != "was changed" {
		t.Errorf("the connection is %s: %s", broken.Status, broken.Problem)
	}
	equal(t, "the connection of another integration", found(w.Connections.Connection(ctx, m.WorkspaceID, other.ID))(t).Status, other.Status)

	w.app(t, newApp(m.WorkspaceID, m.ID))
	if _, _, err := w.Connections.DeleteConnection(ctx, m.WorkspaceID, c.ID, newEntry(m.WorkspaceID, "connection.deleted", c.ID)); err != nil {
		t.Fatal(err)
	}
	if outcome, _ := deleteIt(m); outcome != ownintegration.Stale {
		t.Errorf("delete an integration that has changed: %v", outcome)
	}
	if outcome, _ := deleteIt(next); outcome != ownintegration.Done {
		t.Errorf("delete an integration: %v", outcome)
	}
	missing(w.OwnIntegrations.Manifest(ctx, m.WorkspaceID, m.ID))(t, "deleted")
	missing(w.Connections.AppFor(ctx, m.WorkspaceID, m.ID, "oauth2"))(t, "its OAuth app")
}

func testManifestLimits(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	for n := range ownintegration.MaxManifests {
		returns(w.insertManifest(ctx, newManifest(ws, fmt.Sprintf("x_%03d", n))))(t, "insert", ownintegration.Done)
	}
	returns(w.insertManifest(ctx, newManifest(ws, "x_more")))(t, "insert too many", ownintegration.TooMany)
	large := newManifest(ws, "x_000")
	large.Text = strings.Repeat("x", ownintegration.MaxBytes)
	returns(w.replaceManifest(ctx, large, large.Digest, ""))(t, "make one too large", ownintegration.TooLarge)
}
