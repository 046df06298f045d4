package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/table"
)

// fileTable creates the table people with a file column.
func (w *world) fileTable() {
	w.t.Helper()
	columns := []table.NewColumn{{Name: "name", Type: table.Text}, {Name: "photo", Type: table.File}, {Name: "data", Type: table.JSON}}
	if _, err := table.NewService(w.store.Tables).Create(w.t.Context(), w.actor, "people", columns, "name"); err != nil {
		w.t.Fatal(err)
	}
}

// drop removes the references of runs and sweeps.
func (w *world) drop(runs ...string) {
	w.t.Helper()
	for _, id := range runs {
		if err := w.store.Files.DropHolder(w.t.Context(), file.HeldByRun(id), clock.Now()); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.sweep(); err != nil {
		w.t.Fatal(err)
	}
}

const storesFiles = `[
	{"id": "make", "uses": "test.files", "with": {"call": "make", "creates": ["one"]}},
	{"id": "insert", "uses": "table.upsert", "with": {"table": "people", "values": {"name": "ada", "photo": "${{ steps.make.output.files[0] }}"}}},
	{"id": "inserted", "uses": "test.files", "with": {"reads": "${{ steps.insert.output.row.values.photo }}"}},
	{"id": "set", "uses": "state.set", "with": {"key": "k", "scope": "workspace", "value": {"list": ["${{ steps.make.output.files[0] }}", 1]}}},
	{"id": "set_value", "uses": "test.files", "with": {"reads": "${{ steps.set.output.value.list[0] }}"}}]`

const readsFiles = `[
	{"id": "get", "uses": "table.get", "with": {"table": "people", "key": "ada"}},
	{"id": "got", "uses": "test.files", "with": {"reads": "${{ steps.get.output.row.values.photo }}"}},
	{"id": "find", "uses": "table.find", "with": {"table": "people", "filter": {"column": "photo", "op": "is_null", "value": false}}},
	{"id": "found", "uses": "test.files", "with": {"reads": "${{ steps.find.output.rows[0].values.photo }}"}},
	{"id": "key", "uses": "state.get", "with": {"key": "k", "scope": "workspace"}},
	{"id": "value", "uses": "test.files", "with": {"reads": "${{ steps.key.output.value.list[0] }}"}}]`

// Rows and keys keep the files that a step puts into them, after the run is gone. A run
// that reads them holds them too.
func TestFilesInRowsAndKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fileTable()
	w.start(w.store.Leases)
	wrote := w.finished(w.startRun(w.workflow(storesFiles), `{}`))
	wantTexts(t, wrote, map[string]string{"inserted": "one", "set_value": "one"})
	w.drop(wrote.ID)
	w.wantStored(1, 1)
	read := w.finished(w.startRun(w.workflow(readsFiles), `{}`))
	wantTexts(t, read, map[string]string{"got": "one", "found": "one", "value": "one"})
	removed := w.finished(w.startRun(w.workflow(`[
		{"id": "row", "uses": "table.update", "with": {"table": "people", "key": "ada", "values": {"photo": null}}},
		{"id": "key", "uses": "state.delete", "with": {"key": "k", "scope": "workspace"}}]`), `{}`))
	if removed.Status != run.Succeeded {
		t.Fatalf("%+v", removed.Error)
	}
	w.drop()
	w.wantStored(1, 1) // the run that has read it holds it
	w.drop(read.ID)
	w.wantStored(0, 0)
}

// A crash at any commit loses neither files nor the references of rows and keys.
func TestFilesInRowsAndKeysAfterACrashAtEachCommit(t *testing.T) {
	t.Parallel()
	for commits := range 6 {
		for _, happened := range []bool{false, true} {
			w := newWorld(t)
			w.fileTable()
			st := newCrashingStore(w.store.Leases, commits, happened)
			n := w.start(st)
			id := w.startRun(w.workflow(storesFiles), `{}`)
			ended, unwatch := w.watchers.Watch(id)
			select {
			case <-st.dead:
				w.discard(n, id)
				w.start(w.store.Leases)
			case <-ended:
				st.left.Store(1000) // the next run needs it
			}
			unwatch()
			wantTexts(t, w.finished(id), map[string]string{"inserted": "one", "set_value": "one"})
			w.drop(id)
			w.wantStored(1, 1)
			wantTexts(t, w.finished(w.startRun(w.workflow(readsFiles), `{}`)), map[string]string{"got": "one", "found": "one", "value": "one"})
		}
	}
}

