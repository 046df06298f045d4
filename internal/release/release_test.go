package release_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	actions "github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/release"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

var update = flag.Bool("update", false, "write what this release knows, if CHANGELOG.md has it")

var heading = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.0)\]`)

// TestEveryReleaseIsKnown checks that what each release knows is on record, and that the
// releases in the changelog come before this one. Run it with -update when a release is
// made.
func TestEveryReleaseIsKnown(t *testing.T) {
	t.Parallel()
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	released := heading.FindAllStringSubmatch(string(changes), -1)
	if len(released)+1 != release.Number && !*update {
		t.Errorf("%d releases are in CHANGELOG.md, so the next one is number %d, not %d", len(released), len(released)+1, release.Number)
	}
	for i, match := range released {
		number, name := len(released)-i, match[1]
		if got := release.Name(number); got != name {
			t.Errorf("release %d is %s in CHANGELOG.md, %s in names", number, name, got)
		}
		dir := filepath.Join("known", name)
		if _, err := os.Stat(dir); err == nil || name == "0.1.0" {
			continue
		}
		if !*update {
			t.Errorf("%s does not exist: `go test ./internal/release -update` writes it", dir)
			continue
		}
		writeKnown(t, dir)
	}
}

// writeKnown writes what the present code knows.
func writeKnown(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	schema, err := json.MarshalIndent(withoutTexts(presentSchema(t), false), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"schema.json": string(schema), "words.txt": strings.Join(expr.Vocabulary(), "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func presentSchema(t *testing.T) any {
	t.Helper()
	known, err := actions.New(actions.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	types, err := triggers.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := workflow.Schema(known, types.Format(), true)
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// withoutTexts removes the members of a schema that are only for people. In an object whose
// keys are names, such as properties, nothing is removed.
func withoutTexts(value any, keysAreNames bool) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range value {
			switch key {
			case "title", "description", "default", "examples":
				if !keysAreNames {
					continue
				}
			}
			holdsNames := key == "properties" || key == "$defs" || key == "patternProperties"
			out[key] = withoutTexts(member, holdsNames && !keysAreNames)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = withoutTexts(item, false)
		}
		return out
	}
	return value
}

func TestLevel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps string
		words []string
		want  int
	}{
		"nothing":               {`[]`, nil, 2},
		"an old action":         {`[{"id": "a", "uses": "http.request", "with": {"url": "https://a.example/"}}]`, []string{"steps.output", "date/1"}, 2},
		"a new action":          {`[{"id": "a", "uses": "table.get", "with": {"table": "t", "key": "k"}}]`, nil, 3},
		"a new member":          {`[{"id": "a", "uses": "http.request", "mask": ["/body"], "with": {"url": "https://a.example/"}}]`, nil, 3},
		"a connection":          {`[{"id": "a", "uses": "http.request", "connection": "c", "with": {"url": "https://a.example/"}}]`, nil, 3},
		"inside a loop":         {`[{"id": "l", "foreach": "[1]", "steps": [{"id": "a", "uses": "http.request", "connection": "c", "with": {"url": "https://a.example/"}}]}]`, nil, 3},
		"a new input":           {`[{"id": "a", "uses": "http.request", "with": {"url": "https://a.example/", "xml": "<a/>"}}]`, nil, 3},
		"a new function":        {`[]`, []string{"uuid/0"}, 3},
		"a new argument":        {`[]`, []string{"date/2"}, 3},
		"a name of the release": {`[]`, []string{"previous"}, 3},
		"a file":                {`[]`, []string{"$file"}, 3},
	} {
		got, err := release.Level([]byte(`{"triggers": [], "steps": `+test.steps+`, "settings": {}}`), test.words)
		if err != nil || got != test.want {
			t.Errorf("%s: level %d, %v; want %d", name, got, err, test.want)
		}
	}
}
