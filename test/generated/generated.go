// Package generated checks that files, or sections of files, are those that a generator makes.
package generated

import (
	"os"
	"path/filepath"
	"regexp"
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

// Sections compares the sections of a file that a generator makes with the text that they
// should have, by name. A section is between a line with "generated: <name>" in a comment
// and the next line with "end of <name>"; its lines are indented like the first of the two.
// With update, it replaces them instead.
func Sections(t testing.TB, path string, want map[string]string, update bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	text := got
	for name, section := range want {
		text = replaceSection(t, text, name, section)
	}
	if update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(text, got); diff != "" {
		t.Errorf("%s is out of date, run: make gen\n%s", path, diff)
	}
}

func replaceSection(t testing.TB, text, name, section string) string {
	t.Helper()
	quoted := regexp.QuoteMeta(name)
	marks := regexp.MustCompile(`(?m)^([ \t]*)\S+ generated: ` + quoted + `\b.*\n(?s:(.*?))^[ \t]*\S+ end of ` + quoted + `\b`)
	found := marks.FindAllStringSubmatchIndex(text, -1)
	if len(found) != 1 {
		t.Fatalf("%d sections with the name %s, want 1", len(found), name)
	}
	at := found[0]
	indent := text[at[2]:at[3]]
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(section, indent+"$1")
	return text[:at[4]] + indented + text[at[5]:]
}
