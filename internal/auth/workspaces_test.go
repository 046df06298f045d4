package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/uid"
)

// The first start creates a workspace and an admin key. Later starts create
// nothing.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	first := w.Admin.Workspace
	if first.Plan != auth.Enterprise || first.RequestsPerMinute != 60_000 || !first.First || first.Name != "Default" {
		t.Errorf("the first workspace is %+v", first)
	}
	if !w.Admin.IsOperator() {
		t.Errorf("the first key acts as %+v", w.Admin)
	}
	if key, err := w.Auth.GetKey(t.Context(), w.Admin, w.Admin.ID); err != nil || key.CreatedBy != "" || key.Name != "First admin key" {
		t.Errorf("the first key is %+v, %v", key, err)
	}
	if value, err := w.another().Auth.Bootstrap(t.Context()); err != nil || value != "" {
		t.Errorf("the second start created the key %q, %v", value, err)
	}
	if page, err := w.Auth.ListWorkspaces(t.Context(), w.Admin, whole); err != nil || len(page.Items) != 1 {
		t.Errorf("workspaces are %+v, %v", page.Items, err)
	}
}

func TestCreateWorkspace(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	for _, tc := range []struct {
		in   auth.NewWorkspace
		plan auth.Plan
		rate int
	}{
		{auth.NewWorkspace{Name: " Marketing "}, auth.Free, 60},
		{auth.NewWorkspace{Name: "Marketing", Plan: auth.Free}, auth.Free, 60},
		{auth.NewWorkspace{Name: "Marketing", Plan: auth.Pro}, auth.Pro, 600},
		{auth.NewWorkspace{Name: "Marketing", Plan: auth.Enterprise, RequestsPerMinute: new(1)}, auth.Enterprise, 1},
		{auth.NewWorkspace{Name: "Marketing", Plan: auth.Enterprise, RequestsPerMinute: new(1_000_000)}, auth.Enterprise, 1_000_000},
	} {
		made, value, err := w.Auth.CreateWorkspace(t.Context(), w.Admin, tc.in)
		if err != nil {
			t.Errorf("%+v: %v", tc.in, err)
			continue
		}
		if made.Name != "Marketing" || made.Plan != tc.plan || made.RequestsPerMinute != tc.rate || made.First {
			t.Errorf("%+v: %+v", tc.in, made)
		}
		admin := w.wantWorks(value)
		if diff := cmp.Diff(auth.Actor{Workspace: made, Type: audit.ActorKey, ID: admin.ID, Label: "First admin key", Scopes: []auth.Scope{auth.Admin}}, admin); diff != "" {
			t.Errorf("the first admin (-want +got):\n%s", diff)
		}
		if got := fmt.Sprint(w.Actions(w.t, w.Admin.Workspace.ID, made.ID)); got != "[workspace.created]" {
			t.Errorf("the audit log of the operator has %s", got)
		}
	}
}

func TestCreateWorkspaceRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	for _, tc := range []struct {
		in     auth.NewWorkspace
		points string
	}{
		{auth.NewWorkspace{}, "/name"},
		{auth.NewWorkspace{Name: strings.Repeat("x", 101)}, "/name"},
		{auth.NewWorkspace{Name: "a\nb"}, "/name"},
		{auth.NewWorkspace{Name: "n", Plan: "gold"}, "/plan"},
		{auth.NewWorkspace{Name: "n", Plan: "Pro"}, "/plan"},
		{auth.NewWorkspace{Name: "n", Plan: auth.Enterprise}, "/requests_per_minute"},
		{auth.NewWorkspace{Name: "n", Plan: auth.Enterprise, RequestsPerMinute: new(0)}, "/requests_per_minute"},
		{auth.NewWorkspace{Name: "n", Plan: auth.Enterprise, RequestsPerMinute: new(-1)}, "/requests_per_minute"},
		{auth.NewWorkspace{Name: "n", Plan: auth.Enterprise, RequestsPerMinute: new(1_000_001)}, "/requests_per_minute"},
		{auth.NewWorkspace{Name: "n", Plan: auth.Pro, RequestsPerMinute: new(600)}, "/requests_per_minute"},
		{auth.NewWorkspace{Name: "n", RequestsPerMinute: new(60)}, "/requests_per_minute"},
	} {
		_, value, err := w.Auth.CreateWorkspace(t.Context(), w.Admin, tc.in)
		faulttest.Want(t, err, fault.InvalidRequest, tc.points)
		if value != "" {
			t.Errorf("%+v: there is a key", tc.in)
		}
	}
	if page, err := w.Auth.ListWorkspaces(t.Context(), w.Admin, whole); err != nil || len(page.Items) != 1 {
		t.Errorf("workspaces are %+v, %v", page.Items, err)
	}
}