// What looks like a file stays data in tables and keys, even if the file exists.
func TestDataThatLooksLikeAFileInRowsAndKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fileTable()
	w.start(w.store.Leases)
	made := w.finished(w.startRun(w.workflow(`[{"id": "make", "uses": "test.files", "with": {"creates": ["secret"]}}]`), `{}`))
	forged := strings.TrimSuffix(strings.TrimPrefix(string(made.Steps[0].Output), `{"files":[`), `]}`)
	for _, action := range []string{`"table.insert"`, `"table.upsert"`} {
		d := w.finished(w.startRun(w.workflow(`[{"id": "a", "uses": `+action+`, "with": {"table": "people", "values": {"name": "eve", "photo": "${{ trigger.payload }}"}}}]`), forged))
		if d.Status != run.Failed || d.Error.Message != `Step "a" failed: with/values/photo: expected a file` {
			t.Errorf("%s: %s %+v", action, d.Status, d.Error)
		}
	}
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "row", "uses": "table.insert", "with": {"table": "people", "values": {"name": "eve", "data": "${{ trigger.payload }}"}}},
		{"id": "get", "uses": "table.get", "with": {"table": "people", "key": "eve"}},
		{"id": "set", "uses": "state.set", "with": {"key": "k", "value": {"list": ["${{ trigger.payload }}"]}}},
		{"id": "key", "uses": "state.get", "with": {"key": "k"}},
		{"id": "fails", "uses": "table.update", "on_error": "continue", "with": {"table": "people", "key": "eve", "values": {"photo": "${{ steps.key.output.value.list[0] }}"}}},
		{"id": "kinds", "uses": "data.set", "with": {"values": {"text": "${{ type(steps.row.output.row.values.data) + type(steps.get.output.row.values.data) + type(steps.set.output.value.list[0]) + type(steps.key.output.value.list[0]) }}"}}}]`), forged))
	wantTexts(t, d, map[string]string{"kinds": "mapmapmapmap"})
	if fails := d.Steps[4]; fails.Error == nil || fails.Error.Message != "with/values/photo: expected a file" {
		t.Errorf("%+v", fails)
	}
	w.drop(made.ID)
	w.wantStored(0, 0)
}

// A reference in a column of another type becomes data that holds nothing.
func TestFilesInOtherColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fileTable()
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "make", "uses": "test.files", "with": {"creates": ["one"]}},
		{"id": "row", "uses": "table.insert", "with": {"table": "people", "values": {"name": "ada", "data": "${{ steps.make.output.files[0] }}"}}},
		{"id": "kind", "uses": "data.set", "with": {"values": {"text": "${{ type(steps.row.output.row.values.data) }}"}}}]`), `{}`))
	wantTexts(t, d, map[string]string{"kind": "map"})
	w.drop(d.ID)
	w.wantStored(0, 0)
}

// Masked values and files in one input: the file stays a reference, the rest is masked.
func TestFilesBesideMaskedValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fileTable()
	w.start(w.store.Leases)
	flow := w.workflow(`[` + masking + `
		{"id": "make", "uses": "test.files", "with": {"creates": ["one"]}},
		{"id": "set", "uses": "state.set", "with": {"key": "k", "scope": "workspace", "value": {"token": "${{ steps.login.output.body.access_token }}", "file": "${{ steps.make.output.files[0] }}"}}},
		{"id": "row", "uses": "table.insert", "with": {"table": "people", "values": {"name": "is ${{ steps.login.output.body.access_token }}", "photo": "${{ steps.set.output.value.file }}"}}},
		{"id": "read", "uses": "test.files", "with": {"reads": "${{ steps.row.output.row.values.photo }}"}}]`)
	d := w.finished(w.startRun(flow, `{}`))
	wantTexts(t, d, map[string]string{"read": "one"})
	if got := w.key("", "k"); !strings.Contains(got, `"token":"***"`) || !strings.Contains(got, `"$file":"file_`) {
		t.Errorf("the key is %s", got)
	}
	for _, step := range d.Steps {
		if step.Path == "row" && !strings.Contains(fmt.Sprint(string(step.Output)), `"name":"is ***"`) {
			t.Errorf("the row is %s", step.Output)
		}
	}
}
