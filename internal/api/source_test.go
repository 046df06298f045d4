package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

const greetText = `# Says hello.
name: Greeter
steps:
  - id: greet # the only one
    uses: data.set
    with: {values: {text: hello, n: 1e3}}
`

// sourcePatch returns a patch body with a source text and other members.
func sourcePatch(text string, more ...string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"source": ` + string(quoted) + strings.Join(append([]string{""}, more...), ", ") + `}`
}

func TestSource(t *testing.T) {
	greeter := func(w *testWorkspace) { w.workflow("wf"); w.patch("wf", sourcePatch(greetText)) }
	const steps = `"steps": [{"id": "greet", "uses": "data.set", "with": {"values": {"n": 1000, "text": "hello"}}}]`
	runScenarios(t, []scenario{
		{
			name:  "a workflow saved without a source text has none",
			setup: setupWorkflow, request: "GET /v1/workflows/$wf", status: 200, contains: `{"source": null, "source_stale": false}`,
		},
		{
			name: "a text alone is the definition, and the name", audit: "workflow.renamed workflow.updated",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", scope: "write", body: sourcePatch(greetText), status: 200, members: workflowKeys,
			contains: `{"name": "Greeter", "version": 3, "steps": [{"id": "greet", "with": {"values": {"text": "hello", "n": 1e3}}}], "source_stale": false}`,
			after: func(w *testWorkspace, a *response) {
				if got := a.str("source"); got != greetText {
					w.t.Errorf("the text is %q", got)
				}
				version := w.call("GET", "/v1/workflows/$wf/versions/3", "").wantStatus(http.StatusOK)
				if got := version.str("source"); got != greetText {
					w.t.Errorf("the text of the version is %q", got)
				}
			},
		},
		{
			name: "what a text leaves out is empty", audit: "workflow.renamed workflow.updated",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"settings": {"timeout": "5m"}}`) },
			request: "PATCH /v1/workflows/$wf", body: sourcePatch("name: Nothing\n"), status: 200,
			contains: `{"name": "Nothing", "steps": [], "settings": {}, "description": null}`,
		},
		{
			name:  "a name, a description and a layout beside the text win, and the text has to agree",
			setup: greeter, request: "PATCH /v1/workflows/$wf", body: sourcePatch(greetText, `"name": "Other"`),
			status: 422, code: "workflow_invalid", pointers: []string{"/source"}, message: "its name",
		},
		{
			name: "a source text may come with an equal definition in any notation", audit: "workflow.renamed workflow.updated",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: sourcePatch(greetText, steps), status: 200,
			contains: `{"version": 3, "source_stale": false, "name": "Greeter"}`,
		},
		{
			name:  "a source text that contradicts the definition is rejected",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: sourcePatch(greetText, `"steps": []`),
			status: 422, code: "workflow_invalid", pointers: []string{"/source"}, message: "its steps",
		},
		{
			name: "a comment makes no version, but another ETag, and the version has the new text", audit: "workflow.updated",
			setup: func(w *testWorkspace) {
				greeter(w)
				w.names["etag"] = w.call("GET", "/v1/workflows/$wf", "").header.Get("ETag")
			},
			request: "PATCH /v1/workflows/$wf", body: sourcePatch(greetText + "# bye\n"), status: 200, contains: `{"version": 2}`,
			after: func(w *testWorkspace, a *response) {
				if a.header.Get("ETag") == w.names["etag"] {
					w.t.Errorf("the ETag is still %s", w.names["etag"])
				}
				if got := w.call("GET", "/v1/workflows/$wf/versions/2", "").str("source"); got != greetText+"# bye\n" {
					w.t.Errorf("the text of the version is %q", got)
				}
			},
		},
		{
			name: "the same text again changes nothing",
			setup: func(w *testWorkspace) {
				greeter(w)
				w.names["is"] = string(w.call("GET", "/v1/workflows/$wf", "").body)
			},
			request: "PATCH /v1/workflows/$wf", body: sourcePatch(greetText), status: 200,
			after: func(w *testWorkspace, a *response) {
				if string(a.body) != w.names["is"] {
					w.t.Errorf("got %s after %s", a.body, w.names["is"])
				}
			},
		},
		{
			name: "a change of the definition without a text leaves the text, which is stale then", audit: "workflow.updated",
			setup: greeter, request: "PATCH /v1/workflows/$wf", body: `{"steps": []}`, status: 200, contains: `{"source_stale": true, "version": 3}`,
			after: func(w *testWorkspace, a *response) {
				if a.str("source") != greetText {
					w.t.Errorf("the text is %q", a.str("source"))
				}
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf/versions/3", "").json(), `{"source": null}`)
				wantContains(w.t, w.call("PATCH", "/v1/workflows/$wf", `{`+steps+`}`).wantStatus(http.StatusOK).json(), `{"source_stale": false}`)
			},
		},
		{
			name: "so does a change of the name that the text says", audit: "workflow.renamed",
			setup: greeter, request: "PATCH /v1/workflows/$wf", body: `{"name": "Other"}`, status: 200, contains: `{"source_stale": true, "version": 2}`,
		},
		{
			name:  "the state and the layout are no matter of the text",
			setup: greeter, request: "PATCH /v1/workflows/$wf", body: `{"state": "active", "layout": {"greet": [1, 2]}}`, status: 200,
			contains: `{"source_stale": false, "state": "active"}`, events: "workflow.activated", audit: "workflow.activated",
		},
		{
			name: "a text does not change the state", audit: "workflow.updated",
			setup: greeter, request: "PATCH /v1/workflows/$wf", body: sourcePatch(greetText + "state: active\n"), status: 200, contains: `{"state": "draft"}`,
		},
		{
			name: "null removes the text", audit: "workflow.updated",
			setup: greeter, request: "PATCH /v1/workflows/$wf", body: `{"source": null}`, status: 200, contains: `{"source": null, "source_stale": false, "version": 2}`,
		},
		{
			name: "restoring a version restores its text", audit: "workflow.restored",
			setup:   func(w *testWorkspace) { greeter(w); w.patch("wf", sourcePatch("name: Greeter\nsteps: []\n")) },
			request: "POST /v1/workflows/$wf/versions/2/restore", status: 200, contains: `{"version": 4, "source_stale": false}`,
			after: func(w *testWorkspace, a *response) {
				if a.str("source") != greetText {
					w.t.Errorf("the text is %q", a.str("source"))
				}
			},
		},
		{
			name: "restoring a version without a text leaves the text, which is stale then", audit: "workflow.restored",
			setup: greeter, request: "POST /v1/workflows/$wf/versions/1/restore", status: 200, contains: `{"version": 3, "source_stale": true}`,
		},
		{
			name: "a text may come inside of YAML", audit: "workflow.updated",
			setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", requestHeaders: asYAML, body: "source: |\n  steps: []\n", status: 200,
			contains: `{"source": "steps: []\n", "steps": []}`,
		},
	})
}

