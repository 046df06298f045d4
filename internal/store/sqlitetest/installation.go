package sqlitetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/vault"
)

// Installation is a new installation: stores with only the first workspace and
// its admin key.
type Installation struct {
	*store.DB
	Vault *vault.Vault
	Auth  *auth.Service
	// Key is the value of the first admin key, and Admin the actor behind it.
	Key   string
	Admin auth.Actor
}

// New creates an installation for the duration of the test. It may be used inside
// a synctest bubble.
func New(t testing.TB, notify store.Notify) *Installation {
	t.Helper()
	in := &Installation{DB: store.New(Open(t), notify)}
	var err error
	if in.Vault, err = vault.New(make([]byte, 32), in.Workspaces); err != nil {
		t.Fatal(err)
	}
	in.Auth = auth.NewService(in.Workspaces, in.Vault)
	if in.Key, err = in.Auth.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	in.Admin = in.Actor(t, in.Key)
	return in
}

// Actor returns the actor behind the value of an API key.
func (in *Installation) Actor(t testing.TB, key string) auth.Actor {
	t.Helper()
	actor, err := in.Auth.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return actor
}

// Workspace creates another workspace on a plan and returns its first admin. An
// enterprise workspace gets the highest request rate.
func (in *Installation) Workspace(t testing.TB, plan auth.Plan) auth.Actor {
	t.Helper()
	wanted := auth.NewWorkspace{Name: "Test", Plan: plan}
	if plan == auth.Enterprise {
		most := auth.MaxRequestsPerMinute
		wanted.RequestsPerMinute = &most
	}
	_, key, err := in.Auth.CreateWorkspace(t.Context(), in.Admin, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return in.Actor(t, key)
}

// Audited returns the audit log of a workspace, newest entry first.
func (in *Installation) Audited(t testing.TB, workspaceID string) []audit.Entry {
	t.Helper()
	page, err := in.Audit.AuditEntries(t.Context(), workspaceID, audit.Filter{}, paging.Request{Limit: paging.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// Actions returns the actions on a target in the audit log of a workspace, newest
// first.
func (in *Installation) Actions(t testing.TB, workspaceID, target string) []string {
	t.Helper()
	out := []string{}
	for _, entry := range in.Audited(t, workspaceID) {
		if entry.TargetID == target {
			out = append(out, entry.Action)
		}
	}
	return out
}
