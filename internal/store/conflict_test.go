package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// conflictingDriver is a database in which another writer changes something while
// a transaction runs, so that it has to run again.
type conflictingDriver struct {
	*sqlite.DB
	meanwhile func()
}

func (d *conflictingDriver) Write(ctx context.Context, fn func(database.Conn) error) error {
	meanwhile := d.meanwhile
	if meanwhile == nil {
		return d.DB.Write(ctx, fn)
	}
	d.meanwhile = nil
	conflict := errors.New("conflict")
	err := d.DB.Write(ctx, func(c database.Conn) error {
		if err := fn(c); err != nil {
			return err
		}
		return conflict
	})
	if !errors.Is(err, conflict) {
		return err
	}
	meanwhile()
	return d.DB.Write(ctx, fn)
}

func open(t *testing.T) *conflictingDriver {
	t.Helper()
	return &conflictingDriver{DB: sqlitetest.Open(t)}
}

func newWebhook(workspaceID, workflowID string) webhook.Webhook {
	now := clock.Now()
	return webhook.Webhook{
		ID: uid.At(uid.Webhook, now), WorkspaceID: workspaceID, WorkflowID: workflowID, URL: "https://example.com", Enabled: true,
		Events: []event.Type{event.RunStarted}, SealedSecret: []byte("s"), SecretHint: "abcd", CreatedAt: now, UpdatedAt: now,
	}
}

// TestResultIsThatOfTheLastAttempt checks that a transaction returns what its
// last attempt found, not an earlier one.
func TestResultIsThatOfTheLastAttempt(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), open(t)
	s := store.New(db, store.Notify{})
	actor := auth.Actor{Workspace: auth.Workspace{ID: uid.New(uid.Workspace), Plan: auth.Free}, Type: audit.ActorSystem}
	ws := actor.Workspace.ID
	entry := func() audit.Entry { return actor.AuditEntry("deed", "thing", "id", nil) }
	key := auth.Key{ID: uid.New(uid.Key), WorkspaceID: ws, Lookup: "lookup", Hash: []byte("h"), Scopes: []auth.Scope{auth.Admin}}
	if err := s.Workspaces.InsertWorkspace(ctx, actor.Workspace, []byte("k"), key, "", entry()); err != nil {
		t.Fatal(err)
	}
	expect := func(what string, got webhook.Outcome, err error, want webhook.Outcome) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: answered %v, %v; want %v", what, got, err, want)
		}
	}

	first, second := newWebhook(ws, ""), newWebhook(ws, "")
	got, err := s.Webhooks.InsertWebhook(ctx, first, 1, entry())
	expect("the first webhook", got, err, webhook.Done)
	db.meanwhile = func() {
		if ok, err := s.Webhooks.DeleteWebhook(ctx, ws, first.ID, clock.Now(), entry()); err != nil || !ok {
			t.Error(ok, err)
		}
	}
	got, err = s.Webhooks.InsertWebhook(ctx, second, 1, entry())
	expect("an insert for which room was made meanwhile", got, err, webhook.Done)

	made := workflow.Workflow{ID: uid.New(uid.Workflow), WorkspaceID: ws, State: workflow.Draft, Version: 1, Revision: 1}
	makeIt := func() {
		if ok, err := s.Workflows.InsertWorkflow(ctx, made, workflow.Version{WorkflowID: made.ID, Number: 1}, 10, entry()); err != nil || !ok {
			t.Error(ok, err)
		}
	}
	turned := second
	turned.WorkflowID, turned.UpdatedAt = made.ID, second.UpdatedAt.Add(time.Second)
	db.meanwhile = makeIt
	got, err = s.Webhooks.UpdateWebhook(ctx, turned, second.UpdatedAt, entry())
	expect("an update to a workflow that was made meanwhile", got, err, webhook.Done)
	if stored, err := s.Webhooks.Webhook(ctx, ws, second.ID); err != nil || stored.WorkflowID != made.ID {
		t.Errorf("stored %+v, %v", stored, err)
	}
}
