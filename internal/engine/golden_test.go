package engine_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/table"
)

var update = flag.Bool("update", false, "rewrite the expected histories")

// TestGolden runs the steps of each file in testdata and compares the history. A file
// has these parts, of which steps.json and history are required:
//
//	steps.json          the steps of the workflow
//	settings.json       its settings
//	payload.json        the payload of the run
//	table NAME.json     the columns of a table and its key
//	workflow NAME.json  the steps of another workflow; @NAME is replaced by its id
//	answers.json        the answers to steps, by their paths
//	waiting             what the run waits for when they are given
//	history             how the steps and the run ended
//	logs                what the steps wrote to their logs
//
// The tests run in a synctest bubble: time begins in the year 2000 and is simulated.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, s := range goldenCases(t) {
		t.Run(s.name(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { golden(t, s) })
		})
	}
}

// goldenCases returns all golden files.
func goldenCases(t *testing.T) []*goldenCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	all := make([]*goldenCase, len(files))
	for i, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = &goldenCase{file, archive}
	}
	return all
}

// goldenCase is a golden file.
type goldenCase struct {
	file string
	*txtar.Archive
}

func (s *goldenCase) name() string { return strings.TrimSuffix(filepath.Base(s.file), ".txtar") }

func (s *goldenCase) index(name string) int {
	return slices.IndexFunc(s.Files, func(f txtar.File) bool { return f.Name == name })
}

// part returns a part of the file, or the default.
func (s *goldenCase) part(name, without string) string {
	if i := s.index(name); i >= 0 {
		return string(s.Files[i].Data)
	}
	return without
}

// set writes an expected part. It omits an empty one.
func (s *goldenCase) set(name, text string) {
	i := s.index(name)
	switch {
	case i >= 0 && text == "":
		s.Files = slices.Delete(s.Files, i, i+1)
	case i >= 0:
		s.Files[i].Data = []byte(text)
	case text != "":
		s.Files = append(s.Files, txtar.File{Name: name, Data: []byte(text)})
	}
}

func golden(t *testing.T, s *goldenCase) {
	w := newWorld(t)
	n := w.start(w.store.Leases)
	defer n.end()
	id := s.begin(w)
	waiting := w.answerAll(id, s.part("answers.json", "{}"))
	detail := w.endOf(id)
	got := map[string]string{"waiting": waiting, "history": history(detail), "logs": w.logs(id)}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		text := withoutIDs(got[name])
		if *update {
			s.set(name, text)
		} else if diff := cmp.Diff(s.part(name, ""), text); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(s.file, txtar.Format(s.Archive), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// begin starts the run of a golden file.
func (s *goldenCase) begin(w *world) string {
	steps := s.part("steps.json", "")
	for _, f := range s.Files {
		if name, ok := strings.CutPrefix(f.Name, "table "); ok {
			w.table(strings.TrimSuffix(name, ".json"), f.Data)
		}
		if name, ok := strings.CutPrefix(f.Name, "workflow "); ok {
			id := w.workflow(string(f.Data))
			steps = strings.ReplaceAll(steps, "@"+strings.TrimSuffix(name, ".json"), id)
		}
	}
	return w.startRun(w.workflowWith(steps, s.part("settings.json", "{}")), s.part("payload.json", "{}"))
}

var (
	ids   = regexp.MustCompile(`(run|row)_[0-9a-z]{26}`)
	times = regexp.MustCompile(`"((?:created|updated|expires)_at)":"[^"]*"`)
)

// withoutIDs replaces the ids and the times of runs and rows.
func withoutIDs(text string) string {
	return times.ReplaceAllString(ids.ReplaceAllString(text, "<$1>"), `"$1":"<time>"`)
}

// table creates a table with the given columns and key, as JSON.
func (w *world) table(name string, definition []byte) {
	w.t.Helper()
	var t struct {
		Columns []table.NewColumn `json:"columns"`
		Key     string            `json:"key"`
	}
	if err := json.Unmarshal(definition, &t); err != nil {
		w.t.Fatal(err)
	}
	if _, err := table.NewService(w.store.Tables).Create(context.WithoutCancel(w.t.Context()), w.actor, name, t.Columns, t.Key); err != nil {
		w.t.Fatal(err)
	}
}

// answerAll gives each answer when its step waits for it, and returns what the run was
// waiting for at that time.
func (w *world) answerAll(id, text string) string {
	w.t.Helper()
	var answers map[string]struct {
		Approved bool            `json:"approved"`
		Comment  string          `json:"comment"`
		Data     json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &answers); err != nil {
		w.t.Fatal(err)
	}
	var waiting strings.Builder
	for begun := time.Now(); len(answers) > 0; time.Sleep(time.Minute) {
		synctest.Wait()
		detail := w.get(id)
		for _, step := range detail.Steps {
			answer, ok := answers[step.Path]
			if !ok || step.Status != run.StepWaiting || step.Awaits != action.AwaitsAnswer {
				continue
			}
			held := detail.WaitingFor()
			fmt.Fprintf(&waiting, "%s: %s\n", held.StepID, held.Reason)
			given := run.Resumption{Approved: answer.Approved, Comment: answer.Comment, Data: answer.Data}
			if _, err := w.runs.Resume(context.WithoutCancel(w.t.Context()), w.actor, id, step.Path, given); err != nil {
				w.t.Fatal(err)
			}
			delete(answers, step.Path)
			synctest.Wait()
			detail = w.get(id)
		}
		if detail.Status != run.Running && len(answers) > 0 || time.Since(begun) > 24*time.Hour {
			w.t.Fatalf("no step waits for the answers %v: %+v", answers, detail)
		}
	}
	return waiting.String()
}

// endOf waits in a bubble until a run ends.
func (w *world) endOf(id string) run.Detail {
	w.t.Helper()
	ended, stop := w.watchers.Watch(id)
	defer stop()
	if detail := w.get(id); detail.Status == run.Running {
		select {
		case <-ended:
		case <-time.After(60 * 24 * time.Hour):
			w.t.Fatalf("run %s did not end: %+v", id, w.get(id).Steps)
		}
	}
	return w.get(id)
}

// logs formats the logs of a run.
func (w *world) logs(id string) string {
	w.t.Helper()
	page, err := w.runs.Logs(context.WithoutCancel(w.t.Context()), w.actor, id, "", paging.Request{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	var out strings.Builder
	for _, line := range page.Items {
		fmt.Fprintf(&out, "%s, attempt %d, %s: %s\n", line.Path, line.Attempt, line.Level, line.Message)
	}
	return out.String()
}

// history formats the steps of a run without what differs between executions: parallel
// steps are sorted by name.
func history(d run.Detail) string {
	var lines []string
	for _, s := range d.Steps {
		line := fmt.Sprintf("%s: %s", s.Path, s.Status)
		if s.Output != nil {
			line += " " + string(s.Output)
		}
		if s.Attempt > 1 {
			line += fmt.Sprintf(" after %d attempts", s.Attempt)
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
