package secret_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/secret"
)

// variable puts a variable and reports whether it is new.
func (b *env) variable(actor auth.Actor, name, value string) (secret.Variable, bool) {
	b.t.Helper()
	made, created, err := b.values.Variables.Put(b.t.Context(), actor, name, json.RawMessage(value))
	if err != nil {
		b.t.Fatal(err)
	}
	return made, created
}

func TestPutVariable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newEnv(t)
		made, created := b.variable(b.Admin, "region", ` { "eu" : [ 1, 2.50 ] } `)
		now := time.Now().UTC()
		want := secret.Variable{Value: json.RawMessage(`{"eu":[1,2.50]}`), Metadata: secret.Metadata{
			WorkspaceID: b.Admin.Workspace.ID, Name: "region", CreatedAt: now, CreatedBy: b.Admin.ID, UpdatedAt: now, UpdatedBy: b.Admin.ID,
		}}
		if diff := cmp.Diff(want, made); diff != "" || !created {
			t.Errorf("created is %t, the variable (-want +got):\n%s", created, diff)
		}
		time.Sleep(time.Hour)
		colleague := b.Admin
		colleague.ID = "key_other"
		want.Value, want.UpdatedAt, want.UpdatedBy = json.RawMessage(`null`), time.Now().UTC(), "key_other"
		replaced, created := b.variable(colleague, "region", "null")
		if diff := cmp.Diff(want, replaced); diff != "" || created {
			t.Errorf("created is %t, the replaced variable (-want +got):\n%s", created, diff)
		}
		read, err := b.values.Variables.Get(t.Context(), b.Admin, "region")
		if diff := cmp.Diff(want, read); diff != "" || err != nil {
			t.Errorf("%v, the variable (-want +got):\n%s", err, diff)
		}
		if got := fmt.Sprint(b.Actions(b.t, b.Admin.Workspace.ID, "region")); got != "[variable.updated variable.created]" {
			t.Errorf("the audit log has %s", got)
		}
		if err := b.values.Variables.Delete(t.Context(), b.Admin, "region"); err != nil {
			t.Fatal(err)
		}
		faulttest.Want(t, b.values.Variables.Delete(t.Context(), b.Admin, "region"), fault.VariableNotFound)
		_, err = b.values.Variables.Get(t.Context(), b.Admin, "region")
		faulttest.Want(t, err, fault.VariableNotFound)
	})
}

// A value is any JSON of at most 64 KiB, not counting insignificant white space.
func TestVariableValues(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	b.variable(b.Admin, "v", `"before"`)
	largest := `"` + strings.Repeat("x", 64<<10-2) + `"`
	for _, value := range []string{`0`, `""`, `[]`, `{}`, `true`, `12345678901234567890`, `1e999`, `"\u0000"`, `"ä"`, largest, largest + strings.Repeat(" ", 100)} {
		made, _ := b.variable(b.Admin, "v", value)
		if got := string(made.Value); got != strings.TrimSpace(value) {
			t.Errorf("%.50s is stored as %.50s", value, got)
		}
		if _, err := b.values.Vars(t.Context(), b.Admin.Workspace.ID); err != nil {
			t.Errorf("runs cannot read %.50s: %v", value, err)
		}
	}
	b.variable(b.Admin, "v", `"before"`)
	for _, value := range []string{``, ` `, `x`, `{`, `1 2`, `{"a":}`, `'a'`, `NaN`, `"` + strings.Repeat("x", 64<<10-1) + `"`} {
		_, created, err := b.values.Variables.Put(t.Context(), b.Admin, "v", json.RawMessage(value))
		faulttest.Want(t, err, fault.InvalidRequest, "/value")
		if read, err := b.values.Variables.Get(t.Context(), b.Admin, "v"); err != nil || string(read.Value) != `"before"` || created {
			t.Errorf("after %.50s the value is %s, %v", value, read.Value, err)
		}
	}
}

// Integers in variables stay integers in expressions.
func TestVars(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	other := b.Workspace(t, auth.Free)
	b.variable(b.Admin, "a", `{"n": 1, "x": [2.5, null]}`)
	b.variable(b.Admin, "b", `"eu"`)
	b.variable(other, "c", `true`)
	got, err := b.values.Vars(t.Context(), b.Admin.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": map[string]any{"n": 1, "x": []any{2.5, nil}}, "b": "eu"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	page, err := b.values.Variables.List(t.Context(), b.Admin, whole)
	var names []string
	for _, v := range page.Items {
		names = append(names, v.Name)
	}
	if fmt.Sprint(names) != "[a b]" || err != nil {
		t.Errorf("the list is %v, %v", names, err)
	}
	_, err = b.values.Variables.Get(t.Context(), b.Admin, "c")
	faulttest.Want(t, err, fault.VariableNotFound)
	faulttest.Want(t, b.values.Variables.Delete(t.Context(), b.Admin, "c"), fault.VariableNotFound)
}

// A secret and a variable may have the same name.
func TestSecretAndVariableOfSameName(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	b.secret(b.Admin, "name", "value")
	_, err := b.values.Variables.Get(t.Context(), b.Admin, "name")
	faulttest.Want(t, err, fault.VariableNotFound)
	if _, created := b.variable(b.Admin, "name", "1"); !created {
		t.Error("the variable already exists")
	}
	if err := b.values.Secrets.Delete(t.Context(), b.Admin, "name"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.values.Variables.Get(t.Context(), b.Admin, "name"); err != nil {
		t.Error(err)
	}
}

// The plan limits the number of variables and their total size.
func TestVariableLimits(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	actor := b.Workspace(t, auth.Free)
	for i := range 100 {
		b.variable(actor, fmt.Sprintf("v%d", i), "1")
	}
	reject := func(name, value, says string) {
		t.Helper()
		_, created, err := b.values.Variables.Put(t.Context(), actor, name, json.RawMessage(value))
		faulttest.Want(t, err, fault.PlanLimitExceeded)
		if !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "free") || created {
			t.Errorf("created is %t, the error %q", created, err)
		}
	}
	reject("one_more", "1", "100 variables")
	large := `"` + strings.Repeat("x", 64<<10-2) + `"`
	for i := range 15 {
		b.variable(actor, fmt.Sprintf("v%d", i), large)
	}
	// The other 84 have one byte each, so this one fills the limit.
	b.variable(actor, "v15", large[:64<<10-84-1]+`"`)
	reject("v16", "12", "1048576 bytes")
	reject("v15", large, "1048576 bytes")
	b.variable(actor, "v16", "2") // the size is unchanged
	b.variable(actor, "v0", "3")
	b.variable(actor, "v16", large)
	if err := b.values.Variables.Delete(t.Context(), actor, "v1"); err != nil {
		t.Fatal(err)
	}
	b.variable(actor, "one_more", large)
}
