package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/listfile"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/test/lane"
)

// listEntry is the action test.list, which returns {"count": n} items with {"pad": n}
// bytes each.
func listEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{Name: "test.list", Input: `{"type": "object"}`, Output: `{}`},
		Action: action.Func(func(_ context.Context, req action.Request) (action.Result, error) {
			count, _ := req.Input["count"].(int)
			pad, _ := req.Input["pad"].(int)
			items := make([]any, count)
			for i := range items {
				items[i] = map[string]any{"n": i, "token": fmt.Sprint("token-", i), "pad": strings.Repeat("x", pad)}
			}
			return action.Result{Output: map[string]any{"items": items, "said": req.Input["says"]}}, nil
		}),
	}
}

// partsEntry is the action test.parts, which writes {"count": n} files, with a
// checkpoint after each, and joins them to a list file.
func partsEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{Name: "test.parts", Input: `{"type": "object"}`, Output: `{}`}, Action: action.Func(runParts),
	}
}

func runParts(ctx context.Context, req action.Request) (action.Result, error) {
	var parts []partFile
	if req.State != nil {
		if err := json.Unmarshal(req.State, &parts); err != nil {
			return action.Result{}, err
		}
	}
	count, _ := req.Input["count"].(int)
	list := &expr.FileList{}
	to, err := req.Files.Create(ctx, action.NewFile{Name: "items", Type: listfile.Type, List: list})
	if err != nil {
		return action.Result{}, err
	}
	w := listfile.NewWriter(to, list)
	if len(parts) < count {
		err = w.Add(fmt.Append(nil, len(parts)))
	}
	for _, p := range parts {
		if len(parts) == count {
			err = errors.Join(err, p.copy(ctx, req.Files, w))
		}
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		return action.Result{}, err
	}
	f, err := to.Finish()
	if err != nil || len(parts) == count {
		if req.Input["fails"] == true {
			err = &action.Failure{Code: "test_failed", Message: "as asked"}
		}
		return action.Result{Output: map[string]any{"items": f}}, err
	}
	parts = append(parts, partFile{f.ID, f.Size})
	files := make([]*expr.File, len(parts))
	for i, p := range parts {
		files[i] = p.file()
	}
	return action.Result{Checkpoint: &action.Checkpoint{State: parts, Files: files}}, nil
}

// partFile is a file in the state of test.parts.
type partFile struct {
	ID   string
	Size int64
}

func (p partFile) file() *expr.File { return expr.NewFile(expr.File{ID: p.ID, Size: p.Size}) }

func (p partFile) copy(ctx context.Context, files action.Files, w *listfile.Writer) error {
	from, err := files.Open(ctx, p.file(), 0)
	if err != nil {
		return err
	}
	defer from.Close()
	content, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return w.Add([]byte(strings.TrimSuffix(string(content), "\n")))
}

// openedFiles are files that cannot always be opened.
type openedFiles struct {
	*file.Service
	opened atomic.Int64
	fails  func(n int) error
}

func (f *openedFiles) Open(ctx context.Context, workspaceID, id string, offset, length int64) (io.ReadCloser, error) {
	if n := f.opened.Add(1); f.fails != nil {
		if err := f.fails(int(n)); err != nil {
			return nil, err
		}
	}
	return f.Service.Open(ctx, workspaceID, id, offset, length)
}