func TestInvalidSource(t *testing.T) {
	var scenarios []scenario
	for _, invalid := range []struct{ name, text, says string }{
		{"a text that is not YAML", "steps:\n\t- id: a\n", "line 2, column 1"},
		{"an anchor", "name: &a b\n", "anchors"},
		{"an unknown member", "steps:\n  - id: a\n    use: data.set\n", "line 3, column 5: /steps/0/use"},
		{"a value of the wrong type", "steps: 1\n", "/steps"},
		{"a text inside of a text", "source: a\n", "/source"},
		{"a place that is none", "layout: {a: [1]}\n", "two numbers"},
	} {
		scenarios = append(scenarios, scenario{
			name: invalid.name + " is rejected", setup: setupWorkflow,
			request: "PATCH /v1/workflows/$wf", body: sourcePatch(invalid.text),
			status: 422, code: "workflow_invalid", pointers: []string{"/source"}, message: invalid.says,
		})
	}
	runScenarios(t, append(scenarios,
		scenario{
			name: "problems of the definition have their place in the text", setup: setupWorkflow,
			request: "PATCH /v1/workflows/$wf", body: sourcePatch("# one\nsteps:\n  - id: a\n    uses: data.sett\n"),
			status: 422, code: "workflow_invalid", pointers: []string{"/steps/0/uses"},
			after: func(w *testWorkspace, a *response) {
				wantContains(w.t, a.object()["error"], `{"details": [{"line": 4, "column": 11}]}`)
			},
		},
		scenario{
			name: "a text of more than 256 KiB is rejected", setup: setupWorkflow, lenient: true,
			request: "PATCH /v1/workflows/$wf", body: sourcePatch("# " + strings.Repeat("x", 256<<10) + "\nsteps: []\n"),
			status: 400, code: "invalid_request", pointers: []string{"/source"},
		},
	))
}

func TestYAMLBodyBecomesSource(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a body that says the whole workflow is its text", audit: "workflow.renamed workflow.updated",
			setup: func(w *testWorkspace) { w.workflow("wf") }, request: "PATCH /v1/workflows/$wf", requestHeaders: asYAML, body: greetText, status: 200,
			contains: `{"source_stale": false}`,
			after: func(w *testWorkspace, a *response) {
				if a.str("source") != greetText {
					w.t.Errorf("the text is %q", a.str("source"))
				}
			},
		},
		{
			name: "one that says a part of it is not", audit: "workflow.renamed workflow.updated",
			setup: func(w *testWorkspace) {
				w.workflow("wf")
				w.patch("wf", `{"settings": {"timeout": "5m"}}`)
			},
			request: "PATCH /v1/workflows/$wf", requestHeaders: asYAML, body: greetText, status: 200, contains: `{"source": null, "settings": {"timeout": "5m"}}`,
		},
		{
			name: "one that is too long for a text is only a patch", audit: "workflow.renamed workflow.updated",
			setup: func(w *testWorkspace) { w.workflow("wf") }, request: "PATCH /v1/workflows/$wf", requestHeaders: asYAML,
			body: greetText + "# " + strings.Repeat("x", 256<<10) + "\n", status: 200, contains: `{"source": null, "name": "Greeter"}`,
		},
	})
}