// An operator can manage all workspaces. Others can only read their own.
func TestOperators(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	other := w.Workspace(t, auth.Free)
	_, value := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"read", "write", "execute"}})
	colleague := w.wantWorks(value) // in the first workspace, but not an admin
	first, second := w.Admin.Workspace.ID, other.Workspace.ID
	for _, tc := range []struct {
		actor          auth.Actor
		own, stranger  string
		listed         string
		code, ownPatch fault.Code
	}{
		{other, second, first, fmt.Sprint([]string{second}), fault.WorkspaceNotFound, fault.InsufficientScope},
		{colleague, first, second, fmt.Sprint([]string{first}), fault.WorkspaceNotFound, fault.InsufficientScope},
		{w.Admin, first, second, fmt.Sprint([]string{second, first}), "", ""},
	} {
		_, err := w.Auth.GetWorkspace(t.Context(), tc.actor, tc.own)
		wantCode(t, err, "")
		_, err = w.Auth.GetWorkspace(t.Context(), tc.actor, tc.stranger)
		wantCode(t, err, tc.code)
		_, err = w.Auth.UpdateWorkspace(t.Context(), tc.actor, tc.own, auth.WorkspacePatch{Name: new("New")})
		wantCode(t, err, tc.ownPatch)
		_, err = w.Auth.UpdateWorkspace(t.Context(), tc.actor, tc.stranger, auth.WorkspacePatch{Name: new("New")})
		wantCode(t, err, tc.code)
		page, err := w.Auth.ListWorkspaces(t.Context(), tc.actor, whole)
		var ids []string
		for _, listed := range page.Items {
			ids = append(ids, listed.ID)
		}
		if fmt.Sprint(ids) != tc.listed || err != nil {
			t.Errorf("%s lists %v, %v", tc.actor.ID, ids, err)
		}
	}
	for _, actor := range []auth.Actor{other, colleague} {
		_, _, err := w.Auth.CreateWorkspace(t.Context(), actor, auth.NewWorkspace{Name: "n"})
		faulttest.Want(t, err, fault.InsufficientScope)
	}
	for _, id := range []string{uid.New(uid.Workspace), "ws_", "nonsense", ""} {
		_, err := w.Auth.GetWorkspace(t.Context(), w.Admin, id)
		faulttest.Want(t, err, fault.WorkspaceNotFound)
		_, err = w.Auth.UpdateWorkspace(t.Context(), w.Admin, id, auth.WorkspacePatch{})
		faulttest.Want(t, err, fault.WorkspaceNotFound)
	}
}

// wantCode fails the test unless the error has the code; "" means no error.
func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if code != "" {
		faulttest.Want(t, err, code)
	} else if err != nil {
		t.Error(err)
	}
}

