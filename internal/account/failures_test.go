package account_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/store"
)

// failedEntries returns the failed sign-ins in the audit log of a workspace.
func (h *env) failedEntries(workspaceID string) []audit.Entry {
	h.t.Helper()
	page, err := h.DB.Audit.AuditEntries(h.t.Context(), workspaceID, audit.Filter{Action: "session.failed"}, whole)
	if err != nil {
		h.t.Fatal(err)
	}
	return page.Items
}

// A failed sign-in of a user is recorded in all of their workspaces.
func TestFailedSignInsAreAudited(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	first, second, foreign := h.Workspace(t, auth.Free), h.Workspace(t, auth.Free), h.Workspace(t, auth.Free)
	ada := h.member(first, account.Viewer, "ada@example.com")
	h.member(second, account.Owner, "ada@example.com")
	h.member(foreign, account.Owner, "grace@example.com")
	client := account.ClientInfo{Address: "203.0.113.7", RequestID: "req_1"}
	for _, email := range []string{"ada@example.com", "nobody@example.com"} {
		_, _, err := h.people.SignIn(t.Context(), email, "wrong", client)
		faulttest.Want(t, err, fault.InvalidCredentials)
	}
	_, _, err := h.people.Accept(t.Context(), h.invite(foreign, "ada@example.com", account.Viewer), "", "wrong", client)
	faulttest.Want(t, err, fault.InvalidCredentials)
	h.signIn("ada@example.com")
	if got := h.failedEntries(first.Workspace.ID); len(got) != 0 {
		t.Errorf("%d entries were written before the response", len(got))
	}
	for range 2 {
		if err := h.people.FlushFailures(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, actor := range []auth.Actor{first, second} {
		entries := h.failedEntries(actor.Workspace.ID)
		if len(entries) != 2 {
			t.Fatalf("there are %d entries, want 2", len(entries))
		}
		want := audit.Entry{
			ID: entries[0].ID, WorkspaceID: actor.Workspace.ID, At: entries[0].At, ActorType: audit.ActorSystem, Action: "session.failed",
			TargetType: "user", TargetID: ada.User.ID, TargetName: ada.User.Name, RequestID: "req_1", Details: map[string]any{"address": "203.0.113.7"},
		}
		if diff := cmp.Diff(want, entries[0]); diff != "" {
			t.Errorf("the entry (-want +got):\n%s", diff)
		}
	}
	if got := h.failedEntries(foreign.Workspace.ID); len(got) != 0 {
		t.Errorf("a workspace of other users has %d entries", len(got))
	}
}

// failingStore fails to write audit entries.
type failingStore struct {
	store.Accounts
	fail bool
}

func (f *failingStore) RecordAudit(ctx context.Context, entries ...audit.Entry) error {
	if f.fail {
		return errors.New("the disk is full")
	}
	return f.Accounts.RecordAudit(ctx, entries...)
}

// What could not be written is written later.
func TestFailedSignInsAreRetried(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Viewer, "ada@example.com")
	broken := &failingStore{Accounts: h.Accounts, fail: true}
	people := account.NewService(broken, account.WithCost(cheap))
	for range 12 {
		_, _, err := people.SignIn(t.Context(), "ada@example.com", "wrong", account.ClientInfo{})
		faulttest.Want(t, err, fault.InvalidCredentials)
	}
	if err := people.FlushFailures(t.Context()); err == nil {
		t.Error("the error is lost")
	}
	broken.fail = false
	if err := people.FlushFailures(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries := h.failedEntries(h.Admin.Workspace.ID)
	if len(entries) != 10 {
		t.Fatalf("%d failures are recorded, want 10", len(entries))
	}
	if entries[0].Details["omitted_until"] == nil || entries[1].Details["omitted_until"] != nil {
		t.Errorf("the last entries are %+v", entries[:2])
	}
}
