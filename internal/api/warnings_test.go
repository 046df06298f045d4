package api_test

import (
	"net/http"
	"testing"
)

// An address that is left from an example is a warning: the workflow can be activated.
func TestPlaceholderAddresses(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	const steps = `[{"id": "send", "name": "Send the report", "uses": "http.request", "with": {"url": "https://api.example.com/reports"}}]`
	const warning = `{"pointer": "/steps/0/with/url", "message": "Step Send the report still has the placeholder address api.example.com", "hint": "replace it with your own"}`
	wantContains(t, w.call("POST", "/v1/workflows/$wf/validate", `{"steps": `+steps+`}`).wantStatus(http.StatusOK).json(),
		`{"valid": true, "problems": [], "warnings": [`+warning+`]}`)
	active := w.call("PATCH", "/v1/workflows/$wf", `{"state": "active", "steps": `+steps+`}`).wantStatus(http.StatusOK)
	wantContains(t, active.json(), `{"state": "active", "warnings": [`+warning+`]}`)
	shown := w.call("GET", "/v1/workflows/$wf", "").wantStatus(http.StatusOK)
	wantContains(t, shown.json(), `{"warnings": [`+warning+`]}`)
	w.call("POST", "/v1/workflows/import", string(shown.body)).wantStatus(http.StatusCreated)

	steps2 := "steps:\n  - id: send\n    uses: http.request\n    with: {url: https://api.example.com}\n"
	wantContains(t, w.call("POST", "/v1/workflows/$wf/validate", steps2, "Content-Type", "application/yaml").wantStatus(http.StatusOK).json(),
		`{"warnings": [{"line": 4, "column": 17}]}`)
	fixed := w.call("PATCH", "/v1/workflows/$wf", `{"steps": [{"id": "send", "uses": "http.request", "with": {"url": "https://api.acme.test"}}]}`).wantStatus(http.StatusOK)
	if warnings := fixed.object()["warnings"].([]any); len(warnings) > 0 {
		t.Errorf("there are %v", warnings)
	}
}