// readFile returns the content of a file.
func (w *world) readFile(id string) string {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	f, err := w.files.Get(ctx, w.actor.Workspace.ID, id)
	if err != nil {
		w.t.Fatal(err)
	}
	from, err := w.files.OpenFile(ctx, f, 0, f.Size)
	if err != nil {
		w.t.Fatal(err)
	}
	defer from.Close()
	content, err := io.ReadAll(from)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

// heldFiles returns the ids of the files that a run holds.
func (w *world) heldFiles(runID string) []string {
	w.t.Helper()
	var ids []string
	err := w.db.Read(context.Background(), func(c database.Conn) error {
		return c.Query(`SELECT file_id FROM file_refs WHERE holder = $1`, []any{runID}, func(r database.Row) error {
			var id string
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// step returns the step of a run with a path.
func stepAt(t testing.TB, d run.Detail, path string) run.Step {
	t.Helper()
	i := slices.IndexFunc(d.Steps, func(s run.Step) bool { return s.Path == path })
	if i < 0 {
		t.Fatalf("there is no step %q: %+v", path, d.Error)
	}
	return d.Steps[i]
}

// reference is a reference to a list file in an output.
type reference struct {
	ID    string `json:"$file"`
	Count int
	First []json.RawMessage
	Type  string
}

func referenceIn(t testing.TB, output json.RawMessage) reference {
	t.Helper()
	var out struct{ Items reference }
	if err := json.Unmarshal(output, &out); err != nil || out.Items.ID == "" {
		t.Fatalf("%.200s has no list file: %v", output, err)
	}
	return out.Items
}

// The free plan allows outputs of 256 KiB, the enterprise plan 1 MiB.
func newFreeWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.setPlan(auth.Free)
	return w
}

func TestLargeListBecomesAListFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[
			{"id": "list", "uses": "test.list", "with": {"count": 300, "pad": 1000, "says": "hello"}},
			{"id": "use", "uses": "data.set", "with": {"values": {"count": "${{ steps.list.output.items.count }}", "two": "${{ steps.list.output.items.first[2].n }}", "said": "${{ steps.list.output.said }}"}}},
			{"id": "wrong", "uses": "data.set", "with": {"values": {"n": "${{ len(steps.list.output.items) }}"}}}]`), "{}")
		d := w.finished(id)
		step := stepAt(t, d, "list")
		ref := referenceIn(t, step.Output)
		if ref.Count != 300 || len(ref.First) < 20 || len(ref.First) > 32 || ref.Type != listfile.Type || !cmp.Equal(step.OutputFiles, []string{"/items"}) {
			t.Errorf("the reference is %d of %d, %q, %v", len(ref.First), ref.Count, ref.Type, step.OutputFiles)
		}
		if lines := strings.Split(w.readFile(ref.ID), "\n"); len(lines) != 301 || !strings.HasPrefix(lines[299], `{"n":299,`) {
			t.Errorf("%d lines", len(lines))
		}
		if diff := cmp.Diff([]string{ref.ID}, w.heldFiles(id)); diff != "" {
			t.Error(diff)
		}
		if got := string(stepAt(t, d, "use").Output); got != `{"count":300,"said":"hello","two":2}` {
			t.Error(got)
		}
		if failure := stepAt(t, d, "wrong").Error; failure == nil || !strings.Contains(failure.Message, "loop over it with foreach") {
			t.Errorf("%+v", failure)
		}
	})
}

// An output that is too large for another reason than a list still fails.
func TestLargeOutputWithoutAListFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "list", "uses": "test.list", "with": {"count": 300, "pad": 1000, "says": "${{ trigger.payload.text + trigger.payload.text }}"}}]`),
			`{"text": "`+strings.Repeat("x", 150<<10)+`"}`)
		if d := w.finished(id); d.Error == nil || d.Error.Code != run.CodeOutputTooLarge || len(w.heldFiles(id)) > 0 {
			t.Errorf("%+v, holds %v", d.Error, w.heldFiles(id))
		}
		w.wantStored(0, 0)
	})
}

// Masked values are in no file, and neither are secrets.
func TestListFilesAreMasked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "list", "uses": "test.list", "with": {"count": 300, "pad": 1000}, "mask": ["items.token"]},
			{"id": "each", "foreach": "[steps.list.output.items.first[3]]", "steps": [{"id": "set", "uses": "data.set", "with": {"values": {"n": "${{ item.n }}"}}}]}]`), "{}")
		d := w.finished(id)
		ref := referenceIn(t, stepAt(t, d, "list").Output)
		content := w.readFile(ref.ID)
		if strings.Contains(content, "token-") || strings.Count(content, `"token":"***"`) != 300 || strings.Contains(string(stepAt(t, d, "list").Output), "token-") {
			t.Errorf("the file is %.200s", content)
		}
		if got := string(stepAt(t, d, "each[0].set").Output); got != `{"n":3}` {
			t.Error(got)
		}
	})
}

// The outputs of a loop become a list file as well.
func TestLargeOutputsOfALoopBecomeAListFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.start(w.store.Leases)
		text := strings.Repeat("x", 60<<10)
		id := w.startRun(w.workflow(`[{"id": "each", "foreach": "[1, 2, 3, 4, 5]", "steps": [
				{"id": "set", "uses": "test.effect", "with": {"returns": {"n": "${{ item }}", "text": "${{ trigger.payload.text }}"}}}]},
			{"id": "again", "foreach": "steps.each.output.items", "steps": [{"id": "n", "uses": "data.set", "with": {"values": {"n": "${{ item.n * 2 }}"}}}]}]`), `{"text": "`+text+`"}`)
		d := w.finished(id)
		ref := referenceIn(t, stepAt(t, d, "each").Output)
		if ref.Count != 5 || strings.Count(w.readFile(ref.ID), "\n") != 5 {
			t.Errorf("%d items", ref.Count)
		}
		if got := string(stepAt(t, d, "again").Output); got != `{"items":[{"n":2},{"n":4},{"n":6},{"n":8},{"n":10}]}` {
			t.Errorf("%s: %+v", got, d.Error)
		}
	})
}

// The outputs of a loop that fails are dropped, and not stored in a file.
func TestLargeOutputsOfAFailedLoopAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "each", "foreach": "[1, 2, 3, 4, 5]", "parallel": 5, "steps": [
			{"id": "set", "uses": "test.effect", "with": {"returns": {"text": "${{ trigger.payload.text }}"}}},
			{"id": "check", "if": "item == 5", "needs": [], "uses": "test.effect", "with": {"fails": "no"}},
			{"id": "last", "needs": ["set"], "uses": "data.set", "with": {"values": {"text": "${{ steps.set.output.text }}"}}}]}]`), `{"text": "`+strings.Repeat("x", 60<<10)+`"}`)
		if d := w.finished(id); d.Status != run.Failed || len(w.heldFiles(id)) > 0 {
			t.Errorf("%s: %+v, holds %v", d.Status, d.Error, w.heldFiles(id))
		}
		w.wantStored(0, 0)
	})
}

