package integrations_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The documentation lists every integration and every kind, and its example is a
// manifest that passes its tests.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/integrations.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	checkExample(t, page)
	names := map[string][]string{}
	for _, i := range catalog(t).List() {
		names[i.Category] = append(names[i.Category], i.Name)
	}
	for category, list := range names {
		slices.Sort(list)
		if row := "| " + category + " | " + strings.Join(list, ", ") + " |"; !strings.Contains(page, row) {
			t.Errorf("the page lacks the row %s", row)
		}
	}
	for _, kind := range integration.Kinds() {
		if !strings.Contains(page, "\n| `"+kind+"` |") {
			t.Errorf("the page lacks the kind %s", kind)
		}
	}
}

// checkExample puts the manifest in the page together from its two parts, and runs its
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
	i, err := integration.Parse([]byte(block("id: acme")+block("errors:")), nil)
	if err != nil {
		t.Fatalf("the example: %v", err)
	}
	tests, err := replay.Parse([]byte("connection: {subdomain: my-team}\n" + block("operations:")))
	if err != nil {
		t.Fatalf("the tests of the example: %v", err)
	}
	for _, result := range replay.Run(t.Context(), catalog(t), i, tests, nil, nil) {
		if result.Problem != "" {
			t.Errorf("the example: %s, %s: %s", result.Operation, result.Test, result.Problem)
		}
	}
}
