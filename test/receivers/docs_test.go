package receivers_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The samples in the documentation are the ones that are tested here.
func TestDocumentationQuotesSamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	marked := regexp.MustCompile(`(?s)(?:#|//) begin: verify\n(.*?)(?:#|//) end: verify`)
	for _, file := range []string{"verify.go", "verify.ts", "verify.py", "verify.sh"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sample := marked.FindSubmatch(text)
		if len(sample) < 2 || !strings.Contains(string(page), "\n"+strings.Trim(string(sample[1]), "\n")+"\n```") {
			t.Errorf("docs/webhooks.md does not quote %s exactly", file)
		}
	}
}
