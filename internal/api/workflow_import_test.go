package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const greetJSON = `{"name": "Greeter", "steps": [{"id": "greet", "uses": "data.set", "with": {"values": {"text": "hello"}}}]}`

func TestImportWorkflow(t *testing.T) {
	const imports = "POST /v1/workflows/import"
	runScenarios(t, []scenario{
		{
			name:    "JSON becomes a complete draft with one version",
			request: imports, scope: "write", status: 201, members: workflowKeys, audit: "workflow.created",
			body: `{"name": " Greet\t", "description": "d", "triggers": [{"id": "hook", "type": "webhook"}], "settings": {"timeout": "5m"},
				"steps": [{"id": "greet", "uses": "data.set", "with": {"values": {}}}], "layout": {"greet": [1, 2]}, "pinned": {"greet": {"a": 1}}}`,
			headers: []string{"Location", `/v1/workflows/wf_[0-9a-z]{26}`, "ETag", `".+"`},
			contains: `{"name": "Greet", "description": "d", "state": "draft", "version": 1, "triggers": [{"id": "hook"}], "settings": {"timeout": "5m"},
				"steps": [{"id": "greet"}], "layout": {"greet": [1, 2]}, "pinned": {"greet": {"a": 1}}, "source": null, "source_stale": false}`,
			after: func(w *testWorkspace, a *response) {
				w.names["wf"] = a.str("id")
				if read := w.call("GET", "/v1/workflows/$wf", "").wantStatus(200); string(read.body) != string(a.body) {
					w.t.Errorf("reading it gives %s, importing it gave %s", read.body, a.body)
				}
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf/versions", "").wantStatus(200).json(), `{"data": [{"version": 1}]}`)
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf/triggers", "").wantStatus(200).json(), `{"data": [{"id": "hook", "url": "~http.+/hooks/.+"}]}`)
				w.runToEnd("run", "wf", "")
			},
		},
		{
			name:    "YAML is stored unchanged",
			request: imports, requestHeaders: asYAML, body: greetText, status: 201, audit: "workflow.created",
			contains: `{"name": "Greeter", "version": 1, "steps": [{"id": "greet"}], "source_stale": false}`,
			after: func(w *testWorkspace, a *response) {
				w.names["wf"] = a.str("id")
				version := w.call("GET", "/v1/workflows/$wf/versions/1", "").wantStatus(http.StatusOK)
				if a.str("source") != greetText || version.str("source") != greetText {
					w.t.Errorf("the text is %q, that of the version %q", a.str("source"), version.str("source"))
				}
			},
		},
		{
			name: "a text in JSON is the definition", request: imports, body: sourcePatch(greetText), status: 201, audit: "workflow.created",
			contains: `{"name": "Greeter", "steps": [{"id": "greet"}], "source": "~(?s)# Says hello.+", "source_stale": false}`,
		},
		{
			name: "a text has to agree with what is beside it", request: imports, body: sourcePatch(greetText, `"name": "Other"`),
			status: 422, code: "workflow_invalid", pointers: []string{"/source"}, message: "its name",
		},
		{
			name: "a source text marked as stale may differ from the definition", request: imports,
			body:   sourcePatch(greetText, `"name": "Copy"`, `"steps": []`, `"source_stale": true`),
			status: 201, audit: "workflow.created", contains: `{"name": "Copy", "steps": [], "source": "~(?s)# Says hello.+", "source_stale": true}`,
		},
		{
			name: "a text that need not agree, but does, is not stale", request: imports, body: sourcePatch(greetText, `"source_stale": true`),
			status: 201, audit: "workflow.created", contains: `{"name": "Greeter", "source_stale": false}`,
		},
		{
			name: "the name of the query is for what has none", request: imports + "?name=close-the-books", requestHeaders: asYAML, body: "steps: []\n",
			status: 201, audit: "workflow.created", contains: `{"name": "close-the-books", "source": "steps: []\n", "source_stale": false}`,
		},
		{
			name: "the name of the body comes first", request: imports + "?name=other", body: `{"name": "own"}`,
			status: 201, audit: "workflow.created", contains: `{"name": "own", "steps": []}`,
		},
		{
			name: "a name is required", request: imports, body: `{"steps": []}`,
			status: 400, code: "invalid_request", pointers: []string{"/name"}, message: "/name: is required",
		},
		{
			name: "an unknown member is rejected", request: imports, body: `{"name": "n", "stepz": []}`, lenient: true,
			status: 400, code: "invalid_request", pointers: []string{"/stepz"}, message: "steps",
		},
		{
			name: "an unknown query parameter is rejected", request: imports + "?nmae=x", body: `{"name": "n"}`, lenient: true,
			status: 400, code: "invalid_request", message: "nmae",
		},
		{name: "a body is required", request: imports, lenient: true, status: 400, code: "invalid_json"},
		{name: "the scope is write", request: imports, scope: "read", body: greetJSON, status: 403, code: "insufficient_scope", message: "write"},
		{name: "other types of bodies are rejected", request: imports, requestHeaders: []string{"Content-Type", "text/plain"}, body: "x", lenient: true, status: 415, code: "unsupported_media_type"},
	})
}

