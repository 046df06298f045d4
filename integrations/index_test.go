package integrations_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
)

var update = flag.Bool("update", false, "write what is generated from the manifests")

// The index is that of the manifests.
func TestIndex(t *testing.T) {
	t.Parallel()
	want, err := integration.Index(integrations.Files)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("index.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, integrations.Index) {
		t.Error("index.json is not that of the manifests: run `make gen`")
	}
}

// Every manifest is valid as a whole: of one that is not, only its outline would be known.
func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	loaded, err := integration.Load(integrations.Files)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		return // the index of this binary is the old one
	}
	indexed := catalog(t)
	for _, one := range loaded.List() {
		found, ok := indexed.Find(one.ID)
		if !ok || len(found.Operations()) != len(one.Operations()) || len(found.Triggers()) != len(one.Triggers()) {
			t.Errorf("the index does not have all of %s: run `make gen`", one.ID)
		}
	}
}
