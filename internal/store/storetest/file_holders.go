package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

func testFileHolders(t *testing.T, w *harness) {
	t.Run("rows", func(t *testing.T) { testRowsHoldFiles(t, w) })
	t.Run("columns", func(t *testing.T) { testFileColumns(t, w) })
	t.Run("keys", func(t *testing.T) { testKeysHoldFiles(t, w) })
	t.Run("workflows", func(t *testing.T) { testWorkflowsHoldFiles(t, w) })
	t.Run("drafts", func(t *testing.T) { testDraftsHoldFiles(t, w) })
	t.Run("operations", func(t *testing.T) { testOperationsHoldFiles(t, w) })
	t.Run("races of rows and keys", func(t *testing.T) { testHolderRaces(t, w) })
}

// fileTable creates the table people with two file columns.
func (w *harness) fileTable(t *testing.T, workspaceID string) table.Table {
	t.Helper()
	made := newTable(workspaceID, "people")
	made.Columns = append(made.Columns, table.Column{ID: "c7", Name: "photo", Type: table.File}, table.Column{ID: "c8", Name: "scan", Type: table.File})
	made.LastColumn = 8
	returns(w.insertTable(t.Context(), made, noLimit))(t, "insert a table", table.Created)
	return made
}

// named returns the value that names a file.
func named(f file.File) string { return fmt.Sprintf(`{"$file": %q}`, f.ID) }

// reference returns the JSON of a reference to a file.
func reference(t *testing.T, f file.File) string {
	t.Helper()
	return string(must(strictjson.Encode(f.Value()))(t))
}

// withFiles returns an Insert of values in which both file columns are references.
func withFiles(format string, args ...any) table.Insert {
	op := insertOp(fmt.Sprintf(format, args...))
	op.Files = []string{"photo", "scan"}
	return op
}

// kept reports whether files exist at a time after everything that has happened.
func (w *harness) kept(t *testing.T, files ...file.File) (kept []bool) {
	t.Helper()
	w.sweepFiles(t, clock.Now())
	for _, f := range files {
		w.checkFiles(t, f.WorkspaceID)
		kept = append(kept, must(w.Files.File(t.Context(), f.WorkspaceID, f.ID, f.CreatedAt.Add(365*24*time.Hour)))(t) != nil)
	}
	return kept
}

