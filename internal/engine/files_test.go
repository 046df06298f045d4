package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

// filesEntry returns test.files, an action that a test scripts through its input:
// {"creates": ["content", …]} returns {"files": [file, …]}, {"reads": file} returns its
// {"text"}. Both then do what test.effect does with the input: {"gate"}, {"fails"} and
// so on. With {"forgets": true} the output does not refer to the files.
func filesEntry(e *effects) action.Entry {
	return action.Entry{
		Spec: action.Spec{Name: "test.files", Connects: true, Input: `{"type": "object", "properties": {"reads": {"format": "file"}}}`, Output: `{}`},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			out := map[string]any{}
			contents, _ := req.Input["creates"].([]any)
			var created []any
			for _, content := range contents {
				times, _ := req.Input["times"].(int)
				f, err := create(ctx, req.Files, content.(string), max(1, times))
				if err != nil {
					return action.Result{}, err
				}
				created = append(created, f)
			}
			if created != nil && req.Input["forgets"] != true {
				out["files"] = created
			}
			if f, ok := req.Input["reads"].(*expr.File); ok {
				from, err := req.Files.Open(ctx, f, 0)
				if err != nil {
					return action.Result{}, err
				}
				defer from.Close()
				text, err := io.ReadAll(from)
				if err != nil {
					return action.Result{}, err
				}
				out["text"] = string(text)
			}
			if _, err := e.run(ctx, req.Input); err != nil {
				return action.Result{}, err
			}
			return action.Result{Output: out}, nil
		}),
	}
}

func create(ctx context.Context, files action.Files, content string, times int) (*expr.File, error) {
	w, err := files.Create(ctx, action.NewFile{Name: content + ".txt", Type: "text/plain"})
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	for range times {
		if _, err := io.WriteString(w, content); err != nil {
			return nil, err
		}
	}
	return w.Finish()
}

// texts returns what the steps of a run have read, by path.
func texts(d run.Detail) map[string]string {
	out := map[string]string{}
	for _, step := range d.Steps {
		var output struct {
			Text *string `json:"text"`
		}
		if json.Unmarshal(step.Output, &output) == nil && output.Text != nil {
			out[step.Path] = *output.Text
		}
	}
	return out
}

func wantTexts(t *testing.T, d run.Detail, want map[string]string) {
	t.Helper()
	if d.Status != run.Succeeded {
		t.Errorf("the run is %s: %+v", d.Status, d.Error)
	}
	if diff := cmp.Diff(want, texts(d)); diff != "" {
		t.Error(diff)
	}
}

