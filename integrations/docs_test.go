package integrations_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The documentation lists every integration and every kind, and its example is a
// valid manifest.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/integrations.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	example := yamlBlock.FindStringSubmatch(page)
	if example == nil {
		t.Fatal("there is no example")
	}
	if _, err := integration.Parse([]byte(example[1]), nil); err != nil {
		t.Errorf("the example: %v", err)
	}
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
