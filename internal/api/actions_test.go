package api_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/workflow"
)

func TestActions(t *testing.T) {
	const keys = "name title summary keywords pure accepts_connection integration input_schema output_schema limits codes examples"
	runScenarios(t, []scenario{
		{
			name:    "the list has every action in alphabetical order",
			request: "GET /v1/actions?limit=100", scope: "read", status: 200, members: "data next_cursor", contains: `{"next_cursor": null}`,
			after: func(w *testWorkspace, a *response) {
				names := a.column("name")
				if !slices.IsSorted(names) || !slices.Contains(names, "data.set") || !slices.Contains(names, "http.request") {
					w.t.Errorf("actions are %v", names)
				}
				for _, item := range a.items() {
					wantKeys(w.t, item, keys)
				}
			},
		},
		{
			name:    "the list is read page by page like every list",
			request: "GET /v1/actions?limit=1", status: 200, contains: `{"data": [{}], "next_cursor": "~.+"}`,
			after: func(w *testWorkspace, a *response) {
				all := w.call("GET", "/v1/actions?limit=100", "").wantStatus(200).column("name")
				var walked []string
				for _, page := range readPages(w.client, "/v1/actions?limit=2", "name") {
					walked = append(walked, page...)
				}
				if fmt.Sprint(all) != fmt.Sprint(walked) || len(all) < 3 {
					w.t.Errorf("all are %v, page by page %v", all, walked)
				}
				w.call("GET", "/v1/workflows?cursor="+a.str("next_cursor"), "").wantStatus(400, "invalid_cursor")
			},
		},
		{name: "the size of a page is checked", request: "GET /v1/actions?limit=0", status: 400, code: "invalid_request"},
		{name: "an unknown parameter is rejected", request: "GET /v1/actions?type=x", status: 400, code: "invalid_request"},
		{
			name:    "an action has its schemas and examples",
			request: "GET /v1/actions/data.set", scope: "read", status: 200, members: keys,
			contains: `{"name": "data.set", "pure": true, "accepts_connection": false, "input_schema": {"type": "object", "required": ["values"]}, "output_schema": {"type": "object"},
				"limits": [], "codes": [], "examples": [{"title": "A greeting", "with": {"values": {"greeting": "Hello"}}, "output": {"greeting": "Hello"}}]}`,
		},
		{
			name:    "an action says what it can fail with",
			request: "GET /v1/actions/http.request", status: 200, contains: `{"accepts_connection": true}`,
			after: func(w *testWorkspace, a *response) {
				codes, _ := a.object()["codes"].([]any)
				if len(codes) != 11 {
					w.t.Errorf("codes are %v", codes)
				}
			},
		},
		{
			name:    "an action has the words that people search for it by",
			request: "GET /v1/actions/flow.wait", status: 200, contains: `{"keywords": ["delay", "sleep", "pause", "timer"]}`,
		},
		{
			name:    "an unknown action is action_not_found, with the nearest one",
			request: "GET /v1/actions/data.sett", status: 404, code: "action_not_found", message: `"data.sett" (did you mean "data.set"?)`,
		},
		{
			name:    "what is far from every action has no hint",
			request: "GET /v1/actions/zzzzzzzzzzzz", status: 404, code: "action_not_found", message: `there is no action "zzzzzzzzzzzz"`,
		},
		{name: "actions need a key", request: "GET /v1/actions", scope: "anonymous", status: 401, code: "unauthorized"},
		{name: "actions need the scope read", request: "GET /v1/actions/data.set", scope: "write", status: 403, code: "insufficient_scope"},
	})
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	anyone := newTestWorkspace(t).server.anonymous(t)
	for name, id := range map[string]string{"workflow.json": workflow.SchemaID, "integration.json": integration.SchemaID} {
		a := anyone.call("GET", "/v1/schemas/"+name, "").wantStatus(200)
		if got := a.header.Get("Content-Type"); got != "application/schema+json" {
			t.Errorf("%s: content type is %q", name, got)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := document.(map[string]any)["$id"]; got != id {
			t.Errorf("%s: its id is %v", name, got)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(name, document); err != nil {
			t.Fatal(err)
		}
		if _, err := compiler.Compile(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Cacheable documents are sent again only when they have changed.
func TestDocumentsAreCached(t *testing.T) {
	t.Parallel()
	anyone := newTestWorkspace(t).server.anonymous(t)
	seen := map[string]bool{}
	for _, path := range []string{"/v1/openapi.yaml", "/v1/openapi.json", "/v1/schemas/workflow.json", "/v1/schemas/integration.json"} {
		etag := anyone.call("GET", path, "").wantStatus(200).header.Get("ETag")
		if seen[etag] {
			t.Errorf("%s has the ETag of another document", path)
		}
		seen[etag] = true
		for _, match := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
			a := anyone.call("GET", path, "", "If-None-Match", match)
			if a.status != 304 || len(a.body) > 0 || a.header.Get("ETag") != etag {
				t.Errorf("%s with %s: got %d with %d bytes", path, match, a.status, len(a.body))
			}
		}
		for _, match := range []string{`"other"`, "x", etag[1:]} {
			anyone.call("GET", path, "", "If-None-Match", match).wantStatus(200)
		}
	}
}
