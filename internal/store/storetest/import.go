package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/migrations"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Opener opens an empty database as described for Run.
type Opener = func(t *testing.T, notify store.Notify) *store.DB

// MoveBetween checks that an installation can move to a database of another kind and
// back. What does not depend on the other database is part of Run.
func MoveBetween(t *testing.T, a, b Opener) {
	from, to, back := newHarness(t, a), newHarness(t, b), newHarness(t, a)
	testImportValues(t, from, to)
	transfer(t, to, back, clock.Now())
	sameContents(t, "what has moved back", from, back)
}

// testImport checks that an installation can be exported and imported.
func testImport(t *testing.T, w *harness) {
	for _, part := range []struct {
		name string
		test func(t *testing.T, from, to *harness)
	}{
		{"every value of every table", testImportValues},
		{"many rows", testImportManyRows},
		{"runs continue", testImportRuns},
		{"sequences continue", testImportSequences},
		{"only into an empty database", testImportRequiresEmptyTables},
		{"an interrupted import", testImportInterrupted},
		{"two concurrent imports", testConcurrentImports},
		{"damaged archives", testImportDamaged},
		{"archives of another schema", testImportOtherSchema},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, newHarness(t, w.open), newHarness(t, w.open))
		})
	}
}

// mover returns the database of a harness.
func (w *harness) mover(t *testing.T) store.Mover {
	t.Helper()
	db, ok := w.rows.(store.Mover)
	if !ok {
		t.Fatalf("an installation cannot move out of a %T", w.rows)
	}
	return db
}

var keyCheck = []byte("check")

// install creates an installation with one workspace.
func (w *harness) install(t *testing.T) auth.Workspace {
	t.Helper()
	ws := newWorkspace()
	returns(w.Workspaces.Install(t.Context(), auth.Installation{
		Workspace: ws, DataKey: []byte("data key"), KeyCheck: keyCheck, AdminKey: newKey(ws.ID), Entry: newEntry(ws.ID, "workspace.created", ws.ID),
	}))(t, "install", true)
	return ws
}