const eachItem = `[
	{"id": "list", "uses": "test.list", "with": {"count": %d, "pad": %d}},
	{"id": "each", "foreach": "steps.list.output.items", "parallel": %d, "on_error": "continue", "steps": [
		{"id": "one", "if": "item.n %% 5 != 3", "uses": "test.effect", "with": {"call": "one", "returns": {"n": "${{ item.n * 100 + index }}", "size": "${{ len(item.pad) }}"}}},
		{"id": "two", "uses": "data.set", "with": {"values": {"n": "${{ (steps.one.output.n ?? 0) + 1 }}"}}},
		{"id": "inner", "foreach": "[item.n, index]", "steps": [{"id": "three", "uses": "data.set", "with": {"values": {"n": "${{ item }}"}}}]}]},
	{"id": "count", "uses": "data.set", "with": {"values": {"n": "${{ len(steps.each.output.items ?? []) }}"}}}]`

// rounds returns what a run has done, without the list and its reference.
func roundsOf(d run.Detail) []string {
	var out []string
	for _, step := range d.Steps {
		if step.Path == "list" {
			continue
		}
		input := step.Input
		if step.Path == "each" {
			input = nil
		}
		out = append(out, fmt.Sprintf("%s %s %s %s %v", step.Path, step.Status, input, step.Output, step.Error))
	}
	slices.Sort(out)
	return append(out, string(d.Status))
}

// A loop over a list file does the same as one over a list, also if the engine crashes
// before or after any commit.
func TestLoopOverAListFileMatchesAList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ count, pad, parallel int }{{12, 50 << 10, 1}, {12, 50 << 10, 5}, {7, 100 << 10, 3}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			t.Parallel()
			steps := fmt.Sprintf(eachItem, tc.count, tc.pad, tc.parallel)
			model := newWorld(t)
			model.setPlan(auth.Enterprise)
			model.start(model.store.Leases)
			detail := model.finished(model.startRun(model.workflow(steps), "{}"))
			if stepAt(t, detail, "list").OutputFiles != nil || detail.Status != run.Succeeded {
				t.Fatalf("the model is wrong: %+v", detail.Error)
			}
			want := roundsOf(detail)
			for commits := 0; ; commits++ {
				happened := commits%2 == 0
				w := newFreeWorld(t)
				id := w.startRun(w.workflow(steps), "{}")
				died := w.runUntilCrash(newCrashingStore(w.store.Leases, commits, happened), id)
				w.start(w.store.Leases)
				got := w.finished(id)
				if diff := cmp.Diff(want, roundsOf(got)); diff != "" {
					t.Fatalf("crashed at commit %d (committed: %v): the rounds differ (-list +list file):\n%s", commits, happened, diff)
				}
				if ref := referenceIn(t, stepAt(t, got, "list").Output); !slices.Contains(w.heldFiles(id), ref.ID) {
					t.Errorf("the run holds %v and not %s", w.heldFiles(id), ref.ID)
				}
				if !died {
					break
				}
			}
		})
	}
}