// A response of GET can be imported in both formats. The copy is equal except
// for fields of the original such as its id.
func TestImportExport(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	w.patch("wf", sourcePatch(greetText))
	w.patch("wf", `{"description": "d", "layout": {"greet": [1, 2]}, "pinned": {"greet": {"text": "x"}}, "state": "active", "settings": {"timeout": "5m"}}`)
	export := w.call("GET", "/v1/workflows/$wf", "").wantStatus(200)
	copied := w.create("copy", "/v1/workflows/import", string(export.body)).object()
	original := export.object()
	wantContains(t, copied, `{"state": "draft", "version": 1, "source_stale": true}`)
	for own := range strings.FieldsSeq("id state version created_at updated_at") {
		delete(copied, own)
		delete(original, own)
	}
	if diff := cmp.Diff(original, copied); diff != "" {
		t.Errorf("the copy differs (-original +copy):\n%s", diff)
	}

	yaml := w.call("GET", "/v1/workflows/$wf", "", "Accept", "application/yaml").wantStatus(200)
	wantContains(t, w.call("POST", "/v1/workflows/import", string(yaml.body), asYAML...).wantStatus(201).json(),
		`{"name": "Greeter", "description": "d", "settings": {"timeout": "5m"}, "steps": [{"id": "greet"}], "layout": {"greet": [1, 2]}}`)
}

// Nothing is created or audited unless the whole import is valid. Every problem
// has its position, in YAML and in JSON.
func TestImportErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		yaml       bool
		status     int
		code       string
		places     []string
	}{
		{
			"problems everywhere, in YAML",
			"name: \"\"\ndescription: x\nlayout: {A: [0, 0]}\nsteps:\n  - id: a\n    uses: data.sett\n  - id: a\n    uses: data.set\n", true,
			422, "workflow_invalid", []string{"1:7 /name", "3:9 /layout", "6:11 /steps/0/uses", "7:9 /steps/1/id", "7:5 /steps/1/with/values"},
		},
		{
			"problems everywhere, in JSON",
			"{\n\t\"name\": \"\",\n\t\"pinned\": {\"a\": 1},\n\t\"steps\": [\n\t\t{\"id\": \"a\", \"uses\": \"data.sett\"}\n\t]\n}", false,
			422, "workflow_invalid", []string{"2:10 /name", "3:18 /pinned/a", "5:23 /steps/0/uses"},
		},
		{"only the name, in JSON", "{\n  \"name\": \" \"}", false, 400, "invalid_request", []string{"2:11 /name"}},
		{"a member that is not known, in JSON", "{\"name\": \"n\",\n \"stepz\": []}", false, 400, "invalid_request", []string{"2:2 /stepz"}},
		{"values of wrong types, in JSON", "{\"name\": 1,\n \"steps\": {}}", false, 400, "invalid_request", []string{"1:10 /name", "2:11 /steps"}},
		{"JSON that is cut off", "{\"name\":\n", false, 400, "invalid_json", []string{"2:1 /name"}},
		{"YAML that is not well-formed", "name: a\nsteps: [", true, 400, "invalid_json", []string{"2:8 /steps"}},
		{"a text inside JSON", sourcePatch("name: a\nsteps:\n  - id: a\n    uses: nope\n"), false, 422, "workflow_invalid", []string{"4:11 /steps/0/uses"}},
		{"a text inside JSON that cannot be read", sourcePatch("name: a\nstepz: []\n"), false, 422, "workflow_invalid", []string{"2:1 /source"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newTestWorkspace(t)
			w.lenient = true
			headers := []string{"Content-Type", "application/json"}
			if tc.yaml {
				headers = asYAML
			}
			audited := len(w.auditActions())
			wantPositions(t, w.call("POST", "/v1/workflows/import", tc.body, headers...).wantStatus(tc.status, tc.code), tc.places...)
			if got := w.auditActions()[audited:]; len(got) > 0 {
				t.Errorf("the audit log has %v", got)
			}
			wantContains(t, w.call("GET", "/v1/workflows", "").wantStatus(200).json(), `{"data": []}`)
		})
	}
}

// Repeated imports with the same key create one workflow.
func TestImportIdempotency(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	first := w.call("POST", "/v1/workflows/import", greetText, append(asYAML[:2:2], "Idempotency-Key", "k")...).wantStatus(201)
	again := w.call("POST", "/v1/workflows/import", greetText, append(asYAML[:2:2], "Idempotency-Key", "k")...).wantStatus(201)
	if again.header.Get("Idempotent-Replayed") != "true" || string(first.body) != string(again.body) {
		t.Errorf("first %s, again %s", first.body, again.body)
	}
	w.call("POST", "/v1/workflows/import", greetJSON, "Idempotency-Key", "k").wantStatus(422, "idempotency_key_reused")
	w.lenient = true
	w.call("POST", "/v1/workflows/import", `{"name": ""}`, "Idempotency-Key", "other").wantStatus(400)
	w.call("POST", "/v1/workflows/import", greetJSON, "Idempotency-Key", "other").wantStatus(201) // an error is not saved
	if got := len(w.call("GET", "/v1/workflows", "").wantStatus(200).items()); got != 2 {
		t.Errorf("there are %d workflows", got)
	}
}

func TestImportPlanLimits(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.server.query(t, `UPDATE workspaces SET workflows = 100000 WHERE id = ?`, w.id)
	w.call("POST", "/v1/workflows/import", greetJSON).wantStatus(403, "plan_limit_exceeded")
	wantContains(t, w.call("GET", "/v1/workflows", "").wantStatus(200).json(), `{"data": []}`)
	w.server.query(t, `UPDATE workspaces SET workflows = 0 WHERE id = ?`, w.id)
	steps := strings.Repeat(`{"uses": "data.set"},`, 600)
	w.lenient = true
	w.call("POST", "/v1/workflows/import", `{"name": "n", "steps": [`+strings.TrimSuffix(steps, ",")+`]}`).wantStatus(403, "plan_limit_exceeded")
}
