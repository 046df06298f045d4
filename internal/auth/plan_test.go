package auth_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/test/lane"
)

func TestPlanLimits(t *testing.T) {
	t.Parallel()
	const kib, mib, day = 1 << 10, 1 << 20, 24 * time.Hour
	for _, tc := range []struct {
		plan      auth.Plan
		limits    auth.Limits
		rate      int
		retention auth.Retention
	}{
		{
			auth.Free, auth.Limits{
				RequestBodyBytes: mib, PayloadBytes: 256 * kib, StepsPerWorkflow: 50, Workflows: 100, Webhooks: 20, APIKeys: 20,
				StepsPerRun: 1_000, OutputBytes: 256 * kib, StateBytes: 8 * mib, ConcurrentRuns: 5, QueuedRuns: 1_000,
				Secrets: 100, Variables: 100, Connections: 20, VariableBytes: mib,
				Tables: 10, TableRows: 10_000, RowBytes: 32 * kib, StateKeys: 1_000, StoredBytes: 16 * mib,
				FileBytes: 25 * mib, RunFileBytes: 100 * mib, StoredFileBytes: 1024 * mib,
			}, 60, auth.Retention{KeepRuns: 7 * day, RunsPerWorkflow: 10_000},
		},
		{
			auth.Pro, auth.Limits{
				RequestBodyBytes: 2 * mib, PayloadBytes: mib, StepsPerWorkflow: 200, Workflows: 1_000, Webhooks: 50, APIKeys: 100,
				StepsPerRun: 10_000, OutputBytes: mib, StateBytes: 16 * mib, ConcurrentRuns: 50, QueuedRuns: 10_000,
				Secrets: 1_000, Variables: 1_000, Connections: 200, VariableBytes: 4 * mib,
				Tables: 100, TableRows: 100_000, RowBytes: 64 * kib, StateKeys: 10_000, StoredBytes: 256 * mib,
				FileBytes: 512 * mib, RunFileBytes: 2048 * mib, StoredFileBytes: 20 * 1024 * mib,
			}, 600, auth.Retention{KeepRuns: 30 * day},
		},
		{
			auth.Enterprise, auth.Limits{
				RequestBodyBytes: 4 * mib, PayloadBytes: 2 * mib, StepsPerWorkflow: 500, Workflows: 10_000, Webhooks: 500, APIKeys: 500,
				StepsPerRun: 50_000, OutputBytes: mib, StateBytes: 32 * mib, ConcurrentRuns: 1_000, QueuedRuns: 100_000,
				Secrets: 10_000, Variables: 10_000, Connections: 2_000, VariableBytes: 16 * mib,
				Tables: 1_000, TableRows: 1_000_000, RowBytes: 128 * kib, StateKeys: 100_000, StoredBytes: 2048 * mib,
				FileBytes: 5 * 1024 * mib, RunFileBytes: 20 * 1024 * mib, StoredFileBytes: 500 * 1024 * mib,
			}, 0, auth.Retention{KeepRuns: 30 * day},
		},
	} {
		if diff := cmp.Diff(tc.limits, tc.plan.Limits()); diff != "" {
			t.Errorf("limits of %s (-want +got):\n%s", tc.plan, diff)
		}
		if diff := cmp.Diff(tc.limits, (auth.Actor{Workspace: auth.Workspace{Plan: tc.plan}}).Limits()); diff != "" {
			t.Errorf("limits of an actor on %s (-want +got):\n%s", tc.plan, diff)
		}
		if got := tc.plan.RequestsPerMinute(); got != tc.rate {
			t.Errorf("%s has %d requests per minute", tc.plan, got)
		}
		if diff := cmp.Diff(tc.retention, tc.plan.Retention()); diff != "" {
			t.Errorf("retention of %s (-want +got):\n%s", tc.plan, diff)
		}
		if !tc.plan.Known() {
			t.Errorf("%s is unknown", tc.plan)
		}
	}
	for _, plan := range []auth.Plan{"", "Free", "gold"} {
		if plan.Known() {
			t.Errorf("%q is a plan", plan)
		}
	}
}

