package api_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var asYAML = []string{"Content-Type", "application/yaml"}

// problemPositions returns the problems of an error or a validation as
// line:column pointer.
func problemPositions(a *response) []string {
	a.t.Helper()
	list, isValidation := a.object()["problems"].([]any)
	if !isValidation {
		list, _ = a.object()["error"].(map[string]any)["details"].([]any)
	}
	var out []string
	for _, item := range list {
		problem := item.(map[string]any)
		out = append(out, fmt.Sprintf("%v:%v %v", problem["line"], problem["column"], problem["pointer"]))
	}
	return out
}

func wantPositions(t *testing.T, a *response, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, problemPositions(a)); diff != "" {
		t.Errorf("places of %s (-want +got):\n%s", a.body, diff)
	}
}

// Every problem has a line and a column, whatever detected it.
func TestYAMLProblemPositions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		status     int // of a change
		code       string
		says       string
		places     []string
	}{
		{
			"an unknown field inside a step", "steps:\n  - id: a\n    uses: data.set\n    whit: {values: {}}\n",
			400, "invalid_request", "whit", []string{"4:5 /steps/0/whit"},
		},
		{
			"several fields of the wrong type", "steps:\n  - id: 1\n    uses: [x]\ntriggers: no\n",
			400, "invalid_request", "must be a string", []string{"2:9 /steps/0/id", "3:11 /steps/0/uses", "4:11 /triggers"},
		},
		{"null where it means nothing", "steps:\n", 400, "invalid_request", "must not be null", []string{"1:1 /steps"}},
		{
			"an unknown action", "# a file\nsteps:\n  - {id: größe, uses: data.set}\n  - id: b\n    uses: data.sett\n    with: {values: {}}\n",
			422, "workflow_invalid", "/id", []string{"3:10 /steps/0/id", "3:5 /steps/0/with/values", "5:11 /steps/1/uses"},
		},
		{
			"a bad expression in text over lines",
			"steps:\n  - id: a\n    uses: data.set\n    with:\n      values:\n        text: |\n          Hello,\n          ${{ 1 + }}\n",
			422, "workflow_invalid", "/steps/0/with/values/text", []string{"6:15 /steps/0/with/values/text"},
		},
		{
			"a field that is missing", "steps:\n  - id: a\n    uses: http.request\n    with:\n      method: GET\n",
			422, "workflow_invalid", "url", []string{"5:7 /steps/0/with/url"},
		},
		{
			"an id that is used twice", "steps:\n  - id: a\n    uses: data.set\n    with: {values: {}}\n  - uses: data.set\n    with: {values: {}}\n    id: a\n",
			422, "workflow_invalid", "used by another step", []string{"7:9 /steps/1/id"},
		},
		{
			"a step that is needed and not there", "steps: [{id: a, uses: data.set, with: {values: {}}, needs: [b]}]\n",
			422, "workflow_invalid", "no step", []string{"1:61 /steps/0/needs/0"},
		},
		{"wrong indentation", "steps:\n  - id: a\n   uses: b\n", 400, "invalid_json", "line 3, column 4", []string{"3:4 /steps"}},
		{"a tab", "steps:\n\t- id: a\n", 400, "invalid_json", "a tab cannot indent", []string{"2:1 /steps"}},
		{"a key that is there twice", "steps: []\nsteps: []\n", 400, "invalid_json", "duplicate key", []string{"2:1 /steps"}},
		{"an anchor", "steps: &x []\n", 400, "invalid_json", "anchors", []string{"1:8 /steps"}},
		{"too many levels", "steps: " + strings.Repeat("[", 70), 400, "invalid_request", "deeper than 64", []string{"1:71 /steps" + strings.Repeat("/0", 63)}},
		{"no document", "# nothing\n", 400, "invalid_json", "empty", []string{"2:1 "}},
		{"something else than an object", "- 1\n", 400, "invalid_request", "must be an object", []string{"1:1 "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newTestWorkspace(t)
			setupWorkflow(w)
			w.lenient = true // validation accepts what the schema rejects
			changed := w.call("PATCH", "/v1/workflows/$wf", tc.body, asYAML...).wantStatus(tc.status, tc.code)
			if !strings.Contains(changed.message(), tc.says) {
				t.Errorf("the message is %q, want %q in it", changed.message(), tc.says)
			}
			wantPositions(t, changed, tc.places...)

			checked := w.call("POST", "/v1/workflows/$wf/validate", tc.body, asYAML...)
			if tc.status == http.StatusUnprocessableEntity {
				checked.wantStatus(http.StatusOK)
			} else {
				checked.wantStatus(tc.status, tc.code)
			}
			wantPositions(t, checked, tc.places...)
		})
	}
}

