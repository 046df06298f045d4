package integrations_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/integration/authoring"
	"github.com/stepmill/stepmill/internal/integration/reference"
	"github.com/stepmill/stepmill/test/generated"
)

const pagesFolder = "../docs/integrations"

// TestPages checks that docs/integrations matches the manifests, their tests and the
// recordings.
func TestPages(t *testing.T) {
	t.Parallel()
	all := catalog(t)
	want := map[string]string{"README.md": reference.Index(all)}
	for _, i := range all.List() {
		tests, err := authoring.BuiltinTests(i.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want[i.ID+".md"], err = reference.Page(all, i, tests, recordings(t, i.ID)); err != nil {
			t.Fatalf("%s: %v", i.ID, err)
		}
	}
	generated.Check(t, pagesFolder, want, *update)
}
