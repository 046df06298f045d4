package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// What an account has can be listed for every input that asks for it, with a connection of
// the integration that the operation or the trigger needs.
func TestTemplateListings(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	listed := 0
	for _, template := range w.call("GET", "/v1/templates?limit=100", "").wantStatus(http.StatusOK).items() {
		integrations := map[string]string{}
		for _, one := range template["inputs"].([]any) {
			in := one.(map[string]any)
			name, _ := in["name"].(string)
			if integration, ok := in["integration"].(string); ok {
				integrations[name] = integration
			}
			lists, ok := in["lists"].(map[string]any)
			if !ok {
				continue
			}
			listed++
			schema, integration := w.inputSchemaOf(lists)
			if want := integrations[lists["connection"].(string)]; integration != want {
				t.Errorf("%v: %s has a connection of %s, and needs one of %s", template["name"], name, want, integration)
			}
			if schema["properties"].(map[string]any)[lists["input"].(string)].(map[string]any)["x-options"] == nil {
				t.Errorf("%v: nothing lists the values of %s", template["name"], name)
			}
		}
	}
	if listed < 20 {
		t.Errorf("only %d inputs are listed", listed)
	}
}

// inputSchemaOf returns the schema of the operation or the trigger of a listing, and the
// integration whose connections it needs.
func (w *testWorkspace) inputSchemaOf(lists map[string]any) (schema map[string]any, integration string) {
	if operation, ok := lists["operation"].(string); ok {
		action := w.call("GET", "/v1/actions/"+operation, "").wantStatus(http.StatusOK).object()
		return action["input_schema"].(map[string]any), action["integration"].(string)
	}
	service, name, _ := strings.Cut(lists["trigger"].(string), ".")
	found := w.call("GET", "/v1/integrations/"+service+"/triggers/"+name, "").wantStatus(http.StatusOK).object()
	return found["input_schema"].(map[string]any), found["connection"].(string)
}

// A problem of the workflow that a value causes is reported for its input.
func TestTemplateProblems(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.call("POST", "/v1/connections", `{"name": "bot", "integration": "telegram", "auth": "api_key", "fields": {"token": "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"}}`).wantStatus(http.StatusCreated)
	for _, tc := range []struct{ template, inputs, pointer, message string }{
		{"nightly-report", `{"orders": "https://a.test", "chat": "https://b.test", "timezone": "Europe/Nowhere"}`, "/inputs/timezone", "Europe/Nowhere"},
		{"mail-to-slack", `{"google": "office", "slack": "team", "channel": "C1"}`, "/inputs/slack", "team"},
		{"picture-to-telegram", `{"openai": "bot", "prompt": "A cat", "telegram": "bot", "chat": "@a"}`, "/inputs/openai", "a connection of telegram"},
		{"sheet-report", `{"google": "office", "spreadsheet": "1aB", "sheet": "Orders", "recipient": "ada@acme.test"}`, "/inputs/sheet", "integer"},
	} {
		a := w.call("POST", "/v1/templates/"+tc.template+"/workflows", `{"inputs": `+tc.inputs+`}`).wantStatus(http.StatusBadRequest, "invalid_request")
		found := false
		for _, one := range a.object()["error"].(map[string]any)["details"].([]any) {
			detail := one.(map[string]any)
			message, _ := detail["message"].(string)
			found = found || detail["pointer"] == tc.pointer && strings.Contains(message, tc.message)
		}
		if !found {
			t.Errorf("%s: %s, want %s: %s", tc.template, a.body, tc.pointer, tc.message)
		}
	}
	if n := len(w.call("GET", "/v1/workflows", "").wantStatus(http.StatusOK).items()); n > 0 {
		t.Errorf("there are %d workflows, though nothing was valid", n)
	}
}