// stored returns how many files are recorded and how many blobs are stored.
func (w *world) stored() (files, blobs int) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	recorded, err := w.store.Files.Files(ctx, w.actor.Workspace.ID, clock.Now(), paging.Request{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	there, err := w.blobs.List(ctx, paging.Request{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	// The mark of the installation is no file.
	bytes := slices.DeleteFunc(there.Items, func(i blob.Info) bool { return strings.HasPrefix(string(i.ID), "stepmill") })
	return len(recorded.Items), len(bytes)
}

func (w *world) wantStored(files, blobs int) {
	w.t.Helper()
	if f, b := w.stored(); f != files || b != blobs {
		w.t.Errorf("%d files and %d blobs are stored, want %d and %d", f, b, files, blobs)
	}
}

const passing = `
	{"id": "make", "uses": "test.files", "with": {"call": "make", "creates": ["one", "two"]}},
	{"id": "set", "uses": "data.set", "with": {"values": {"first": "${{ steps.make.output.files[0] }}", "all": "${{ steps.make.output.files }}", "name": "${{ steps.make.output.files[1].name }}"}}},
	{"id": "read", "uses": "test.files", "with": {"reads": "${{ steps.set.output.first }}"}},
	{"id": "loop", "foreach": "steps.set.output.all", "steps": [
		{"id": "inside", "uses": "test.files", "with": {"gate": "inside", "call": "inside", "reads": "${{ item }}"}}]},
	{"id": "last", "uses": "test.files", "with": {"reads": "${{ steps.set.output.all[1] }}", "again": "${{ steps.loop.output.items }}"}}`

var passed = map[string]string{"read": "one", "loop[0].inside": "one", "loop[1].inside": "two", "last": "two"}

func TestFilesPassThroughARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	w.effects.open("inside")
	d := w.finished(w.startRun(w.workflow(`[`+passing+`]`), `{}`))
	wantTexts(t, d, passed)
	w.wantStored(2, 2)
	for _, step := range d.Steps {
		if want := map[string][]string{"make": {"/files/0", "/files/1"}, "set": {"/all/0", "/all/1", "/first"}}[step.Path]; !slices.Equal(step.OutputFiles, want) {
			t.Errorf("%s: the files are at %q, want %q", step.Path, step.OutputFiles, want)
		}
	}
}

// Whatever the run waits for when the process dies, it continues with its files.
func TestFilesAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := &hooked{Store: w.store.Leases}
	n := w.start(st)
	id := w.startRun(w.workflow(`[`+passing+`]`), `{}`)
	<-w.effects.begun
	w.crash(n, st, id)
	w.effects.open("inside")
	w.start(w.store.Leases)
	wantTexts(t, w.finished(id), passed)
	if n := w.effects.count("make"); n != 1 {
		t.Errorf("the files were created %d times", n)
	}
	w.wantStored(2, 2)
}

// A crash at any commit loses nothing, and what it left is swept.
func TestFilesAfterACrashAtEachCommit(t *testing.T) {
	t.Parallel()
	for commits := range 6 {
		for _, happened := range []bool{false, true} {
			w := newWorld(t)
			w.effects.open("inside")
			st := newCrashingStore(w.store.Leases, commits, happened)
			n := w.start(st)
			id := w.startRun(w.workflow(`[`+passing+`]`), `{}`)
			ended, unwatch := w.watchers.Watch(id)
			select {
			case <-st.dead:
				w.discard(n, id)
				w.start(w.store.Leases)
			case <-ended:
			}
			unwatch()
			wantTexts(t, w.finished(id), passed)
			if err := w.sweep(); err != nil {
				t.Fatal(err)
			}
			w.wantStored(2, 2)
		}
	}
}

// sweep removes what is not needed, as if the process had been restarted.
func (w *world) sweep() error {
	ctx := context.WithoutCancel(w.t.Context())
	again := file.NewService(file.Config{
		Store: w.store.Files, Blobs: w.blobs, Keys: w.vault, Capacity: file.Capacity{Writers: 1, Readers: 1, IO: 1}, Exclusive: true, Log: slog.New(slog.DiscardHandler),
	})
	for more := true; more; {
		var err error
		if more, err = again.SweepExpired(ctx); err != nil {
			return err
		}
	}
	return again.SweepOrphans(ctx)
}

// Nothing remains of files of a failed attempt, or that no output refers to.
func TestFilesThatAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "fails", "uses": "test.files", "on_error": "continue", "with": {"creates": ["a"], "fails": "no"}},
		{"id": "retried", "uses": "test.files", "retry": {"max_attempts": 3, "delay": "1ms"}, "with": {"creates": ["b"], "call": "b", "passes_after": 2}},
		{"id": "panics", "uses": "test.files", "on_error": "continue", "with": {"creates": ["c"], "panics": true}},
		{"id": "forgets", "uses": "test.files", "with": {"creates": ["d"], "forgets": true}}]`), `{}`))
	if d.Status != run.Succeeded {
		t.Errorf("the run is %s: %+v", d.Status, d.Error)
	}
	w.wantStored(1, 1)
}

// A run that is cancelled while a step executes keeps nothing of it.
func TestFilesOfACancelledStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.files", "with": {"creates": ["a"], "gate": "g"}}]`), `{}`)
	<-w.effects.begun
	if _, err := w.runs.Cancel(t.Context(), w.actor, id); err != nil {
		t.Fatal(err)
	}
	w.finished(id)
	n.end()
	w.wantStored(0, 0)
}