func TestJSONProblemsHaveNoPositions(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupWorkflow(w)
	for _, body := range []string{`{"nmae": 1}`, `{"steps": [{"id": "a", "uses": "x"}]}`, `{"steps": null}`} {
		for _, line := range problemPositions(w.call("PATCH", "/v1/workflows/$wf", body)) {
			if !strings.HasPrefix(line, "<nil>:<nil> /") {
				t.Errorf("%s: %s", body, line)
			}
		}
	}
}

func TestYAMLRequests(t *testing.T) {
	t.Parallel()
	t.Run("under three names", func(t *testing.T) {
		t.Parallel()
		w := newTestWorkspace(t)
		setupWorkflow(w)
		w.lenient = true // only one is documented
		for i, media := range []string{"application/yaml", "application/x-yaml", "text/yaml", "Application/YAML; charset=UTF-8"} {
			name := fmt.Sprintf("Name %d", i)
			if got := w.call("PATCH", "/v1/workflows/$wf", "name: "+name, "Content-Type", media).wantStatus(http.StatusOK).str("name"); got != name {
				t.Errorf("%s: the name is %q", media, got)
			}
			w.call("POST", "/v1/workflows/$wf/validate", "steps: []", "Content-Type", media).wantStatus(http.StatusOK)
		}
		for _, media := range []string{"application/yaml; charset=latin1", "text/x-yaml", "application/json+yaml"} {
			w.call("PATCH", "/v1/workflows/$wf", "name: x", "Content-Type", media).wantStatus(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
	})
	t.Run("nowhere else", func(t *testing.T) {
		t.Parallel()
		w := newTestWorkspace(t)
		createOneOfEach(w)
		for _, route := range routes() {
			takes := []string{
				"PATCH /v1/workflows/{id}", "POST /v1/workflows/{id}/validate", "POST /v1/workflows/import",
				"POST /v1/integrations", "POST /v1/integrations/from-openapi", "PUT /v1/integrations/{id}",
			}
			if slices.Contains(takes, routeName(route)) || route.Method == http.MethodGet || streamsBody(route.Method, route.Path) {
				continue
			}
			id, _, _, _ := collection(route)
			w.call(route.Method, routePath(route, id), "{}", asYAML...).wantStatus(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
	})
	t.Run("with an idempotency key", func(t *testing.T) {
		t.Parallel()
		w := newTestWorkspace(t)
		setupWorkflow(w)
		const body = "steps:\n  - id: a\n    uses: data.nothing\n"
		first := w.withIdempotencyKey("key", "/v1/workflows/$wf/validate", body, asYAML...).wantStatus(http.StatusOK)
		wantPositions(t, first, "3:11 /steps/0/uses")
		wantReplay(t, first, w.withIdempotencyKey("key", "/v1/workflows/$wf/validate", body, asYAML...))
		w.withIdempotencyKey("key", "/v1/workflows/$wf/validate", "steps: []\n", asYAML...).wantStatus(http.StatusUnprocessableEntity, "idempotency_key_reused")
	})
	t.Run("without a body", func(t *testing.T) {
		t.Parallel()
		w := newTestWorkspace(t)
		setupWorkflow(w)
		w.call("POST", "/v1/workflows/$wf/validate", "", asYAML...).wantStatus(http.StatusOK)
		w.call("PATCH", "/v1/workflows/$wf", "", asYAML...).wantStatus(http.StatusBadRequest, "invalid_json")
	})
}

// wholeFormat has every field of the format, and strings that are hard to
// quote.
const wholeFormat = `{
"name": "Größe: no # 1 😀", "description": "Two lines.\n\n  - indented: yes\r\n\ttab\n",
"triggers": [{"id": "on", "type": "manual"}],
"settings": {"timeout": "1h", "concurrency": {"key": "${{ trigger.payload.customer }}", "limit": 3, "on_limit": "drop"}},
"steps": [
  {"id": "get", "name": "yes", "uses": "http.request", "needs": [], "timeout": "30s",
   "with": {"url": "https://shop.example/orders/${{ trigger.payload.id }}", "method": "POST", "headers": {"x-on": "0777", "y": "1e3"}, "body": {
     "numbers": [0, -1, 1.50, 1e3, 12345678901234567890, 1e-7], "words": ["null", "~", "true", "no", "", " x ", "- a", "a: b", "#", "2001-01-01", "12:30"],
     "nothing": null, "empty": {}, "none": [], "nested": [[1, [2, {"a": [{"b": {}}]}]]], "0": "zero", "": "empty", "a b: c": "\u2028\u0007\\ \"q\" 'q'"}},
   "retry": {"max_attempts": 5, "initial": "1s", "factor": 1.5, "max_delay": "5m"}},
  {"id": "code", "needs": ["get"], "if": "steps.get.output.status == 200", "uses": "data.set", "on_error": "continue", "join": "always",
   "with": {"values": {"code": "if (a) {\n  return \"x\"; // ${{ steps.get.output.body }}\n}\n\n", "indented": "    first\n  second", "newlines": "\n\n", "trailing": "a \n b\t\n"}}},
  {"id": "lines", "foreach": "${{ steps.get.output.body.lines }}", "parallel": 5, "if": false, "steps": [
    {"id": "poll", "repeat": {"until": "index > 2", "every": "1s", "max": 3}, "steps": [
      {"id": "inner", "uses": "data.set", "with": {"values": {"sku": "${{ item.sku }}"}}}]}]}],
"layout": {"get": [0, -80.5], "@on": [1e3, 2]}}`

// YAML that is pulled, pushed to another workflow and pulled again is equal.
// Pushing it back changes only the stored source.
func TestYAMLRoundTrip(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	w.workflow("other")
	w.lenient = true // the schema only covers handwritten files
	w.patch("wf", wholeFormat)
	want := w.call("GET", "/v1/workflows/$wf", "").wantStatus(http.StatusOK)
	pulled := w.call("GET", "/v1/workflows/$wf", "", "Accept", "application/yaml").wantStatus(http.StatusOK)
	if got := pulled.header.Get("Content-Type"); got != "application/yaml" {
		t.Errorf("the content type is %q", got)
	}
	if pulled.header.Get("ETag") != want.header.Get("ETag") || pulled.header.Get("Vary") != "Accept" || want.header.Get("Vary") != "Accept" {
		t.Errorf("the headers are %v and %v", want.header, pulled.header)
	}

	w.call("PATCH", "/v1/workflows/$wf", sourcePatch(string(pulled.body))).wantStatus(http.StatusOK)
	want = w.call("GET", "/v1/workflows/$wf", "").wantStatus(http.StatusOK)
	pushed := w.call("PATCH", "/v1/workflows/$wf", string(pulled.body), "Content-Type", "application/yaml", "If-Match", want.header.Get("ETag")).wantStatus(http.StatusOK)
	if diff := cmp.Diff(want.json(), pushed.json()); diff != "" || pushed.header.Get("ETag") != want.header.Get("ETag") {
		t.Errorf("pushing it back changed the workflow (-was +is):\n%s", diff)
	}

	elsewhere := w.call("PATCH", "/v1/workflows/$other", string(pulled.body), asYAML...).wantStatus(http.StatusOK)
	got, source := elsewhere.object(), want.object()
	for _, member := range []string{"name", "description", "triggers", "steps", "settings", "layout"} {
		if diff := cmp.Diff(source[member], got[member]); diff != "" {
			t.Errorf("%s of the other workflow (-want +got):\n%s", member, diff)
		}
	}
	again := w.call("GET", "/v1/workflows/$other", "", "Accept", "application/yaml").wantStatus(http.StatusOK)
	if diff := cmp.Diff(string(pulled.body), string(again.body)); diff != "" {
		t.Errorf("pulled again (-want +got):\n%s", diff)
	}

	version := w.call("GET", "/v1/workflows/$wf/versions/2", "", "Accept", "application/yaml").wantStatus(http.StatusOK)
	if got := version.header.Get("Vary"); got != "Accept" {
		t.Errorf("Vary is %q", got)
	}
	w.workflow("third")
	restored := w.call("PATCH", "/v1/workflows/$third", string(version.body), asYAML...).wantStatus(http.StatusOK).object()
	for _, member := range []string{"triggers", "steps", "settings"} {
		if diff := cmp.Diff(source[member], restored[member]); diff != "" {
			t.Errorf("%s of the version (-want +got):\n%s", member, diff)
		}
	}
}

func TestGetWorkflowAsYAML(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("empty")
	w.workflow("full", `{"id": "greet", "uses": "data.set", "with": {"values": {"text": "Hello ${{ trigger.payload.name }}"}}}`, waitStep)
	w.patch("full", `{"description": "One.\nTwo.", "settings": {"timeout": "5m"}, "layout": {"greet": [0, 40]}}`)
	for name, want := range map[string]string{
		"empty": "name: Workflow empty\ntriggers: []\nsteps: []\n",
		"full": `name: Workflow full
description: |-
  One.
  Two.
triggers: []
steps:
  - id: greet
    uses: data.set
    with:
      values:
        text: Hello ${{ trigger.payload.name }}
  - id: pause
    uses: flow.wait
    with:
      for: 1h
settings:
  timeout: 5m
layout:
  greet:
    - 0
    - 40
`,
	} {
		a := w.call("GET", "/v1/workflows/$"+name, "", "Accept", "application/yaml").wantStatus(http.StatusOK)
		if diff := cmp.Diff(want, string(a.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestContentNegotiation(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	for accept, want := range map[string]string{
		"": "json", "*/*": "json", "application/*": "json", "application/json": "json", "text/html, */*;q=0.8": "json", "image/png": "json",
		"application/yaml": "yaml", "Application/YAML": "yaml", "application/x-yaml": "yaml", "text/yaml": "yaml", "application/yaml;q=0.1": "yaml",
		"application/yaml, application/json": "json", "application/json;q=0.5, application/yaml": "yaml", "application/yaml;q=0.5, application/json;q=0.6": "json",
		"application/yaml, */*": "json", "application/yaml, */*;q=0.1": "yaml", "application/yaml;q=0": "json", "*/*, application/json;q=0": "yaml",
		"application/*;q=0.9, application/json;q=0.2": "yaml", "text/*": "json", "application/yaml;q=x": "json", "application/yaml;q=2": "json",
		"application/yaml;q=nan": "json", ";;,,": "json", "application/yaml; q=0.3, text/yaml; q=0.9, application/json; q=0.5": "yaml",
	} {
		for _, path := range []string{"/v1/workflows/$wf", "/v1/workflows/$wf/versions/1"} {
			a := w.call("GET", path, "", "Accept", accept).wantStatus(http.StatusOK)
			if got := a.header.Get("Content-Type"); got != "application/"+want {
				t.Errorf("%s with Accept: %s is %s, want %s", path, accept, got, want)
			}
		}
	}
	w.call("GET", "/v1/workflows/wf_none", "", "Accept", "application/yaml").wantStatus(http.StatusNotFound, "workflow_not_found")
}

// YAML examples in the documentation can be saved.
func TestYAMLInDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)\n```yaml\n(.*?\n)```\n").FindAllStringSubmatch(string(text), -1)
	if len(examples) == 0 {
		t.Fatal("there are no examples")
	}
	for _, example := range examples {
		w := newTestWorkspace(t)
		w.workflow("wf")
		w.call("PATCH", "/v1/workflows/$wf", example[1], asYAML...).wantStatus(http.StatusOK)
	}
}
