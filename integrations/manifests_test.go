package integrations_test

import (
	"testing"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
)

func TestManifests(t *testing.T) {
	t.Parallel()
	catalog, err := integration.Load(integrations.Files)
	if err != nil {
		t.Fatal(err)
	}
	if len(catalog.List()) == 0 {
		t.Error("there are no manifests")
	}
}
