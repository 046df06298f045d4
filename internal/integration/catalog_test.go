package integration_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
)

func TestBuiltin(t *testing.T) {
	t.Parallel()
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	list := catalog.List()
	if !slices.IsSortedFunc(list, func(a, b *integration.Integration) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the integrations are not sorted")
	}
	for _, one := range list {
		if found, ok := catalog.Find(one.ID); !ok || found != one {
			t.Errorf("%s is not found", one.ID)
		}
	}
	// What the index has of an integration is compiled late, so an error there would hide it.
	files, err := fs.Glob(integrations.Files, "*/integration.yaml")
	if err != nil || len(files) != len(list) {
		t.Errorf("%d of %d integrations can be used: %v", len(list), len(files), err)
	}
	if _, ok := catalog.Find("nothing"); ok {
		t.Error("nothing is found")
	}
}

func TestLoadNamesFileAndPlace(t *testing.T) {
	t.Parallel()
	_, err := integration.Load(fstest.MapFS{
		"shop/integration.yaml":  {Data: []byte(shop)},
		"store/integration.yaml": {Data: []byte(shop)},
		"typo/integration.yaml":  {Data: []byte("id: typo\nnme: Typo\n")},
	})
	var first *integration.Error
	if !errors.As(err, &first) || first.File != "store/integration.yaml" || first.Pointer != "/id" {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{
		`store/integration.yaml:2:5: /id: is "shop", but the folder is store`,
		`typo/integration.yaml:2:1: /nme: unknown field "nme" (did you mean "name"?)`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}