func testRowsHoldFiles(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	of := w.fileTable(t, ws)
	a, b, c := w.recordFile(t, ws, "a", ""), w.recordFile(t, ws, "b", ""), w.recordFile(t, ws, "c", "")
	theirs := w.recordFile(t, stranger, "theirs", "")

	row := must(w.Tables.InsertRow(ctx, scopeOf(of), withFiles(`{"email": "ada", "photo": %s, "scan": %s}`, named(a), named(b))))(t)
	equal(t, "the photo", string(row.Values["photo"]), reference(t, a))
	equal(t, "files", row.Files, []string{"photo", "scan"})
	equal(t, "read", found(w.Tables.GetRow(ctx, scopeOf(of), table.Get{Selector: byKey("ada")}))(t), row)
	equal(t, "kept", w.kept(t, a, b), []bool{true, true})

	for what, tc := range map[string]struct {
		op   table.Insert
		want string
	}{
		"another workspace": {withFiles(`{"email": "eve", "photo": %s}`, named(theirs)), fmt.Sprintf("there is no file %q", theirs.ID)},
		"an unknown file":   {withFiles(`{"email": "eve", "scan": {"$file": "file_00000000000000000000000000"}}`), `there is no file "file_00000000000000000000000000"`},
		"plain data":        {insertOp(`{"email": "eve", "photo": ` + reference(t, c) + `}`), "expected a file"},
		"a text":            {withFiles(`{"email": "eve", "photo": %q}`, c.ID), "expected a file"},
	} {
		_, err := w.Tables.InsertRow(ctx, scopeOf(of), tc.op)
		f, _ := fault.As(err)
		if f == nil || len(f.Details) != 1 || f.Details[0].Message != tc.want {
			t.Errorf("%s: got %v", what, err)
		}
	}
	failsWith(w.Tables.UpdateRows(ctx, scopeOf(of), table.Update{Selector: byKey("ada"), Values: valuesOf(`{"photo": ` + named(c) + `}`)}))(t, "plain data in an update", fault.InvalidRequest)
	equal(t, "rows", w.count(t, `SELECT count(*) FROM table_rows WHERE table_id = $1`, of.ID), 1)

	update := func(values string) {
		t.Helper()
		must(w.Tables.UpdateRows(ctx, scopeOf(of), table.Update{Selector: byKey("ada"), Values: valuesOf(values), Files: []string{"photo", "scan"}}))(t)
	}
	update(`{"city": "Bern"}`)
	equal(t, "after another change", w.kept(t, a, b), []bool{true, true})
	update(`{"photo": ` + named(c) + `}`)
	equal(t, "replaced", w.kept(t, a, b, c), []bool{false, true, true})
	update(`{"photo": ` + named(b) + `}`)
	equal(t, "twice in a row", w.kept(t, b, c), []bool{true, false})
	update(`{"photo": null}`)
	equal(t, "still once", w.kept(t, b), []bool{true})
	must(w.Tables.IncrementRow(ctx, scopeOf(of), table.Increment{Selector: byKey("ada"), Column: "amount"}))(t)
	equal(t, "incremented", w.kept(t, b), []bool{true})
	returns(w.Tables.DeleteRows(ctx, scopeOf(of), table.Delete{Selector: byKey("ada")}))(t, "delete the row", 1)
	equal(t, "deleted", w.kept(t, b), []bool{false})

	d, e := w.recordFile(t, ws, "d", ""), w.recordFile(t, ws, "e", "")
	importing := func(photo file.File) {
		t.Helper()
		op := table.Import{Rows: []table.ImportRow{{RowID: uid.New(uid.Row), Line: 2, Values: valuesOf(`{"email": "bob", "photo": ` + named(photo) + `}`), Files: []string{"photo"}}}}
		must(w.Tables.ImportRows(ctx, scopeOf(of), op))(t)
	}
	importing(d)
	equal(t, "imported", w.kept(t, d), []bool{true})
	importing(e)
	equal(t, "imported again", w.kept(t, d, e), []bool{false, true})
	_, err := w.Tables.ImportRows(ctx, scopeOf(of), table.Import{Rows: []table.ImportRow{{RowID: uid.New(uid.Row), Line: 7, Values: valuesOf(`{"email": "c", "photo": ` + named(d) + `}`), Files: []string{"photo"}}}})
	equal(t, "a problem in a line", fmt.Sprint(err), fmt.Sprintf("invalid_request: line 7, column photo: there is no file %q", d.ID))
	returns(w.Tables.DeleteTable(ctx, ws, of.ID, newEntry(ws, "table.deleted", of.ID)))(t, "delete the table", true)
	w.purgeTables(t)
	equal(t, "deleted with the table", w.kept(t, e), []bool{false})
}

func testFileColumns(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.fileTable(t, ws)
	a, b := w.recordFile(t, ws, "a", ""), w.recordFile(t, ws, "b", "")
	must(w.Tables.InsertRow(ctx, scopeOf(of), withFiles(`{"email": "ada", "photo": %s, "scan": %s}`, named(a), named(b))))(t)
	must(w.Tables.InsertRow(ctx, scopeOf(of), withFiles(`{"email": "bob", "photo": %s, "scan": %s}`, named(b), named(b))))(t)
	change := func(p table.Patch) error {
		_, err := w.Tables.ChangeTable(ctx, scopeOf(of), func(t table.Table) (table.Change, error) { return t.Change(p) }, newEntry(ws, "table.updated", of.ID))
		return err
	}
	failsWith(0, change(table.Patch{Columns: map[string]*table.ColumnPatch{"photo": {Type: new(table.JSON)}}}))(t, "another type", fault.InvalidRequest)
	if err := change(table.Patch{Columns: map[string]*table.ColumnPatch{"photo": {Name: new("picture"), Required: new(true)}, "paid": {Type: new(table.Text)}}}); err != nil {
		t.Fatal(err)
	}
	equal(t, "renamed and rewritten", w.kept(t, a, b), []bool{true, true})
	equal(t, "the reference", string(found(w.Tables.GetRow(ctx, scopeOf(of), table.Get{Selector: byKey("ada")}))(t).Values["picture"]), reference(t, a))
	if err := change(table.Patch{Columns: map[string]*table.ColumnPatch{"picture": nil}}); err != nil {
		t.Fatal(err)
	}
	equal(t, "dropped", w.kept(t, a, b), []bool{false, true})
	if err := change(table.Patch{Columns: map[string]*table.ColumnPatch{"scan": nil}}); err != nil {
		t.Fatal(err)
	}
	equal(t, "both dropped", w.kept(t, b), []bool{false})
	w.checkState(t, ws)
}

