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

// sourceOf is a body of a patch with a text and what else is given.
func sourceOf(text string, more ...string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"source": ` + string(quoted) + strings.Join(append([]string{""}, more...), ", ") + `}`
}

func TestSource(t *testing.T) {
	greeter := func(w *world) { w.workflow("wf"); w.patch("wf", sourceOf(greetText)) }
	const steps = `"steps": [{"id": "greet", "uses": "data.set", "with": {"values": {"n": 1000, "text": "hello"}}}]`
	runScenarios(t, []scenario{
		{
			name:  "a workflow that nobody wrote a text for has none",
			given: givenWorkflow, call: "GET /v1/workflows/$wf", status: 200, answer: `{"source": null, "source_stale": false}`,
		},
		{
			name:  "a text alone is the definition, and the name",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", as: "write", body: sourceOf(greetText), status: 200, keys: workflowKeys,
			answer: `{"name": "Greeter", "version": 3, "steps": [{"id": "greet", "with": {"values": {"text": "hello", "n": 1e3}}}], "source_stale": false}`,
			then: func(w *world, a *answer) {
				if got := a.text("source"); got != greetText {
					w.t.Errorf("the text is %q", got)
				}
				version := w.call("GET", "/v1/workflows/$wf/versions/3", "").want(http.StatusOK)
				if got := version.text("source"); got != greetText {
					w.t.Errorf("the text of the version is %q", got)
				}
			},
		},
		{
			name:  "what a text leaves out is empty",
			given: func(w *world) { givenWorkflow(w); w.patch("wf", `{"settings": {"timeout": "5m"}}`) },
			call:  "PATCH /v1/workflows/$wf", body: sourceOf("name: Nothing\n"), status: 200,
			answer: `{"name": "Nothing", "steps": [], "settings": {}, "description": null}`,
		},
		{
			name:  "a name, a description and a layout beside the text win, and the text has to agree",
			given: greeter, call: "PATCH /v1/workflows/$wf", body: sourceOf(greetText, `"name": "Other"`),
			status: 422, code: "workflow_invalid", points: []string{"/source"}, says: "its name",
		},
		{
			name:  "a text may come with the definition that it says, however that is written",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", body: sourceOf(greetText, steps), status: 200,
			answer: `{"version": 3, "source_stale": false, "name": "Greeter"}`,
		},
		{
			name:  "a text that says something else than the definition beside it is refused",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", body: sourceOf(greetText, `"steps": []`),
			status: 422, code: "workflow_invalid", points: []string{"/source"}, says: "its steps",
		},
		{
			name: "a comment makes no version, but another ETag, and the version has the new text",
			given: func(w *world) {
				greeter(w)
				w.names["etag"] = w.call("GET", "/v1/workflows/$wf", "").header.Get("ETag")
			},
			call: "PATCH /v1/workflows/$wf", body: sourceOf(greetText + "# bye\n"), status: 200, answer: `{"version": 2}`,
			then: func(w *world, a *answer) {
				if a.header.Get("ETag") == w.names["etag"] {
					w.t.Errorf("the ETag is still %s", w.names["etag"])
				}
				if got := w.call("GET", "/v1/workflows/$wf/versions/2", "").text("source"); got != greetText+"# bye\n" {
					w.t.Errorf("the text of the version is %q", got)
				}
			},
		},
		{
			name:  "the same text again changes nothing",
			given: func(w *world) { greeter(w); w.names["is"] = string(w.call("GET", "/v1/workflows/$wf", "").body) },
			call:  "PATCH /v1/workflows/$wf", body: sourceOf(greetText), status: 200,
			then: func(w *world, a *answer) {
				if string(a.body) != w.names["is"] {
					w.t.Errorf("got %s after %s", a.body, w.names["is"])
				}
			},
		},
		{
			name:  "a change of the definition without a text leaves the text, which is stale then",
			given: greeter, call: "PATCH /v1/workflows/$wf", body: `{"steps": []}`, status: 200, answer: `{"source_stale": true, "version": 3}`,
			then: func(w *world, a *answer) {
				if a.text("source") != greetText {
					w.t.Errorf("the text is %q", a.text("source"))
				}
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf/versions/3", "").json(), `{"source": null}`)
				wantContains(w.t, w.call("PATCH", "/v1/workflows/$wf", `{`+steps+`}`).want(http.StatusOK).json(), `{"source_stale": false}`)
			},
		},
		{
			name:  "so does a change of the name that the text says",
			given: greeter, call: "PATCH /v1/workflows/$wf", body: `{"name": "Other"}`, status: 200, answer: `{"source_stale": true, "version": 2}`,
		},
		{
			name:  "the state and the layout are no matter of the text",
			given: greeter, call: "PATCH /v1/workflows/$wf", body: `{"state": "active", "layout": {"greet": [1, 2]}}`, status: 200,
			answer: `{"source_stale": false, "state": "active"}`, events: "workflow.activated", audit: "workflow.activated",
		},
		{
			name:  "a text does not change the state",
			given: greeter, call: "PATCH /v1/workflows/$wf", body: sourceOf(greetText + "state: active\n"), status: 200, answer: `{"state": "draft"}`,
		},
		{
			name:  "null removes the text",
			given: greeter, call: "PATCH /v1/workflows/$wf", body: `{"source": null}`, status: 200, answer: `{"source": null, "source_stale": false, "version": 2}`,
		},
		{
			name:  "restoring a version restores its text",
			given: func(w *world) { greeter(w); w.patch("wf", sourceOf("name: Greeter\nsteps: []\n")) },
			call:  "POST /v1/workflows/$wf/versions/2/restore", status: 200, answer: `{"version": 4, "source_stale": false}`,
			then: func(w *world, a *answer) {
				if a.text("source") != greetText {
					w.t.Errorf("the text is %q", a.text("source"))
				}
			},
		},
		{
			name:  "restoring a version without a text leaves the text, which is stale then",
			given: greeter, call: "POST /v1/workflows/$wf/versions/1/restore", status: 200, answer: `{"version": 3, "source_stale": true}`,
		},
		{
			name:  "a text may come inside of YAML",
			given: givenWorkflow, call: "PATCH /v1/workflows/$wf", with: asYAML, body: "source: |\n  steps: []\n", status: 200,
			answer: `{"source": "steps: []\n", "steps": []}`,
		},
	})
}

func TestSourceIsChecked(t *testing.T) {
	var scenarios []scenario
	for _, refused := range []struct{ name, text, says string }{
		{"a text that is not YAML", "steps:\n\t- id: a\n", "line 2, column 1"},
		{"an anchor", "name: &a b\n", "anchors"},
		{"an unknown member", "steps:\n  - id: a\n    use: data.set\n", "line 3, column 5: /steps/0/use"},
		{"a value of the wrong type", "steps: 1\n", "/steps"},
		{"a text inside of a text", "source: a\n", "/source"},
		{"a place that is none", "layout: {a: [1]}\n", "two numbers"},
	} {
		scenarios = append(scenarios, scenario{
			name: refused.name + " is refused", given: givenWorkflow,
			call: "PATCH /v1/workflows/$wf", body: sourceOf(refused.text),
			status: 422, code: "workflow_invalid", points: []string{"/source"}, says: refused.says,
		})
	}
	runScenarios(t, append(scenarios,
		scenario{
			name: "problems of the definition have their place in the text", given: givenWorkflow,
			call: "PATCH /v1/workflows/$wf", body: sourceOf("# one\nsteps:\n  - id: a\n    uses: data.sett\n"),
			status: 422, code: "workflow_invalid", points: []string{"/steps/0/uses"},
			then: func(w *world, a *answer) {
				wantContains(w.t, a.object()["error"], `{"details": [{"line": 4, "column": 11}]}`)
			},
		},
		scenario{
			name: "a text of more than 256 KiB is refused", given: givenWorkflow, loose: true,
			call: "PATCH /v1/workflows/$wf", body: sourceOf("# " + strings.Repeat("x", 256<<10) + "\nsteps: []\n"),
			status: 400, code: "invalid_request", points: []string{"/source"},
		},
	))
}

func TestSourceOfAYAMLBody(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a body that says the whole workflow is its text",
			given: func(w *world) { w.workflow("wf") }, call: "PATCH /v1/workflows/$wf", with: asYAML, body: greetText, status: 200,
			answer: `{"source_stale": false}`,
			then: func(w *world, a *answer) {
				if a.text("source") != greetText {
					w.t.Errorf("the text is %q", a.text("source"))
				}
			},
		},
		{
			name: "one that says a part of it is not",
			given: func(w *world) {
				w.workflow("wf")
				w.patch("wf", `{"settings": {"timeout": "5m"}}`)
			},
			call: "PATCH /v1/workflows/$wf", with: asYAML, body: greetText, status: 200, answer: `{"source": null, "settings": {"timeout": "5m"}}`,
		},
		{
			name:  "one that is too long for a text is only a patch",
			given: func(w *world) { w.workflow("wf") }, call: "PATCH /v1/workflows/$wf", with: asYAML,
			body: greetText + "# " + strings.Repeat("x", 256<<10) + "\n", status: 200, answer: `{"source": null, "name": "Greeter"}`,
		},
	})
}
