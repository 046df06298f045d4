package engine_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/stepmill/stepmill/internal/run"
)

var update = flag.Bool("update", false, "rewrite the expected histories")

// TestGolden runs each file of testdata: the steps and the payload in it must
// give the history in it.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, file)
		})
	}
}

func golden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string) int {
		return slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
	}
	payload := "{}"
	if i := part("payload.json"); i >= 0 {
		payload = string(archive.Files[i].Data)
	}
	w := newWorld(t)
	w.start(w.store)
	id := w.startRun(w.workflow(string(archive.Files[part("steps.json")].Data)), payload)
	got := history(w.finished(id))
	want := part("history")
	if *update {
		archive.Files[want].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
		t.Errorf("the history differs (-want +got):\n%s", diff)
	}
}

// history writes what happened without what differs from run to run: parallel
// steps are sorted by name.
func history(d run.Detail) string {
	var lines []string
	for _, s := range d.Steps {
		line := fmt.Sprintf("%s: %s", s.Path, s.Status)
		if s.Output != nil {
			line += " " + string(s.Output)
		}
		if s.Reason != "" {
			line += fmt.Sprintf(" (%s)", s.Reason)
		}
		if s.Error != nil {
			line += fmt.Sprintf(" [%s: %s]", s.Error.Code, s.Error.Message)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	end := "run: " + string(d.Status)
	if d.Error != nil {
		end += fmt.Sprintf(" [%s at %s: %s]", d.Error.Code, d.Error.StepID, d.Error.Message)
	}
	return strings.Join(append(lines, end), "\n") + "\n"
}
