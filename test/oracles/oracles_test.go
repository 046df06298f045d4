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
	record(t, "node", "node_modules/typescript/bin/tsc") // clients send names that they do not know
	out := t.TempDir()
	record(t, "node", "record.mjs", out)
	record(t, "go", "-C", "google", "run", ".", out)
	recorded, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil || len(recorded) == 0 {
		t.Fatalf("nothing was recorded: %v", err)
	}
	for _, dir := range recorded {
		committed := filepath.Join(integrations, filepath.Base(dir), "recordings.json")
		text := read(t, filepath.Join(dir, "recordings.json"))
		if *update {
			if err := os.WriteFile(committed, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
			continue
		}
		if diff := cmp.Diff(read(t, committed), text); diff != "" {
			t.Errorf("%s: the recordings differ from what the client sends; repair the manifest or run `go test ./test/oracles -update` (-committed +recorded):\n%s", filepath.Base(dir), diff)
		}
	}
}

// record runs a command that writes recordings, or checks what does.
func record(t *testing.T, name string, args ...string) {
	t.Helper()
	if text, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