// A file that is too large fails its step, and nothing of it remains.
func TestFileLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPlan(auth.Free)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[{"id": "a", "uses": "test.files", "with": {"creates": ["`+strings.Repeat("x", 1000)+`"], "times": 30000}}]`), `{}`))
	if d.Status != run.Failed || d.Error.Code != string(fault.FileTooLarge) {
		t.Errorf("the run is %s: %+v", d.Status, d.Error)
	}
	w.wantStored(0, 0)
}

// A retry uses the files of the steps that it reuses, also after the first run is gone.
func TestRetryKeepsFiles(t *testing.T) {
	t.Parallel()
	for _, mask := range []string{``, `, "mask": ["files"]`, `, "mask": ["files.name"]`} {
		w := newWorld(t)
		w.start(w.store.Leases)
		first := w.finished(w.startRun(w.workflow(`[
			{"id": "make", "uses": "test.files", "with": {"call": "make", "creates": ["one"]}`+mask+`},
			{"id": "read", "uses": "test.files", "retry": {"max_attempts": 1}, "with": {"call": "read", "passes_after": 1, "reads": "${{ steps.make.output.files[0] }}"}}]`), `{}`))
		if first.Status != run.Failed {
			t.Fatalf("the run is %s", first.Status)
		}
		started, err := w.runs.Retry(t.Context(), w.actor, first.ID, run.RetryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		second := w.finished(started.ID)
		wantTexts(t, second, map[string]string{"read": "one"})
		if n := w.effects.count("make"); n != 1 {
			t.Errorf("the file was created %d times", n)
		}
		if err := w.store.Files.DropHolder(t.Context(), file.HeldByRun(first.ID), clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := w.sweep(); err != nil {
			t.Fatal(err)
		}
		w.wantStored(1, 1)
		if err := w.store.Files.DropHolder(t.Context(), file.HeldByRun(second.ID), clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := w.sweep(); err != nil {
			t.Fatal(err)
		}
		w.wantStored(0, 0)
	}
}

// A child run gets the files of its payload, and its parent those of its output. Each
// holds them.
func TestFilesOfChildRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	child := w.workflow(`[
		{"id": "read", "uses": "test.files", "with": {"reads": "${{ trigger.payload.list[0] }}"}},
		{"id": "make", "uses": "test.files", "with": {"creates": ["answer"]}},
		{"id": "out", "uses": "data.set", "with": {"values": {"result": "${{ steps.make.output.files[0] }}", "given": "${{ trigger.payload.list[0] }}", "plain": "${{ trigger.payload.plain }}"}}}]`)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "make", "uses": "test.files", "with": {"creates": ["question"]}},
		{"id": "call", "uses": "flow.run", "with": {"workflow_id": "`+child+`", "payload": {"list": "${{ steps.make.output.files }}", "plain": {"$file": "file_1", "name": "a", "type": "b", "size": 1, "sha256": "c"}}}},
		{"id": "read", "uses": "test.files", "with": {"reads": "${{ steps.call.output.output.result }}"}},
		{"id": "kind", "uses": "data.set", "with": {"values": {"text": "${{ type(steps.call.output.output.given) + type(steps.call.output.output.plain) }}"}}}]`), `{}`))
	wantTexts(t, d, map[string]string{"read": "answer", "kind": "filemap"})
	children, err := w.runs.List(t.Context(), w.actor, child, "", nil, paging.Request{Limit: 2})
	if err != nil || len(children.Items) != 1 {
		t.Fatal(children, err)
	}
	wantTexts(t, w.get(children.Items[0].ID), map[string]string{"read": "question"})
	for _, holder := range []string{children.Items[0].ID, d.ID} {
		w.wantStored(2, 2)
		if err := w.store.Files.DropHolder(t.Context(), file.HeldByRun(holder), clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := w.sweep(); err != nil {
			t.Fatal(err)
		}
	}
	w.wantStored(0, 0)
}

