package integrations_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/authoring"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The documentation lists every kind, and its example is a manifest that passes its tests.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/integrations.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	checkExample(t, page)
	checkFirst(t, page)
	for _, kind := range integration.Kinds() {
		if !strings.Contains(page, "\n| `"+kind+"` |") {
			t.Errorf("the page lacks the kind %s", kind)
		}
	}
}

// checkFirst checks the first manifest of the page and its tests, and what the page says
// about mistakes in them.
func checkFirst(t *testing.T, page string) {
	t.Helper()
	root := t.TempDir()
	write := func(old, changed string) *authoring.Set {
		for _, name := range []string{"integration.yaml", "tests.yaml"} {
			_, rest, _ := strings.Cut(page, "```yaml\n# helpdesk/"+name+"\n")
			text, _, found := strings.Cut(rest, "```")
			file := filepath.Join(root, "helpdesk", name)
			err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("# the name\n"+strings.Replace(text, old, changed, 1)), 0o600))
			if err != nil || !found {
				t.Fatalf("%s: %t, %v", name, found, err)
			}
		}
		out, err := authoring.Open([]string{filepath.Join(root, "helpdesk")})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if problems, _ := write("", "").Lint(); len(problems) > 0 {
		t.Errorf("the first manifest: %v", problems)
	}
	report, err := write("", "").Test(t.Context(), "")
	if passed, failed := report.Passed(); err != nil || passed != 2 || failed > 0 {
		t.Errorf("the tests of the first manifest: %d, %d, %v", passed, failed, err)
	}
	problems, _ := write("input.ticket", "input.tiket").Lint()
	if text := strings.ReplaceAll(problems.Error(), root+string(filepath.Separator), ""); !strings.Contains(page, "\n"+text+"\n") {
		t.Errorf("the page lacks what lint says: %s", text)
	}
	report, err = write("output: {id: 7, subject: Broken}", "output: {id: 7, subject: Lost}").Test(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range report.Outcomes {
		text := fmt.Sprintf("\nhelpdesk/tests.yaml:%d: %s, %s\n  %s\n", o.Line, o.Of, o.Test, strings.ReplaceAll(o.Problem, "\n", "\n  "))
		if o.Problem != "" && !strings.Contains(page, text) {
			t.Errorf("the page lacks what test says: %s", text)
		}
	}
}

// checkExample puts the manifest in the page together from its parts, and runs its
// tests.
func checkExample(t *testing.T, page string) {
	t.Helper()
	block := func(start string) string {
		for _, found := range yamlBlock.FindAllStringSubmatch(page, -1) {
			if strings.HasPrefix(found[1], start) {
				return found[1]
			}
		}
		t.Fatalf("there is no example that starts with %q", start)
		return ""
	}
	ofTriggers, _ := strings.CutPrefix(block("operations:\n  tickets_since"), "operations:\n")
	hooks, called, _ := strings.Cut(block("hooks:\n  tickets:\n    scope"), "triggers:\n")
	i, err := integration.Parse([]byte(block("id: acme")+block("errors:")+ofTriggers+called+hooks), nil)
	if err != nil {
		t.Fatalf("the example: %v", err)
	}
	testedHooks, testedCalls, _ := strings.Cut(block("hooks:\n  tickets:\n    - name"), "triggers:\n")
	tests, err := replay.Parse([]byte("connection: {subdomain: my-team}\n" + block("operations:\n  create_ticket") + block("triggers:\n  new_ticket") + testedCalls + testedHooks))
	if err != nil {
		t.Fatalf("the tests of the example: %v", err)
	}
	for _, result := range replay.Run(t.Context(), catalog(t), i, tests, nil, nil) {
		if result.Problem != "" {
			t.Errorf("the example: %s, %s: %s", result.Of, result.Test, result.Problem)
		}
	}
}