// setFile returns a Set of a list with a reference.
func setFile(t *testing.T, name string, f file.File) state.Set {
	t.Helper()
	op := setOp(name, `[1,`+reference(t, f)+`]`)
	op.Files = []string{"/1"}
	return op
}

func testKeysHoldFiles(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	scope := func() state.Scope { return keyScope(ws, "") }
	a, b := w.recordFile(t, ws, "a", ""), w.recordFile(t, ws, "b", "")
	set := must(w.State.SetKey(ctx, scope(), setFile(t, "k", a)))(t)
	equal(t, "set", set.Key.Files, []string{"/1"})
	equal(t, "read", found(w.State.GetKey(ctx, scope(), "k"))(t), set.Key)
	equal(t, "listed", must(w.State.StateKeys(ctx, scope(), fullPage))(t).Items, []state.Key{set.Key})
	equal(t, "kept", w.kept(t, a), []bool{true})

	absent := setFile(t, "k", b)
	absent.IfAbsent = true
	equal(t, "if absent", must(w.State.SetKey(ctx, scope(), absent))(t).Key, set.Key)
	must(w.State.SetKey(ctx, scope(), setFile(t, "k", b)))(t)
	equal(t, "overwritten", w.kept(t, a, b), []bool{false, true})
	failsWith(w.State.SetKey(ctx, scope(), setFile(t, "k", a)))(t, "a deleted file", fault.FileNotFound)
	failsWith(w.State.SetKey(ctx, scope(), setFile(t, "new", a)))(t, "a deleted file in a new key", fault.FileNotFound)
	missing(w.State.GetKey(ctx, scope(), "new"))(t, "the new key")
	failsWith(w.State.IncrementKey(ctx, scope(), state.Increment{Name: "k"}))(t, "increment a list", fault.InvalidRequest)
	edited := setOp("k", `[2,`+reference(t, b)+`,`+reference(t, b)+`]`)
	edited.KeepFiles = true
	must(w.State.SetKey(ctx, scope(), edited))(t)
	equal(t, "edited around a reference", found(w.State.GetKey(ctx, scope(), "k"))(t).Files, []string{"/1"})
	equal(t, "edited", w.kept(t, b), []bool{true})
	must(w.State.SetKey(ctx, scope(), setOp("k", `[1,`+reference(t, b)+`]`)))(t)
	equal(t, "plain data has no references", len(found(w.State.GetKey(ctx, scope(), "k"))(t).Files), 0)
	equal(t, "overwritten with data", w.kept(t, b), []bool{false})

	c, d, e := w.recordFile(t, ws, "c", ""), w.recordFile(t, ws, "d", ""), w.recordFile(t, ws, "e", "")
	must(w.State.SetKey(ctx, scope(), setFile(t, "c", c)))(t)
	returns(w.State.DeleteKey(ctx, scope(), "c"))(t, "delete", true)
	for name, f := range map[string]file.File{"d": d, "e": e} {
		op, at := setFile(t, name, f), clock.Now().Add(-time.Minute)
		op.Expires = &at
		must(w.State.SetKey(ctx, scope(), op))(t)
	}
	must(w.State.IncrementKey(ctx, scope(), state.Increment{Name: "e"}))(t) // it has expired
	equal(t, "deleted, expired, replaced after its expiry", w.kept(t, c, d, e), []bool{false, true, false})
	for must(w.State.PurgeKeys(ctx, clock.Now(), 1))(t) {
	}
	equal(t, "expired and purged", w.kept(t, d), []bool{false})
	w.checkState(t, ws)
}