// What looks like a file is data, wherever it comes from, even if the file exists.
func TestDataThatLooksLikeAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	made := w.finished(w.startRun(w.workflow(`[{"id": "make", "uses": "test.files", "with": {"creates": ["secret"]}}]`), `{}`))
	forged := strings.TrimSuffix(strings.TrimPrefix(string(made.Steps[0].Output), `{"files":[`), `]}`)
	if !strings.Contains(forged, `"$file":"file_`) {
		t.Fatalf("got %s", forged)
	}
	quoted, _ := json.Marshal(forged)
	payload := `{"forged": ` + forged + `, "text": ` + string(quoted) + `, "list": [` + forged + `]}`
	child := w.workflow(`[{"id": "read", "uses": "test.files", "on_error": "continue", "with": {"reads": "${{ trigger.payload.forged }}"}}, {"id": "out", "uses": "data.set", "with": {"values": {"it": "${{ trigger.payload.forged }}"}}}]`)
	steps := []string{
		`{"id": "payload", "with": {"reads": "${{ trigger.payload.forged }}"}}`,
		`{"id": "from_text", "with": {"reads": "${{ fromJSON(trigger.payload.text) }}"}}`,
		`{"id": "in_list", "with": {"reads": "${{ trigger.payload.list[0] }}"}}`,
		`{"id": "built", "with": {"reads": "${{ {\"$file\": trigger.payload.forged[\"$file\"], \"name\": \"a\", \"type\": \"b\", \"size\": 6, \"sha256\": \"c\"} }}"}}`,
		`{"id": "real", "uses": "test.effect", "with": {"returns": {"it": "${{ trigger.payload.forged }}"}}}`,
		`{"id": "output", "with": {"reads": "${{ steps.real.output.it }}"}}`,
		`{"id": "call", "uses": "flow.run", "with": {"workflow_id": "` + child + `", "payload": {"forged": "${{ trigger.payload.forged }}"}}}`,
		`{"id": "answer", "with": {"reads": "${{ steps.call.output.output.it }}"}}`,
		`{"id": "make", "uses": "test.files", "with": {"creates": ["mine"]}}`,
		`{"id": "beside", "with": {"reads": "${{ [steps.make.output.files[0], trigger.payload.forged][1] }}"}}`,
	}
	for i, step := range steps {
		if !strings.Contains(step, `"uses"`) {
			steps[i] = strings.Replace(step, `"with"`, `"uses": "test.files", "on_error": "continue", "with"`, 1)
		}
	}
	d := w.finished(w.startRun(w.workflow(`[`+strings.Join(steps, ",")+`]`), payload))
	if d.Status != run.Succeeded {
		t.Fatalf("the run is %s: %+v", d.Status, d.Error)
	}
	for _, step := range d.Steps {
		reads := step.Path != "real" && step.Path != "call" && step.Path != "make"
		if reads && (step.Status != run.StepFailed || step.Error.Message != "with/reads: expected a file, got an object") {
			t.Errorf("%s: %s %+v %s", step.Path, step.Status, step.Error, step.Output)
		}
		if step.Path != "make" && step.HasFiles() {
			t.Errorf("%s refers to files", step.Path)
		}
	}
	children, err := w.runs.List(t.Context(), w.actor, child, "", nil, paging.Request{Limit: 2})
	if err != nil || len(children.Items) != 1 {
		t.Fatal(children, err)
	}
	if inner := w.get(children.Items[0].ID); inner.Steps[0].Status != run.StepFailed || inner.Trigger.Files != nil {
		t.Errorf("the child run got a file: %+v", inner)
	}
}

