// Package generated checks that the files of a folder are those that a generator makes.
package generated

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check compares the Markdown files of a folder with those that it should have, by name.
// With update, it replaces them instead.
func Check(t testing.TB, folder string, want map[string]string, update bool) {
	t.Helper()
	if update {
		replace(t, folder, want)
		return
	}
	got := map[string]string{}
	for _, path := range pages(t, folder) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(path)] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is out of date, run: make gen\n%s", folder, diff)
	}
}

func pages(t testing.TB, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func replace(t testing.TB, folder string, want map[string]string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range pages(t, folder) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range want {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
