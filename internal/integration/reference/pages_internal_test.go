package reference

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/authoring"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/test/generated"
)

var update = flag.Bool("update", false, "write the pages")

const (
	pagesFolder     = "../../../docs/integrations"
	manifestsFolder = "../../../integrations"
)

// TestPages checks that docs/integrations matches the manifests, their tests and the
// recordings.
func TestPages(t *testing.T) {
	t.Parallel()
	all, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"README.md": indexPage(all)}
	for _, i := range all.List() {
		tests, err := authoring.BuiltinTests(i.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want[i.ID+".md"], err = pageOf(all, i, tests, recordings(t, i.ID)); err != nil {
			t.Fatalf("%s: %v", i.ID, err)
		}
	}
	generated.Check(t, pagesFolder, want, *update)
}

// recordings returns what the client of a service has sent, or nil.
func recordings(t *testing.T, id string) *replay.Recordings {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifestsFolder, id, "recordings.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := replay.ParseRecordings(text)
	if err != nil {
		t.Fatalf("recordings.json: %v", err)
	}
	return out
}