// loopCase is a loop over a list, and when the engine crashes.
type loopCase struct {
	count, parallel, commits int
	happened                 bool
}

var loopCases = rapid.Custom(func(t *rapid.T) loopCase {
	return loopCase{
		count: rapid.IntRange(1, 20).Draw(t, "count"), parallel: rapid.IntRange(1, 20).Draw(t, "parallel"),
		commits: rapid.IntRange(0, 40).Draw(t, "commits"), happened: rapid.Bool().Draw(t, "happened"),
	}
})

// Random loops over list files match those over lists.
func TestRandomLoopsOverListFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		list, spilled := newWorld(t), newFreeWorld(t)
		list.setPlan(auth.Enterprise)
		list.start(list.store.Leases)
		for seed := range lane.Pick(10, 40) {
			c := loopCases.Example(seed)
			steps := fmt.Sprintf(eachItem, c.count, (300<<10)/c.count, c.parallel)
			want := roundsOf(list.finished(list.startRun(list.workflow(steps), "{}")))
			m := newCrashingStore(spilled.store.Leases, c.commits, c.happened)
			id := spilled.startRun(spilled.workflow(steps), "{}")
			spilled.runUntilCrash(m, id)
			n := spilled.start(spilled.store.Leases)
			got := spilled.finished(id)
			n.end()
			if diff := cmp.Diff(want, roundsOf(got)); diff != "" {
				t.Errorf("%+v: the rounds differ (-list +list file):\n%s", c, diff)
			}
		}
	})
}

// runUntilCrash executes a run until it ends or the store crashes, and reports whether it
// has crashed.
func (w *world) runUntilCrash(m *crashingStore, id string) bool {
	w.t.Helper()
	n := w.start(m)
	defer n.end()
	ended, stopWatching := w.watchers.Watch(id)
	defer stopWatching()
	if w.get(id).Status != run.Running {
		return false
	}
	select {
	case <-m.dead:
		return true
	case <-ended:
		return false
	}
}

// The files of checkpoints are held until the step ends, whatever crashes.
func TestFilesOfCheckpoints(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		steps := fmt.Sprintf(`[{"id": "list", "uses": "test.parts", "on_error": "continue", "with": {"count": 3, "fails": %t}}]`, fails)
		for commits := 0; ; commits++ {
			w := newWorld(t)
			id := w.startRun(w.workflow(steps), "{}")
			died := w.runUntilCrash(newCrashingStore(w.store.Leases, commits, commits%2 == 0), id)
			if held := w.heldFiles(id); died && len(held) > 3 {
				t.Errorf("the run holds %v", held)
			}
			w.start(w.store.Leases)
			d := w.finished(id)
			var want []string
			if !fails {
				ref := referenceIn(t, stepAt(t, d, "list").Output)
				want = []string{ref.ID}
				if got := w.readFile(ref.ID); got != "0\n1\n2\n" {
					t.Errorf("crashed at commit %d: the list file is %q", commits, got)
				}
			}
			if diff := cmp.Diff(want, w.heldFiles(id)); diff != "" || d.Status != run.Succeeded {
				t.Errorf("crashed at commit %d: the run holds other files (-want +got):\n%s\n%+v", commits, diff, d.Error)
			}
			if !died {
				break
			}
		}
	}
}

