package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/workflow"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	var d workflow.Definition
	err := json.Unmarshal([]byte(`{
		"triggers": [{"id": "items", "type": "poll", "every": "5m", "request": {"url": "https://News.Example.com/items"}, "items": "response.body", "key": "item.id"}],
		"steps": [
			{"id": "send", "name": "Send the report", "uses": "http.request", "with": {"url": "https://api.example.com/${{ run.id }}", "body": {"to": ["ann@acme.test", "bob@example.org"]}}},
			{"id": "loop", "foreach": "[1]", "steps": [{"id": "inner", "uses": "http.request", "with": {"url": "https://example.net"}}]},
			{"id": "fine", "name": "Call example.com", "uses": "http.request", "with": {"url": "https://example.com.acme.test/notexample.com", "body": "For example.Command"}}
		]}`), &d)
	if err != nil {
		t.Fatal(err)
	}
	const hint = "replace it with your own"
	want := []workflow.Problem{
		{Pointer: "/triggers/0/request/url", Message: "Trigger items still has the placeholder address News.Example.com", Hint: hint},
		{Pointer: "/steps/0/with/body/to/1", Message: "Step Send the report still has the placeholder address example.org", Hint: hint},
		{Pointer: "/steps/0/with/url", Message: "Step Send the report still has the placeholder address api.example.com", Hint: hint},
		{Pointer: "/steps/1/steps/0/with/url", Message: "Step inner still has the placeholder address example.net", Hint: hint},
	}
	if diff := cmp.Diff(want, d.Warnings()); diff != "" {
		t.Error(diff)
	}
}

func TestWarningsOfSwitches(t *testing.T) {
	t.Parallel()
	var d workflow.Definition
	err := json.Unmarshal([]byte(`{"steps": [
		{"id": "open", "name": "Size", "uses": "flow.switch", "with": {"paths": [{"id": "big", "when": "trigger.payload.n > 1"}]}},
		{"id": "else", "uses": "flow.switch", "with": {"paths": [{"id": "big", "when": "trigger.payload.n > 1"}], "else": "small"}},
		{"id": "always", "uses": "flow.switch", "with": {"paths": [{"id": "big", "when": "trigger.payload.n > 1"}, {"id": "rest", "when": true}]}},
		{"id": "all", "uses": "flow.switch", "with": {"match": "all", "paths": [{"id": "big", "when": "trigger.payload.n > 1"}]}},
		{"id": "loop", "foreach": "[1]", "steps": [{"id": "inner", "uses": "flow.switch", "with": {"paths": [{"id": "x", "when": "item > 1"}]}}]}
	]}`), &d)
	if err != nil {
		t.Fatal(err)
	}
	const hint = "add else, or a last path whose condition is true"
	want := []workflow.Problem{
		{Pointer: "/steps/0/with", Message: "Step Size takes no path if no condition is true", Hint: hint},
		{Pointer: "/steps/4/steps/0/with", Message: "Step inner takes no path if no condition is true", Hint: hint},
	}
	if diff := cmp.Diff(want, d.Warnings()); diff != "" {
		t.Error(diff)
	}
}