// testOperationsHoldFiles commits the creation of a file together with operations that
// refer to it, twice.
func testOperationsHoldFiles(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	wf, of := w.workflow(t, ws), w.fileTable(t, ws)
	r, created, known := w.start(t, wf, "node_1"), newFile(ws, "created").File, w.recordFile(t, ws, "known", "")
	must(w.Tables.InsertRow(ctx, scopeOf(of), withFiles(`{"email": "ada", "scan": %s}`, named(known))))(t)
	update := table.Update{Selector: byKey("ada"), Values: valuesOf(`{"photo": ` + named(created) + `}`), Files: []string{"photo"}}
	d := operating(1,
		run.Operation{Path: "a", Operation: rowOperation(of, update)},
		run.Operation{Path: "b", Operation: keyOperation(keyScope(ws, ""), setFile(t, "k", created))},
		run.Operation{Path: "c", Operation: keyOperation(keyScope(ws, ""), setFile(t, "gone", newFile(ws, "gone").File))},
	)
	d.Files = []file.File{created}
	for range 2 {
		committed := must(w.Leases.Commit(ctx, firstLease(r), r, d))(t)
		equal(t, "files of the row", committed.Answers["a"].Files, []string{"/output/row/values/photo", "/output/row/values/scan"})
		equal(t, "files of the key", committed.Answers["b"].Files, []string{"/output/value/1"})
		equal(t, "files of a failure", len(committed.Answers["c"].Files), 0)
		stored := must(w.Leases.Answers(ctx, r.ID))(t)
		for path, answer := range committed.Answers {
			equal(t, path, stored[path], answer)
		}
		equal(t, "holders", w.count(t, `SELECT holders FROM files WHERE id = $1`, created.ID), 3)
		equal(t, "holders of a file that was in the row", w.count(t, `SELECT holders FROM files WHERE id = $1`, known.ID), 2)
		w.checkFiles(t, ws)
	}
	returns(w.State.DeleteKey(ctx, keyScope(ws, ""), "k"))(t, "delete the key", true)
	returns(w.Tables.DeleteRows(ctx, scopeOf(of), table.Delete{Selector: byKey("ada")}))(t, "delete the row", 1)
	equal(t, "the run holds them", w.kept(t, created, known), []bool{true, true})
	if err := w.Files.DropHolder(ctx, file.HeldByRun(r.ID), clock.Now()); err != nil {
		t.Fatal(err)
	}
	equal(t, "nothing holds them", w.kept(t, created, known), []bool{false, false})
}

// testHolderRaces lets rows and keys that begin to refer to a file meet the sweep.
func testHolderRaces(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.fileTable(t, ws)
	for i := range 20 {
		f := w.recordFile(t, ws, fmt.Sprint("round ", i), "run_old")
		set, insert, now := setFile(t, "k", f), withFiles(`{"email": "%d", "photo": %s}`, i, named(f)), clock.Now()
		concurrently(t, 5, func(n int) (bool, error) {
			var err error
			switch n {
			case 0:
				_, err = w.Tables.InsertRow(ctx, scopeOf(of), insert)
			case 1:
				_, err = w.State.SetKey(ctx, keyScope(ws, ""), set)
			case 2:
				err = w.Files.DropHolder(ctx, "run_old", now)
			case 3:
				_, err = w.Files.SweepFiles(ctx, clock.Now(), 10)
			case 4:
				_, err = w.Tables.DeleteRows(ctx, scopeOf(of), table.Delete{Selector: byKey(fmt.Sprint(i - 1))})
			}
			if fault.Is(err, fault.FileNotFound) || fault.Is(err, fault.InvalidRequest) {
				err = nil
			}
			return true, err
		})
		w.checkFiles(t, ws)
	}
	w.checkState(t, ws)
}

// naming returns a definition with a step whose input names a file.
func naming(f file.File) workflow.Definition {
	with := json.RawMessage(`{"values":{"files":[` + named(f) + `]}}`)
	return workflow.Definition{
		Steps: []workflow.Step{{ID: "set", Uses: "data.set", With: with}},
		Files: workflow.References{"/steps/0/with/values/files/0": f.Value()},
	}
}

// pinning returns pins that refer to a file.
func pinning(t *testing.T, f file.File) workflow.Pins {
	t.Helper()
	return workflow.Pins{"set": {Output: json.RawMessage(`{"a":[` + reference(t, f) + `]}`), Files: []string{"/a/0"}}}
}

