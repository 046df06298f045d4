package workflow_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/workflow"
)

var example = regexp.MustCompile("(?s)<!-- workflow -->\n```json\n(.*?)```")

// FuzzDefinition reads definitions as the API does. Compile must return for any
// input, always with the same result, and a definition must survive encoding and
// decoding as JSON and as YAML.
func FuzzDefinition(f *testing.F) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "workflows.md"))
	if err != nil {
		f.Fatal(err)
	}
	found := example.FindAllSubmatch(guide, -1)
	if len(found) == 0 {
		f.Fatal("no workflows in the documentation")
	}
	for _, match := range found {
		f.Add(match[1])
	}
	for _, seed := range []string{
		`{}`, `{"steps": [{"id": "a", "needs": ["b"]}, {"id": "b", "needs": ["a"]}]}`,
		`{"steps": [{"id": "a", "if": false, "join": "first", "on_error": "continue", "uses": "flow.wait", "with": {"for": "${{ 1 +"}}]}`,
		`{"steps": [{"id": "a", "repeat": {"until": "index > 1", "every": "1s"}, "steps": [{"id": "b", "foreach": "[1]", "steps": []}]}]}`,
		`{"triggers": [{"id": "a", "type": "schedule", "cron": "*/5 8-18 * JAN MON-FRI", "timezone": "Europe/Paris", "missed": "latest", "jitter": "0s"},
			{"id": "b", "type": "event", "events": ["run.failed"], "workflows": ["wf_01m7f8njhve3pt0yekqqme4qcm"]},
			{"id": "c", "type": "poll", "every": "1m", "request": {"url": "https://a.example/?c=${{ cursor }}"}, "items": "response.body", "key": "item.id", "cursor": "response.body.next"},
			{"id": "d", "type": "webhook", "methods": ["GET"], "verify": {"scheme": "hmac", "secret": "${{ secrets.s }}", "header": "x", "signed": "{t}.{body}", "timestamp": "t"},
				"dedupe": "${{ trigger.headers.x }}", "respond": "result", "rate": 5}]}`,
		`{"triggers": [{"id": "a", "type": "manual"}], "settings": {"timeout": "1h", "concurrency": {"key": "${{ trigger.payload.k }}", "limit": 1}}}`,
		`{"steps": [{"id": "a", "with": {"n": 1.0e2, "big": 9007199254740993, "text": "\u2028<&>no"}, "retry": {"factor": 1.5}}]}`,
	} {
		f.Add([]byte(seed))
	}
	known, err := catalog.New(catalog.Deps{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d workflow.Definition
		if strictjson.Decode(data, &d) != nil {
			return
		}
		program, problems := workflow.Compile(d, known, types(t))
		if (program == nil) != (len(problems) > 0) {
			t.Fatalf("either a program or problems expected: %v", problems)
		}
		if _, again := workflow.Compile(d, known, types(t)); !cmp.Equal(problems, again) {
			t.Fatalf("Compile is not deterministic (-first +second):\n%s", cmp.Diff(problems, again))
		}
		canonical := canonicalOf(t, d)
		parsed, err := workflow.ParseDefinition(canonical)
		if err != nil {
			t.Fatalf("%s: %v", canonical, err)
		}
		if again := canonicalOf(t, parsed); !bytes.Equal(canonical, again) {
			t.Fatalf("JSON does not round-trip:\n%s\n%s", canonical, again)
		}
		if again := canonicalOf(t, throughYAML(t, canonical)); !bytes.Equal(canonical, again) {
			t.Fatalf("YAML does not round-trip:\n%s\n%s", canonical, again)
		}
	})
}

func canonicalOf(t *testing.T, d workflow.Definition) []byte {
	t.Helper()
	canonical, err := d.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return canonical
}

// throughYAML encodes a definition as YAML and decodes it again.
func throughYAML(t *testing.T, canonical []byte) (d workflow.Definition) {
	t.Helper()
	text, err := strictyaml.Encode(canonical)
	if err != nil {
		t.Fatalf("%s: %v", canonical, err)
	}
	document, err := strictyaml.Decode(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := strictjson.Decode(document.JSON, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}
