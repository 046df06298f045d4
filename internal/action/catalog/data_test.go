package catalog_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// exampleTime is when the examples run.
var exampleTime = time.Date(2026, 11, 17, 9, 30, 0, 0, time.UTC)

// data is a workspace with a workflow, and with the table and the key that the
// examples of table.* and state.* use.
type data struct {
	*sqlitetest.Installation
	catalog    *action.Catalog
	workflowID string
}

func newData(t *testing.T) *data {
	t.Helper()
	d := &data{Installation: sqlitetest.New(t, store.Notify{})}
	var err error
	if d.catalog, err = catalog.New(catalog.Deps{Tables: d.DB.Tables, Keys: d.DB.State}); err != nil {
		t.Fatal(err)
	}
	made, err := workflow.NewService(d.DB.Workflows, d.catalog, nil, nil, trigger.NewArming(nil, nil)).Create(t.Context(), d.Admin, workflow.New{Name: "Example"})
	if err != nil {
		t.Fatal(err)
	}
	d.workflowID = made.ID
	customers, err := table.NewService(d.DB.Tables).Create(t.Context(), d.Admin, "customers", []table.NewColumn{
		{Name: "email", Type: table.Text}, {Name: "city", Type: table.Text, Indexed: true}, {Name: "orders", Type: table.Number},
	}, "email")
	if err != nil {
		t.Fatal(err)
	}
	yesterday := exampleTime.Add(-24 * time.Hour)
	rows := table.Scope{WorkspaceID: d.Admin.Workspace.ID, Table: customers.ID, Plan: auth.Free, At: yesterday}
	ada := table.Values{"email": json.RawMessage(`"ada@example.com"`), "city": json.RawMessage(`"Zurich"`), "orders": json.RawMessage("2")}
	if _, err := d.Tables.InsertRow(t.Context(), rows, table.Insert{RowID: uid.At(uid.Row, yesterday), Values: ada}); err != nil {
		t.Fatal(err)
	}
	keys := state.Scope{WorkspaceID: d.Admin.Workspace.ID, Plan: auth.Free, At: yesterday}
	if _, err := d.State.SetKey(t.Context(), keys, state.Set{Name: "orders", Value: json.RawMessage("4")}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *data) request(with map[string]any) action.Request {
	return action.Request{
		Input: with, MaskedInput: with, Now: exampleTime, Workspace: d.Admin.Workspace.ID, Plan: auth.Free, MaxOutput: 1 << 20,
		Run: action.Run{WorkflowID: d.workflowID}, Log: func(action.Level, string) {},
	}
}

// call runs an action with its operation, as the engine does.
func (d *data) call(t *testing.T, name string, req action.Request) (map[string]any, error) {
	t.Helper()
	entry, ok := d.catalog.Find(name)
	if !ok {
		t.Fatalf("there is no action %s", name)
	}
	result, err := entry.Action.Run(t.Context(), req)
	if err == nil && result.Operation != nil {
		answer, performErr := d.Leases.Perform(t.Context(), *result.Operation)
		if performErr != nil {
			t.Fatal(performErr)
		}
		if err := json.Unmarshal(answer.Value, &req.Answer); err != nil {
			t.Fatal(err)
		}
		result, err = entry.Action.Run(t.Context(), req)
	}
	return action.Object(result.Output), err
}

var rowIDs = regexp.MustCompile(`row_[0-9a-z]{26}`)

// shown returns an output as JSON with the row id of the examples.
func shown(t *testing.T, output map[string]any) string {
	t.Helper()
	text, err := json.Marshal(output)
	if err != nil {
		t.Fatal(err)
	}
	return rowIDs.ReplaceAllString(string(text), "row_01m7fe3gv0es8r65rzyjka792g")
}

func usesData(name string) bool {
	return strings.HasPrefix(name, "table.") || strings.HasPrefix(name, "state.")
}

func TestFailuresOfTablesAndKeys(t *testing.T) {
	t.Parallel()
	d := newData(t)
	for _, test := range []struct{ name, with, code, message string }{
		{"table.insert", `{"table": "customers", "values": {"email": "ada@example.com"}}`, "row_exists", "the table customers already has a row with the key"},
		{"table.insert", `{"table": "customer", "values": {}}`, "table_not_found", `there is no table "customer"`},
		{"table.insert", `{"table": "customers", "values": {"email": "x", "orders": "many"}}`, "invalid_input", "with/values/orders: must be a number"},
		{"table.insert", `{"table": "customers", "values": {"mail": "x"}}`, "invalid_input", "with/values/email: is required"},
		{"table.upsert", `{"table": "customers", "values": {"city": "x"}}`, "invalid_input", "with/values/email: is required"},
		{"table.update", `{"table": "customers", "key": "x", "values": {}}`, "row_not_found", `with the key "x"`},
		{"table.update", `{"table": "customers", "filter": {"column": "town", "op": "="}, "values": {}}`, "invalid_input", "with/filter"},
		{"table.increment", `{"table": "customers", "key": "ada@example.com", "column": "city"}`, "invalid_input", "with/column: city is of type text"},
		{"table.get", `{"table": "orders", "key": "x"}`, "table_not_found", `there is no table "orders"`},
		{"table.find", `{"table": "customers", "sort": "town"}`, "invalid_input", "with/sort"},
		{"state.increment", `{"key": "flag"}`, "invalid_input", "with/value: the stored value is not a number"},
	} {
		flag := map[string]any{"key": "flag", "value": true}
		if _, err := d.call(t, "state.set", d.request(flag)); err != nil {
			t.Fatal(err)
		}
		var with map[string]any
		if err := json.Unmarshal([]byte(test.with), &with); err != nil {
			t.Fatal(err)
		}
		output, err := d.call(t, test.name, d.request(with))
		failure, ok := errors.AsType[*action.Failure](err)
		if !ok || failure.Code != test.code || !strings.Contains(failure.Message, test.message) {
			t.Errorf("%s %s: got %v, %v", test.name, test.with, output, err)
		}
	}
}

func TestInputsOfTablesAndKeys(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, with, problem string }{
		{"table.get", `{"table": "a"}`, ": needs exactly one of key, id"},
		{"table.delete", `{"table": "a", "key": "x", "id": "y"}`, ": needs exactly one of key, id, filter"},
		{"table.find", `{"table": "a", "limit": 1001}`, "/limit: "},
		{"table.insert", `{"values": {}}`, "/table: is required"},
		{"state.set", `{"key": "a b", "value": 1}`, "/key: the key must start with"},
		{"state.set", `{"key": "a", "value": 1, "expires_in": "soon"}`, "/expires_in: "},
		{"state.set", `{"key": "a", "value": 1, "expires_in": "4000d"}`, "/expires_in: must be at most 3650d"},
		{"state.get", `{"key": "a", "scope": "run"}`, "/scope: must be one of"},
	} {
		var with map[string]any
		if err := json.Unmarshal([]byte(test.with), &with); err != nil {
			t.Fatal(err)
		}
		problems := c.Check(test.name, with, func(string) bool { return false })
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Pointer+": "+problems[0].Message, test.problem) {
			t.Errorf("%s %s: %+v", test.name, test.with, problems)
		}
	}
}

func TestFindReturnsWhatFitsInAnOutput(t *testing.T) {
	t.Parallel()
	d := newData(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		with := map[string]any{"table": "customers", "values": map[string]any{"email": name, "city": strings.Repeat("x", 1000)}}
		if _, err := d.call(t, "table.insert", d.request(with)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		with  map[string]any
		most  int
		count int
		more  bool
	}{
		{map[string]any{"table": "customers"}, 1 << 20, 5, false},
		{map[string]any{"table": "customers", "limit": 2}, 1 << 20, 2, true},
		{map[string]any{"table": "customers"}, 3000, 3, true},
		{map[string]any{"table": "customers", "sort": "-email"}, 3000, 2, true}, // reads all rows
		{map[string]any{"table": "customers", "sort": "city"}, 3000, 3, true},   // reads the index
	} {
		req := d.request(test.with)
		req.MaxOutput = test.most
		output, err := d.call(t, "table.find", req)
		if err != nil || output["count"] != test.count || output["more"] != test.more || len(shown(t, output)) > test.most {
			t.Errorf("%v within %d bytes: %v rows, more: %v, %v", test.with, test.most, output["count"], output["more"], err)
		}
	}
}
