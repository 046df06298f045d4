package integrations_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration/authoring"
	"github.com/stepmill/stepmill/internal/integration/reference"
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
	if *update {
		rewritePages(t, want)
		return
	}
	got := map[string]string{}
	for _, path := range pages(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(path)] = string(data)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("%s is out of date, run: make gen\n%s", pagesFolder, diff)
	}
	for name := range got {
		if diff := cmp.Diff(want[name], got[name]); diff != "" && want[name] != "" {
			t.Errorf("%s/%s is out of date, run: make gen\n%s", pagesFolder, name, diff)
		}
	}
}

func pages(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(pagesFolder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func rewritePages(t *testing.T, want map[string]string) {
	t.Helper()
	if err := os.MkdirAll(pagesFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range pages(t) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range want {
		if err := os.WriteFile(filepath.Join(pagesFolder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