// A higher plan never allows less, and a payload fits into a request body.
func TestPlanLimitsIncrease(t *testing.T) {
	t.Parallel()
	plans := auth.Plans()
	for i, plan := range plans {
		limits := plan.Limits()
		if limits.RequestBodyBytes > auth.MaxRequestBody || int64(limits.PayloadBytes) > limits.RequestBodyBytes || limits.OutputBytes > limits.StateBytes {
			t.Errorf("%s: a limit exceeds the one that contains it: %+v", plan, limits)
		}
		if i == 0 {
			continue
		}
		less, more := reflect.ValueOf(plans[i-1].Limits()), reflect.ValueOf(limits)
		for field := range less.NumField() {
			if more.Field(field).Int() < less.Field(field).Int() {
				t.Errorf("%s allows less than %s: %s", plan, plans[i-1], less.Type().Field(field).Name)
			}
		}
	}
}

// Scopes are ordered, without duplicates, and survive a round trip to the store.
func TestScopesProperty(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.SampledFrom([]string{"read", "write", "execute", "admin"})).Draw(t, "names")
		scopes, err := auth.ParseScopes(names)
		if err != nil {
			t.Fatal(err)
		}
		for _, scope := range auth.Scopes() {
			given := slices.Contains(names, string(scope))
			if n := len(slices.DeleteFunc(slices.Clone(scopes), func(s auth.Scope) bool { return s != scope })); given != (n == 1) || n > 1 {
				t.Errorf("%v has %s %d times", scopes, scope, n)
			}
			if got, want := auth.Grants(scopes, scope), given || slices.Contains(names, "admin"); got != want {
				t.Errorf("%v grants %s: %t", scopes, scope, got)
			}
		}
		if diff := cmp.Diff(scopes, auth.SplitScopes(auth.JoinScopes(scopes))); diff != "" {
			t.Errorf("stored and read (-want +got):\n%s", diff)
		}
		if _, err := auth.ParseScopes(append(names, rapid.StringMatching(`[a-z,* ]{0,12}`).Filter(func(s string) bool {
			return !slices.Contains(auth.Scopes(), auth.Scope(s))
		}).Draw(t, "unknown"))); err == nil {
			t.Error("an unknown scope is accepted")
		}
	})
}

func TestActors(t *testing.T) {
	t.Parallel()
	first, other := auth.Workspace{ID: "ws_1", First: true}, auth.Workspace{ID: "ws_2"}
	for _, tc := range []struct {
		actor    auth.Actor
		name     string
		operator bool
	}{
		{auth.Actor{Workspace: first, Type: audit.ActorKey, ID: "key_1", Scopes: []auth.Scope{auth.Admin}}, "key_1", true},
		{auth.Actor{Workspace: first, Type: audit.ActorUser, ID: "usr_1", Scopes: auth.Scopes()}, "usr_1", true},
		{auth.Actor{Workspace: first, Type: audit.ActorUser, ID: "usr_1", Scopes: []auth.Scope{auth.Read, auth.Write, auth.Execute}}, "usr_1", false},
		{auth.Actor{Workspace: other, Type: audit.ActorKey, ID: "key_2", Scopes: auth.Scopes()}, "key_2", false},
		{auth.Actor{Workspace: first, Type: audit.ActorCLI}, "cli", false},
		{auth.Actor{Workspace: first, Type: audit.ActorSystem}, "", false},
		{auth.Actor{}, "", false},
	} {
		if got := tc.actor.Name(); got != tc.name {
			t.Errorf("%+v: the name is %q", tc.actor, got)
		}
		if got := tc.actor.IsOperator(); got != tc.operator {
			t.Errorf("%+v is an operator: %t", tc.actor, got)
		}
	}
}

// An audit entry records the actor, the action, the workspace and the time.
func TestAuditEntry(t *testing.T) {
	t.Parallel()
	actor := auth.Actor{Workspace: auth.Workspace{ID: "ws_1"}, Type: audit.ActorKey, ID: "key_1", RequestID: "req_1"}
	got := actor.AuditEntry("thing.made", "thing", "th_1", map[string]any{"a": 1})
	want := audit.Entry{
		ID: got.ID, At: got.At, WorkspaceID: "ws_1", ActorType: "api_key", ActorID: "key_1", RequestID: "req_1",
		Action: "thing.made", TargetType: "thing", TargetID: "th_1", Details: map[string]any{"a": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.At.IsZero() || got.ID == actor.AuditEntry("", "", "", nil).ID {
		t.Errorf("the entry (-want +got):\n%s", diff)
	}
}