// Runs are started with files of the workspace, which they hold.
func TestStartWithFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	upload := func(content string) file.File {
		writer, err := w.files.Create(t.Context(), file.Owner{WorkspaceID: w.actor.Workspace.ID, Plan: w.actor.Workspace.Plan}, "a.txt", "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(writer, content)
		f, err := writer.Finish()
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := w.files.Record(t.Context(), w.actor, f)
		if err != nil {
			t.Fatal(err)
		}
		return recorded[0]
	}
	f := upload("hello")
	id := w.workflow(`[{"id": "read", "uses": "test.files", "with": {"reads": "${{ trigger.payload.photo }}"}}, {"id": "n", "uses": "data.set", "with": {"values": {"text": "${{ string(trigger.payload.n) }}"}}}]`)
	started, err := w.runs.Start(t.Context(), w.actor, run.Request{WorkflowID: id, Payload: []byte(`{"n": 9007199254740993}`), Files: map[string]string{"photo": f.ID}})
	if err != nil {
		t.Fatal(err)
	}
	d := w.finished(started.ID)
	wantTexts(t, d, map[string]string{"read": "hello", "n": "9007199254740993"})
	if held, err := w.store.Files.File(t.Context(), w.actor.Workspace.ID, f.ID, clock.Now()); err != nil || held == nil || held.ExpiresAt != nil {
		t.Errorf("the file is not held: %+v, %v", held, err)
	}
	for payload, files := range map[string]map[string]string{
		`{"photo": 1}`: {"photo": f.ID},
		`{}`:           {"photo": "file_01m7fe3gv0es8r65rzyjka792g"},
		`[]`:           {"photo": f.ID},
	} {
		if _, err := w.runs.Start(t.Context(), w.actor, run.Request{WorkflowID: id, Payload: []byte(payload), Files: files}); err == nil {
			t.Errorf("%s with %v was accepted", payload, files)
		}
	}
}

// A run without files writes none of the columns for them.
func TestRunsWithoutFilesStoreNothingAboutThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	w.finished(w.startRun(w.workflow(`[{"id": "a", "foreach": "[1]", "steps": [{"id": "b", "uses": "test.effect", "with": {"returns": {"$file": "x"}}}]}]`), `{"$file": "y"}`))
	n := 0
	err := w.db.Read(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT (SELECT count(*) FROM steps WHERE input_files IS NOT NULL OR output_files IS NOT NULL OR answer_files IS NOT NULL)
			+ (SELECT count(*) FROM runs WHERE files IS NOT NULL) + (SELECT count(*) FROM file_refs) + (SELECT count(*) FROM file_usage)`, nil, func(r database.Row) error { return r.Scan(&n) })
	})
	if err != nil || n != 0 {
		t.Errorf("%d values, %v", n, err)
	}
}

// A step test reads the files of its data, and keeps the file that it creates for a
// while.
func TestStepTestsWithFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.start(w.store.Leases)
	made := w.finished(w.startRun(w.workflow(`[{"id": "make", "uses": "test.files", "with": {"creates": ["one"]}}]`), `{}`))
	seen, err := made.Steps[0].Seen()
	if err != nil {
		t.Fatal(err)
	}
	id := w.workflow(`[{"id": "make", "uses": "data.set", "with": {"values": {}}}, {"id": "read", "uses": "test.files", "with": {"reads": "${{ steps.make.output.files[0] }}", "creates": ["two"]}}]`)
	program, err := w.plans.Get(t.Context(), id, 2)
	if err != nil || program == nil {
		t.Fatal(program, err)
	}
	result, err := n.engine.TestStep(t.Context(), run.StepExecution{
		WorkspaceID: w.actor.Workspace.ID, Plan: w.actor.Workspace.Plan, Step: program.Steps[1],
		Env: &expr.Env{Steps: map[string]expr.Step{"make": seen}, Trigger: expr.Trigger{Payload: map[string]any{}}},
	})
	if err != nil || result.Status != run.StepSucceeded || !strings.Contains(string(result.Output), `"text":"one"`) {
		t.Fatalf("%v: %+v", err, result)
	}
	w.wantStored(2, 2)
	var output struct {
		Files []struct {
			ID string `json:"$file"`
		} `json:"files"`
	}
	if err := json.Unmarshal(result.Output, &output); err != nil {
		t.Fatal(err)
	}
	kept, err := w.files.Get(t.Context(), w.actor.Workspace.ID, output.Files[0].ID)
	if err != nil || kept.ExpiresAt == nil {
		t.Errorf("%+v, %v", kept, err)
	}
}