// The number of rounds is limited by the plan, as for a list.
func TestStepLimitOfALoopOverAListFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.start(w.store.Leases)
		d := w.finished(w.startRun(w.workflow(`[{"id": "list", "uses": "test.list", "with": {"count": 1200, "pad": 300}},
			{"id": "each", "foreach": "steps.list.output.items", "steps": [{"id": "one", "uses": "data.set", "with": {"values": {}}}]}]`), "{}"))
		if d.Error == nil || d.Error.Code != run.CodeStepLimit {
			t.Errorf("%+v", d.Error)
		}
		rounds, err := w.runs.Rounds(t.Context(), w.actor, d.ID, "each", "", paging.Request{Limit: 1})
		if err != nil || rounds.Total == nil || *rounds.Total != 1200 {
			t.Errorf("%+v, %v", rounds, err)
		}
	})
}

// A storage that is not available delays the loop; a file that cannot be read fails it.
func TestListFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fails func(n int) error
		want  run.Status
	}{
		{func(n int) error {
			if n < 4 {
				return fault.New(fault.Unavailable, "the storage does not respond")
			}
			return nil
		}, run.Succeeded},
		{func(n int) error {
			if n > 1 {
				return fault.New(fault.FileNotFound, "there is no such file")
			}
			return nil
		}, run.Failed},
		{func(int) error { return errors.New("damaged") }, run.Failed},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newFreeWorld(t)
			w.openFails = tc.fails
			w.start(w.store.Leases)
			d := w.finished(w.startRun(w.workflow(`[{"id": "list", "uses": "test.list", "with": {"count": 12, "pad": 51200}},
				{"id": "each", "foreach": "steps.list.output.items", "parallel": 2, "steps": [
					{"id": "one", "uses": "test.effect", "with": {"returns": {"n": "${{ item.n }}"}}}]}]`), "{}"))
			if d.Status != tc.want {
				t.Errorf("%s: %+v", d.Status, d.Error)
			}
		})
	}
}

// An engine that stops while the storage is not available releases the run.
func TestEngineStopsWhileAListFileCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.openFails = func(int) error { return fault.New(fault.Unavailable, "the storage does not respond") }
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "list", "uses": "test.list", "with": {"count": 12, "pad": 51200}},
			{"id": "each", "foreach": "steps.list.output.items", "steps": [{"id": "one", "uses": "data.set", "with": {"values": {"n": "${{ item.n }}"}}}]}]`), "{}")
		synctest.Wait()
		n.end()
		if d := w.get(id); d.Status != run.Running {
			t.Fatalf("%s: %+v", d.Status, d.Error)
		}
		w.openFails = nil
		w.start(w.store.Leases)
		if d := w.finished(id); d.Status != run.Succeeded {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
	})
}

// A retry reuses the rounds of a loop over a list file that succeeded, and the others
// get the same items.
func TestRetryOfALoopOverAListFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFreeWorld(t)
		w.start(w.store.Leases)
		var retried atomic.Bool
		fails := func(_, path string) bool {
			return !retried.Load() && strings.HasSuffix(path, "two") && path > "each[4]"
		}
		w.effects.fails.Store(&fails)
		workflowID := w.workflow(`[{"id": "list", "uses": "test.list", "with": {"count": 9, "pad": 51200}},
			{"id": "each", "foreach": "steps.list.output.items", "parallel": 4, "steps": [
				{"id": "one", "uses": "test.effect", "with": {"scripted": true, "tag": "${{ item.n }}"}},
				{"id": "two", "uses": "test.effect", "with": {"scripted": true, "tag": "${{ item.n * 10 }}"}}]}]`)
		first := w.startRun(workflowID, "{}")
		if d := w.finished(first); d.Status != run.Failed {
			t.Fatalf("%s: %+v", d.Status, d.Error)
		}
		retried.Store(true)
		again, err := w.runs.Retry(context.Background(), w.actor, first, run.RetryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d := w.finished(again.ID)
		var output struct{ Items []struct{ Tag int } }
		if err := json.Unmarshal(stepAt(t, d, "each").Output, &output); err != nil {
			t.Fatal(err, d.Error)
		}
		for i, item := range output.Items {
			if item.Tag != i*10 {
				t.Errorf("round %d got %d", i, item.Tag)
			}
		}
		if ref := referenceIn(t, stepAt(t, d, "list").Output); len(output.Items) != 9 || !slices.Contains(w.heldFiles(again.ID), ref.ID) {
			t.Errorf("%d rounds, holds %v", len(output.Items), w.heldFiles(again.ID))
		}
	})
}