func testWorkflowsHoldFiles(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	a, b, c := w.recordFile(t, ws, "a", ""), w.recordFile(t, ws, "b", ""), w.recordFile(t, ws, "c", "")
	wf, first := newWorkflow(ws)
	wf.Definition, wf.Pinned = naming(a), pinning(t, b)
	first.Definition = wf.Definition
	returns(w.Workflows.InsertWorkflow(ctx, wf, first, noLimit, newEntry(ws, "workflow.created", wf.ID)))(t, "insert", true)
	stored := found(w.Workflows.Definition(ctx, wf.ID, wf.Version))(t)
	equal(t, "the files of the version", stored.Files.IDs(), []string{a.ID})
	equal(t, "their places", stored.Files.Pointers(), []string{"/steps/0/with/values/files/0"})
	equal(t, "pins", found(w.Workflows.Workflow(ctx, ws, wf.ID))(t).Pinned, wf.Pinned)
	equal(t, "kept", w.kept(t, a, b), []bool{true, true})

	next := wf
	next.Revision, next.Version, next.Definition, next.Pinned = wf.Revision+1, wf.Version+1, naming(c), workflow.Pins{}
	second := workflow.Version{WorkflowID: wf.ID, Number: next.Version, Definition: next.Definition, CreatedAt: clock.Now()}
	change := workflow.Change{Workflow: next, WasRevision: wf.Revision, NewVersion: &second, Repinned: true}
	stale := change
	stale.WasRevision += 7
	returns(w.Workflows.UpdateWorkflow(ctx, stale))(t, "a stale change", false)
	equal(t, "a stale change holds nothing", w.count(t, `SELECT holders FROM files WHERE id = $1`, c.ID), 0)
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "update", true)
	equal(t, "both versions", w.kept(t, a, b, c), []bool{true, false, true})

	gone := change
	gone.Workflow.Revision, gone.WasRevision, gone.Workflow.Version = next.Revision+1, next.Revision, next.Version+1
	third := second
	third.Number, third.Definition = gone.Workflow.Version, naming(b)
	gone.NewVersion = &third
	returns(w.Workflows.UpdateWorkflow(ctx, gone))(t, "a file that was deleted", false)
	gone.NewVersion, gone.Workflow.Version, gone.Workflow.Pinned = nil, next.Version, pinning(t, b)
	returns(w.Workflows.UpdateWorkflow(ctx, gone))(t, "a file of a pin that was deleted", false)
	other, first := newWorkflow(ws)
	other.Definition, first.Definition = naming(b), naming(b)
	failsWith(w.Workflows.InsertWorkflow(ctx, other, first, noLimit, newEntry(ws, "workflow.created", other.ID)))(t, "a new workflow", fault.FileNotFound)
	missing(w.Workflows.Workflow(ctx, ws, other.ID))(t, "the workflow")

	w.deleteWorkflow(t, next)
	for must(w.Workflows.PurgeDeleted(ctx, 2))(t) {
	}
	equal(t, "after the workflow", w.kept(t, a, c), []bool{false, false})
}

func testDraftsHoldFiles(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	wf := w.workflow(t, ws)
	a, b := w.recordFile(t, ws, "a", ""), w.recordFile(t, ws, "b", "")
	draft := workflow.Unsaved{Definition: naming(a), Pinned: pinning(t, b)}
	start := newStart(t, wf, "node_1")
	start.Run.Draft, start.Draft, start.Holds = true, &draft, draft.FileIDs()
	r := start.Run
	returns(w.Runs.StartRun(ctx, start))(t, "start", true)
	stored := found(w.Workflows.Draft(ctx, r.ID))(t)
	equal(t, "files", stored.Definition.Files.IDs(), []string{a.ID})
	equal(t, "pins", stored.Pinned, draft.Pinned)
	equal(t, "kept", w.kept(t, a, b), []bool{true, true})
	if err := w.Files.DropHolder(ctx, file.HeldByRun(r.ID), clock.Now()); err != nil {
		t.Fatal(err)
	}
	equal(t, "after the run", w.kept(t, a, b), []bool{false, false})
}
