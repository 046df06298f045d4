// Package oracles_test checks that the recordings of the integrations are what the
// vendors' own clients send. `go test ./integrations` compares them with the manifests.
package oracles_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/lane"
)

// update writes the recordings instead of comparing them: go test ./test/oracles -update.
var update = flag.Bool("update", false, "write the recordings of the integrations")

const integrations = "../../integrations"

func TestRecordings(t *testing.T) {
	if !*update {
		lane.LongOnly(t)
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Fatal("run `npm ci --ignore-scripts` in test/oracles first; `make test-long` does it")
	}
	node(t, "node_modules/typescript/bin/tsc") // clients send names that they do not know
	out := t.TempDir()
	if *update {
		out = integrations
	}
	node(t, "record.mjs", out)
	scripts, err := filepath.Glob("services/*.mjs")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("there are no services: %v", err)
	}
	for _, script := range scripts {
		id := strings.TrimSuffix(filepath.Base(script), ".mjs")
		if diff := cmp.Diff(read(t, filepath.Join(integrations, id)), read(t, filepath.Join(out, id))); diff != "" {
			t.Errorf("%s: the recordings differ from what the client sends; repair the manifest or run `go test ./test/oracles -update` (-committed +recorded):\n%s", id, diff)
		}
	}
}

// node runs a script.
func node(t *testing.T, script string, args ...string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, text)
	}
}

func read(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "recordings.json"))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