// export returns an archive of all data.
func (w *harness) export(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	a := must(archive.NewWriter(&file, archive.Header{Schema: migrations.Last(), KeyCheck: keyCheck, Tables: store.Archived()}))(t)
	if err := errors.Join(store.Export(t.Context(), w.mover(t), nil, a), a.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// importArchive imports an archive.
func (w *harness) importArchive(t *testing.T, from io.Reader, now time.Time) error {
	t.Helper()
	a := must(archive.NewReader(from))(t)
	return store.Import(t.Context(), w.mover(t), store.FilesTarget{}, a, now)
}

// transfer exports from one harness and imports into the other.
func transfer(t *testing.T, from, to *harness, now time.Time) {
	t.Helper()
	if err := to.importArchive(t, bytes.NewReader(from.export(t)), now); err != nil {
		t.Fatal(err)
	}
	equal(t, "incomplete import", must(to.Installation.ImportIncomplete(t.Context()))(t), false)
}

// releasedColumns change when an import releases runs.
var releasedColumns = []string{"epoch", "node", "wake_at", "executing", "crashes", "suspects"}

// contents returns the rows of all tables, without what an import changes.
func (w *harness) contents(t *testing.T) map[string][][]any {
	t.Helper()
	a := must(archive.NewReader(bytes.NewReader(w.export(t))))(t)
	out := map[string][][]any{}
	for i := range a.Header().Tables {
		section := must(a.Next())(t)
		out[section.Table] = [][]any{{section.Last}}
		for {
			row, err := a.Row()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for j, column := range a.Header().Tables[i].Columns {
				if section.Table == "run_queue" && slices.Contains(releasedColumns, column.Name) {
					row[j] = nil
				}
			}
			out[section.Table] = append(out[section.Table], row)
		}
	}
	return out
}

// fill writes rows with values that databases often get wrong into every table.
func (w *harness) fill(t *testing.T, rows int) {
	t.Helper()
	kinds := slices.Collect(maps.Values(texts()))
	for _, table := range store.Exported()[1:] {
		w.fillTable(t, table, rows, kinds...)
	}
}

// fillTable writes rows with the given kinds of text into a table.
func (w *harness) fillTable(t *testing.T, table store.Table, rows int, kinds ...string) {
	t.Helper()
	var names, places []string
	for i, column := range table.Columns() {
		names, places = append(names, column.Name), append(places, fmt.Sprintf("$%d", i+1))
	}
	statement := `INSERT INTO ` + table.Name + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(places, ", ") + `)`
	err := w.rows.Write(t.Context(), func(c database.Conn) error {
		for n := range rows {
			var args []any
			for i, column := range table.Columns() {
				args = append(args, valueOf(column, kinds[(n+i)%len(kinds)], n))
			}
			if err := c.Do(statement, args...); err != nil {
				return err
			}
		}
		if !table.Numbered {
			return nil
		}
		return w.mover(t).Resequence(c, table.Name, 1<<30+int64(rows))
	})
	if err != nil {
		t.Fatalf("%s: %v", table.Name, err)
	}
}

// valueOf returns a unique value for a column in the nth row.
func valueOf(column archive.Column, text string, n int) any {
	switch column.Kind {
	case archive.Int:
		if strings.HasSuffix(column.Name, "at") {
			return int64(1<<60) + int64(n)
		}
		return int64(1<<30) + int64(n)
	case archive.Bool:
		return n%2 == 0
	case archive.Bytes:
		value := append([]byte{0, 255, byte(n), byte(n >> 8)}, text...)
		if strings.HasSuffix(column.Name, "hash") { // hashes may have to be unique
			return value
		}
		return value[:n%5]
	}
	return fmt.Sprintf("%05d%s", n, text)
}

func testImportValues(t *testing.T, from, to *harness) {
	from.install(t)
	from.fill(t, 10)
	transfer(t, from, to, clock.Now())
	sameContents(t, "what has moved", from, to)
}

// sameContents compares all rows. It computes the difference only if there is
// one, because that takes long.
func sameContents(t *testing.T, what string, before, after *harness) {
	t.Helper()
	if a, b := before.contents(t), after.contents(t); !reflect.DeepEqual(a, b) {
		t.Errorf("%s (-before +after):\n%.4000s", what, cmp.Diff(a, b))
	}
}

// testImportManyRows imports tables of several pages, including rows that share
// the first part of their key, and large rows.
func testImportManyRows(t *testing.T, from, to *harness) {
	ctx, ws := t.Context(), from.install(t)
	wf := from.workflow(t, ws.ID)
	for _, steps := range []int{1, 499, 500, 1203} {
		r := from.start(t, wf, "node_1")
		var d run.Decision
		for i := range steps {
			d.Steps = append(d.Steps, newStep(fmt.Sprintf("each[%d].a", i), i, run.StepSucceeded))
		}
		d.Steps[0].Status, d.Steps[0].State, d.Steps[0].CheckpointAttempt = run.StepRunning, []byte{0, 0xff, '"'}, 1
		returns(from.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
	}
	large := newStart(t, wf, "node_1")
	large.Run.Trigger.Payload = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("ä\n", 700_000))
	returns(from.Runs.StartRun(ctx, large))(t, "start", true)
	transfer(t, from, to, clock.Now())
	equal(t, "steps", to.count(t, `SELECT count(*) FROM steps`), 1+499+500+1203)
	if !cmp.Equal(from.contents(t), to.contents(t)) {
		t.Error("the imported data differs")
	}
	if got := found(to.Runs.Run(ctx, ws.ID, large.Run.ID))(t); string(got.Trigger.Payload) != string(large.Run.Trigger.Payload) {
		t.Error("the large payload differs")
	}
}

// testImportRuns imports runs in every possible state.
func testImportRuns(t *testing.T, from, to *harness) {
	ctx, ws := t.Context(), from.install(t)
	wf := from.workflow(t, ws.ID)
	now := clock.Now()
	later := now.Add(time.Hour)
	idle, busy, done := from.start(t, wf, "node_1"), from.start(t, wf, "node_1"), from.start(t, wf, "node_1")
	returns(from.Commit(ctx, firstLease(busy), busy, run.Decision{Executing: []string{"a", "b"}}))(t, "execute", true)
	from.finish(t, done, run.Succeeded)
	waiting := from.start(t, wf, "node_1")
	returns(from.Commit(ctx, firstLease(waiting), waiting, run.Decision{Release: true, WakeAt: later}))(t, "wait", true)
	admitted, queuedRun := from.startLimited(t, wf, "=k", 1, workflow.Queue), from.startLimited(t, wf, "=k", 1, workflow.Queue)

	transfer(t, from, to, now)
	equal(t, "owned and idle", to.queue(t, idle.ID), &queued{Epoch: 2, WakeAt: &now})
	equal(t, "executing", to.queue(t, busy.ID), &queued{Epoch: 2, WakeAt: &now})
	equal(t, "waiting", to.queue(t, waiting.ID), &queued{Epoch: 2, WakeAt: &later})
	equal(t, "admitted", to.queue(t, admitted.ID), &queued{Epoch: 2, WakeAt: &now})
	equal(t, "waiting for a slot", to.queue(t, queuedRun.ID), &queued{Epoch: 2})
	equal(t, "finished", to.queue(t, done.ID), nil)
	to.checkAdmitted(t, "admitted runs", wf, idle, busy, waiting, admitted)

	// Leases from the old database are void here.
	for _, r := range []run.Run{idle, busy, waiting} {
		returns(to.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "a late commit", false)
	}
	equal(t, "orphans", must(to.Leases.Orphans(ctx, "node_9", "", noLimit))(t), nil)
	due := map[string]run.Wake{}
	for _, wake := range must(to.Leases.Due(ctx, now, nil, noLimit))(t) {
		due[wake.RunID] = wake
	}
	equal(t, "runs that are due", len(due), 3)
	equal(t, "crashes of the idle one", due[idle.ID].Crashes, 0)
	equal(t, "crashes of the one that was executing", due[busy.ID].Crashes, 1)

	// It dies at the same steps again: that is the second crash.
	lease, ok, err := to.Leases.Activate(ctx, due[busy.ID], "node_9")
	returns(ok, err)(t, "activate", true)
	returns(to.Commit(ctx, lease, busy, run.Decision{Executing: []string{"a", "b"}}))(t, "execute again", true)
	if err := to.Leases.RecordCrash(ctx, "node_10"); err != nil {
		t.Fatal(err)
	}
	equal(t, "crashes after another one", found(to.Runs.Run(ctx, ws.ID, busy.ID))(t).Crashes, 2)
}

// testImportSequences checks that positions of streams stay valid: the next
// number is larger than any before, including those of deleted rows.
func testImportSequences(t *testing.T, from, to *harness) {
	ws := from.install(t)
	wf := from.workflow(t, ws.ID)
	from.webhook(t, ws.ID, nil)
	for range 5 {
		from.start(t, wf, "node_1")
	}
	last := map[string]int{}
	for _, table := range []string{"events", "deliveries"} {
		last[table] = from.count(t, `SELECT max(seq) FROM `+table)
		from.exec(t, `DELETE FROM `+table)
	}
	transfer(t, from, to, clock.Now())
	to.start(t, wf, "node_1")
	for table, before := range last {
		if got := to.count(t, `SELECT min(seq) FROM `+table); got <= before {
			t.Errorf("%s continues at %d after %d", table, got, before)
		}
	}
	// The same where no rows were deleted.
	again := newHarness(t, to.open)
	transfer(t, to, again, clock.Now())
	before := again.count(t, `SELECT max(seq) FROM events`)
	r := again.start(t, wf, "node_1")
	if got := again.count(t, `SELECT seq FROM events WHERE id = $1`, again.eventOf(t, r.ID, event.RunStarted)); got <= before {
		t.Errorf("events continues at %d after %d", got, before)
	}
}

func testImportRequiresEmptyTables(t *testing.T, from, to *harness) {
	from.install(t)
	file := from.export(t)
	to.install(t)
	before := to.contents(t)
	if err := to.importArchive(t, bytes.NewReader(file), clock.Now()); !errors.Is(err, store.ErrInstalled) {
		t.Errorf("into an installation: %v", err)
	}
	equal(t, "the installation", to.contents(t), before)

	to.exec(t, `DELETE FROM installation`)
	if err := to.importArchive(t, bytes.NewReader(file), clock.Now()); err == nil || !strings.Contains(err.Error(), "already contains rows") {
		t.Errorf("into tables with rows but no installation: %v", err)
	}
	equal(t, "rows without an installation", to.count(t, `SELECT count(*) FROM workspaces`), 1)
	equal(t, "installations", to.count(t, `SELECT count(*) FROM installation`), 0)
}

// interruptedReader calls a function at its end that simulates the death of the
// process.
type interruptedReader struct {
	io.Reader
	at func()
}

func (c interruptedReader) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	if errors.Is(err, io.EOF) {
		c.at()
	}
	return n, err
}

// partialArchive returns the archive of an installation with more runs than one
// transaction imports, and a part of it with some of them.
func partialArchive(t *testing.T, w *harness) (whole, part []byte) {
	t.Helper()
	w.install(t)
	tables := store.Exported()
	runs := slices.IndexFunc(tables, func(table store.Table) bool { return table.Name == "runs" })
	w.fillTable(t, tables[runs], 700, "")
	w.fillTable(t, tables[runs+1], 2000, "") // so that the middle of the file is behind the runs
	whole = w.export(t)
	return whole, whole[:len(whole)/2]
}

func testImportInterrupted(t *testing.T, from, to *harness) {
	file, part := partialArchive(t, from)
	// The process dies in the middle: the panic bypasses the error handling of
	// the import.
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the import succeeded")
			}
		}()
		_ = to.importArchive(t, interruptedReader{bytes.NewReader(part), func() { panic("killed") }}, clock.Now())
	}()
	equal(t, "incomplete import", must(to.Installation.ImportIncomplete(t.Context()))(t), true)
	if to.count(t, `SELECT count(*) FROM runs`) == 0 {
		t.Fatal("nothing was written before the interruption")
	}
	if _, err := to.Workspaces.Install(t.Context(), auth.Installation{Workspace: newWorkspace()}); !errors.Is(err, store.ErrImportIncomplete) {
		t.Errorf("a server that starts in between: %v", err)
	}
	missing(to.Workspaces.FirstWorkspace(t.Context()))(t, "the first workspace")

	if err := to.importArchive(t, bytes.NewReader(file), clock.Now()); err != nil {
		t.Fatal(err)
	}
	equal(t, "incomplete import", must(to.Installation.ImportIncomplete(t.Context()))(t), false)
	if !cmp.Equal(from.contents(t), to.contents(t)) {
		t.Error("the imported data differs")
	}
}