func TestUpdateWorkspace(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	free, pro := auth.NewWorkspace{Name: "n"}, auth.NewWorkspace{Name: "n", Plan: auth.Pro}
	enterprise := auth.NewWorkspace{Name: "n", Plan: auth.Enterprise, RequestsPerMinute: new(7)}
	for _, tc := range []struct {
		from  auth.NewWorkspace
		patch auth.WorkspacePatch
		want  string // name, plan and rate, or the pointer of the error
	}{
		{free, auth.WorkspacePatch{Plan: new(auth.Pro)}, "n pro 600"},
		{pro, auth.WorkspacePatch{Plan: new(auth.Free)}, "n free 60"},
		{free, auth.WorkspacePatch{Plan: new(auth.Enterprise), RequestsPerMinute: new(5)}, "n enterprise 5"},
		{enterprise, auth.WorkspacePatch{RequestsPerMinute: new(8)}, "n enterprise 8"},
		{enterprise, auth.WorkspacePatch{Plan: new(auth.Enterprise)}, "n enterprise 7"},
		{enterprise, auth.WorkspacePatch{Plan: new(auth.Pro)}, "n pro 600"},
		{pro, auth.WorkspacePatch{Name: new(" New ")}, "New pro 600"},
		{enterprise, auth.WorkspacePatch{Name: new("New")}, "New enterprise 7"},
		{pro, auth.WorkspacePatch{}, "n pro 600"},
		{free, auth.WorkspacePatch{Plan: new(auth.Enterprise)}, "/requests_per_minute"},
		{free, auth.WorkspacePatch{RequestsPerMinute: new(5)}, "/requests_per_minute"},
		{enterprise, auth.WorkspacePatch{Plan: new(auth.Pro), RequestsPerMinute: new(7)}, "/requests_per_minute"},
		{enterprise, auth.WorkspacePatch{RequestsPerMinute: new(0)}, "/requests_per_minute"},
		{free, auth.WorkspacePatch{Plan: new(auth.Plan(""))}, "/plan"},
		{free, auth.WorkspacePatch{Name: new(" "), Plan: new(auth.Pro)}, "/name"},
	} {
		made, _, err := w.Auth.CreateWorkspace(t.Context(), w.Admin, tc.from)
		if err != nil {
			t.Fatal(err)
		}
		now, err := w.Auth.UpdateWorkspace(t.Context(), w.Admin, made.ID, tc.patch)
		want := now
		if strings.HasPrefix(tc.want, "/") {
			faulttest.Want(t, err, fault.InvalidRequest, tc.want)
			want = made
		} else if got := fmt.Sprintf("%s %s %d", now.Name, now.Plan, now.RequestsPerMinute); err != nil || got != tc.want {
			t.Errorf("%+v then %+v: %s, %v; want %s", tc.from, tc.patch, got, err, tc.want)
		} else if !now.UpdatedAt.After(made.UpdatedAt) {
			t.Errorf("it was updated at %v and before that at %v", now.UpdatedAt, made.UpdatedAt)
		}
		if stored, err := w.Auth.GetWorkspace(t.Context(), w.Admin, made.ID); err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(want, stored); diff != "" {
			t.Errorf("%+v then %+v is stored as (-want +got):\n%s", tc.from, tc.patch, diff)
		}
	}
}

// A new plan takes effect at once, also for cached keys. It is recorded in the
// workspace of the operator.
func TestPlanChangeTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	_, value, err := w.Auth.CreateWorkspace(t.Context(), w.Admin, auth.NewWorkspace{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	id := w.wantWorks(value).Workspace.ID
	if _, err := w.Auth.UpdateWorkspace(t.Context(), w.Admin, id, auth.WorkspacePatch{Plan: new(auth.Pro)}); err != nil {
		t.Fatal(err)
	}
	if got := w.wantWorks(value).Limits(); got != auth.Pro.Limits() {
		t.Errorf("the limits are %+v", got)
	}
	if got := fmt.Sprint(w.Actions(w.t, w.Admin.Workspace.ID, id)); got != "[workspace.updated workspace.created]" {
		t.Errorf("the audit log has %s", got)
	}
}

// Concurrent updates of different fields are all applied.
func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	made, _, err := w.Auth.CreateWorkspace(t.Context(), w.Admin, auth.NewWorkspace{Name: "n", Plan: auth.Enterprise, RequestsPerMinute: new(7)})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, patch := range []auth.WorkspacePatch{{Name: new("New")}, {RequestsPerMinute: new(8)}, {Name: new("New")}, {RequestsPerMinute: new(8)}} {
		all.Go(func() {
			if _, err := w.Auth.UpdateWorkspace(t.Context(), w.Admin, made.ID, patch); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if now, err := w.Auth.GetWorkspace(t.Context(), w.Admin, made.ID); err != nil || now.Name != "New" || now.RequestsPerMinute != 8 {
		t.Errorf("the workspace is %+v, %v", now, err)
	}
}

// A user who creates a workspace becomes its owner.
func TestWorkspaceCreatedByUser(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	people := account.NewService(w.DB.Accounts, account.WithCost(account.Cost{Memory: 8, Passes: 1, Threads: 1}))
	link, err := people.WelcomeLink(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(link, "#token=")
	owner, _, err := people.CreateFirstOwner(t.Context(), token, "ada@example.com", "Ada", "correct horse", account.ClientInfo{})
	if err != nil {
		t.Fatal(err)
	}
	made, value, err := w.Auth.CreateWorkspace(t.Context(), owner.Actor(), auth.NewWorkspace{Name: "Hers"})
	if err != nil {
		t.Fatal(err)
	}
	w.wantWorks(value)
	memberships, err := people.Workspaces(t.Context(), owner)
	if err != nil || len(memberships) != 2 || memberships[1].Workspace.ID != made.ID || memberships[1].Role != account.Owner {
		t.Errorf("her workspaces are %+v, %v", memberships, err)
	}
}