// testConcurrentImports starts a second import while the first is running. One of
// them succeeds.
func testConcurrentImports(t *testing.T, from, to *harness) {
	file, part := partialArchive(t, from)
	rest := file[len(part):]
	first := io.MultiReader(bytes.NewReader(part), interruptedReader{strings.NewReader(""), func() {
		if err := to.importArchive(t, bytes.NewReader(file), clock.Now()); err != nil {
			t.Error(err)
		}
	}}, bytes.NewReader(rest))
	if err := to.importArchive(t, first, clock.Now()); err == nil {
		t.Error("both succeeded")
	}
	equal(t, "incomplete import", must(to.Installation.ImportIncomplete(t.Context()))(t), false)
	if !cmp.Equal(from.contents(t), to.contents(t)) {
		t.Error("the imported data differs")
	}
}

func testImportDamaged(t *testing.T, from, to *harness) {
	file, part := partialArchive(t, from)
	changed := bytes.Clone(file)
	changed[len(changed)-6] ^= 1 // the checksum at the end
	for name, content := range map[string][]byte{"cut short": part, "changed": changed} {
		if err := to.importArchive(t, bytes.NewReader(content), clock.Now()); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		for _, table := range store.Exported() {
			if n := to.count(t, `SELECT count(*) FROM `+table.Name); n != 0 {
				t.Errorf("%s: %d rows of %s are left", name, n, table.Name)
			}
		}
	}
	to.install(t) // the database is empty again
}

func testImportOtherSchema(t *testing.T, _, to *harness) {
	for name, change := range map[string]func(*archive.Header){
		"newer":           func(h *archive.Header) { h.Schema++ },
		"older":           func(h *archive.Header) { h.Schema-- },
		"a table less":    func(h *archive.Header) { h.Tables = h.Tables[1:] },
		"another column":  func(h *archive.Header) { h.Tables[1].Columns[0].Name = uid.New(uid.Run) },
		"of another kind": func(h *archive.Header) { h.Tables[1].Columns[0].Kind = archive.Bytes },
	} {
		h := archive.Header{Schema: migrations.Last(), KeyCheck: keyCheck, Tables: store.Archived()}
		change(&h)
		var file bytes.Buffer
		a := must(archive.NewWriter(&file, h))(t)
		for _, table := range h.Tables {
			if err := a.Begin(archive.Section{Table: table.Name}); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := to.importArchive(t, &file, clock.Now()); err == nil || !strings.Contains(err.Error(), "was written by Stepmill") {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, "installations", to.count(t, `SELECT count(*) FROM installation`), 0)
}
