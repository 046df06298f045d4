package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Opener opens an empty database as Run describes it.
type Opener = func(t *testing.T, notify store.Notify) *store.Store

// Move checks that an installation moves from one database to another, which may
// be of another kind.
func Move(t *testing.T, from, to Opener) {
	for _, part := range []struct {
		name string
		test func(t *testing.T, from, to *world)
	}{
		{"every value of every table", testMoveValues},
		{"many rows", testMoveMany},
		{"runs go on", testMoveRuns},
		{"numbers go on", testMoveNumbers},
		{"only into what is empty", testMoveEmpty},
		{"what is cut short", testMoveCut},
		{"two at once", testMoveTwice},
		{"what is not whole", testMoveDamaged},
		{"other tables", testMoveOthers},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, newWorld(t, from), newWorld(t, to))
		})
	}
}

func testMove(t *testing.T, w *world) { Move(t, w.open, w.open) }

// mover is the database of a world.
func (w *world) mover(t *testing.T) store.Mover {
	t.Helper()
	db, ok := w.rows.(store.Mover)
	if !ok {
		t.Fatalf("an installation cannot move out of a %T", w.rows)
	}
	return db
}

var keyCheck = []byte("check")

// install makes the world an installation with one workspace.
func (w *world) install(t *testing.T) auth.Workspace {
	t.Helper()
	ws := newWorkspace()
	answers(w.Install(t.Context(), auth.Installation{
		Workspace: ws, DataKey: []byte("data key"), KeyCheck: keyCheck, AdminKey: newKey(ws.ID), Entry: newEntry(ws.ID, "workspace.created", ws.ID),
	}))(t, "install", true)
	return ws
}

// export is the archive of what the world holds.
func (w *world) export(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	a := must(archive.NewWriter(&file, archive.Header{Schema: store.Schema, KeyCheck: keyCheck, Tables: store.Archived()}))(t)
	if err := errors.Join(store.Export(t.Context(), w.mover(t), a), a.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// imports reads an archive into the world.
func (w *world) imports(t *testing.T, from io.Reader, now time.Time) error {
	t.Helper()
	a := must(archive.NewReader(from))(t)
	return store.Import(t.Context(), w.mover(t), a, now)
}

// moved moves all from one world to the other.
func moved(t *testing.T, from, to *world, now time.Time) {
	t.Helper()
	if err := to.imports(t, bytes.NewReader(from.export(t)), now); err != nil {
		t.Fatal(err)
	}
	same(t, "half of it", must(to.Half(t.Context()))(t), false)
}

// handed are the columns that change when runs are handed back.
var handed = []string{"epoch", "node", "wake_at", "executing", "crashes", "blamed"}

// contents are the rows of all tables, without what an import changes.
func (w *world) contents(t *testing.T) map[string][][]any {
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
				if section.Table == "run_queue" && slices.Contains(handed, column.Name) {
					row[j] = nil
				}
			}
			out[section.Table] = append(out[section.Table], row)
		}
	}
	return out
}

// fill writes rows into every table that hold what databases get wrong.
func (w *world) fill(t *testing.T, rows int) {
	t.Helper()
	var kinds []string
	for _, text := range texts() {
		kinds = append(kinds, text)
	}
	err := w.rows.Write(t.Context(), func(c store.Conn) error {
		for _, table := range store.Tables()[1:] {
			var names, places []string
			for i, column := range table.Columns() {
				names, places = append(names, column.Name), append(places, fmt.Sprintf("$%d", i+1))
			}
			statement := `INSERT INTO ` + table.Name + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(places, ", ") + `)`
			for n := range rows {
				var args []any
				for i, column := range table.Columns() {
					args = append(args, valueOf(column, kinds[(n+i)%len(kinds)], n))
				}
				if _, err := c.Exec(statement, args...); err != nil {
					return fmt.Errorf("%s: %w", table.Name, err)
				}
			}
			if !table.Numbered {
				continue
			}
			if err := w.mover(t).Resequence(c, table.Name, 1<<30+int64(rows)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// valueOf is the value of a column in the nth row, no other row has the same.
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
		if strings.HasSuffix(column.Name, "hash") { // it may be what rows are told apart by
			return value
		}
		return value[:n%5]
	}
	return fmt.Sprintf("%05d%s", n, text)
}

func testMoveValues(t *testing.T, from, to *world) {
	from.install(t)
	from.fill(t, 10)
	moved(t, from, to, clock.Now())
	sameContents(t, "what has moved", from, to)
	// And again, out of where it came to.
	back := newWorld(t, from.open)
	moved(t, to, back, clock.Now())
	sameContents(t, "what has moved back", from, back)
}

// sameContents compares all rows of two worlds. To say how they differ takes
// long, and is only done if they do.
func sameContents(t *testing.T, what string, before, after *world) {
	t.Helper()
	if a, b := before.contents(t), after.contents(t); !reflect.DeepEqual(a, b) {
		t.Errorf("%s (-before +after):\n%.4000s", what, cmp.Diff(a, b))
	}
}

// testMoveMany moves tables of several pages, also of rows with one first half
// of their key, and rows that are large.
func testMoveMany(t *testing.T, from, to *world) {
	ctx, ws := t.Context(), from.install(t)
	wf := from.workflow(t, ws.ID)
	for _, steps := range []int{1, 499, 500, 1203} {
		r := from.start(t, wf, "node_1")
		var d run.Decision
		for i := range steps {
			d.Steps = append(d.Steps, newStep(fmt.Sprintf("each[%d].a", i), i, run.StepSucceeded))
		}
		answers(from.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
	}
	large := newStart(t, wf, "node_1")
	large.Run.Trigger.Payload = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("ä\n", 700_000))
	answers(from.StartRun(ctx, large))(t, "start", true)
	moved(t, from, to, clock.Now())
	same(t, "steps", to.count(t, `SELECT count(*) FROM steps`), 1+499+500+1203)
	if !cmp.Equal(from.contents(t), to.contents(t)) {
		t.Error("what has moved is not the same")
	}
	if got := found(to.Run(ctx, ws.ID, large.Run.ID))(t); string(got.Trigger.Payload) != string(large.Run.Trigger.Payload) {
		t.Error("the large payload is another one")
	}
}

// testMoveRuns moves runs in every state that they can be in.
func testMoveRuns(t *testing.T, from, to *world) {
	ctx, ws := t.Context(), from.install(t)
	wf := from.workflow(t, ws.ID)
	now := clock.Now()
	later := now.Add(time.Hour)
	idle, busy, done := from.start(t, wf, "node_1"), from.start(t, wf, "node_1"), from.start(t, wf, "node_1")
	answers(from.Commit(ctx, firstLease(busy), busy, run.Decision{Executing: []string{"a", "b"}}))(t, "execute", true)
	from.finish(t, done, run.Succeeded)
	waiting := from.start(t, wf, "node_1")
	answers(from.Commit(ctx, firstLease(waiting), waiting, run.Decision{Release: true, WakeAt: later}))(t, "wait", true)
	placed, held := from.share(t, wf, "=k", 1, workflow.Queue), from.share(t, wf, "=k", 1, workflow.Queue)

	moved(t, from, to, now)
	same(t, "held and idle", to.queue(t, idle.ID), &queued{Epoch: 2, WakeAt: &now})
	same(t, "executing", to.queue(t, busy.ID), &queued{Epoch: 2, WakeAt: &now})
	same(t, "waiting", to.queue(t, waiting.ID), &queued{Epoch: 2, WakeAt: &later})
	same(t, "with a place", to.queue(t, placed.ID), &queued{Epoch: 2, WakeAt: &now})
	same(t, "without a place", to.queue(t, held.ID), &queued{Epoch: 2})
	same(t, "finished", to.queue(t, done.ID), nil)
	to.checkPlaced(t, "places", wf, idle, busy, waiting, placed)

	// Whoever held a run there holds nothing here.
	for _, r := range []run.Run{idle, busy, waiting} {
		answers(to.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "a late commit", false)
	}
	same(t, "orphans", must(to.Orphans(ctx, "node_9", "", plenty))(t), nil)
	due := map[string]run.Wake{}
	for _, wake := range must(to.Due(ctx, now, nil, plenty))(t) {
		due[wake.RunID] = wake
	}
	same(t, "runs that are due", len(due), 3)
	same(t, "crashes of the idle one", due[idle.ID].Crashes, 0)
	same(t, "crashes of the one that was executing", due[busy.ID].Crashes, 1)

	// It dies at the same steps again: that is the second time.
	lease, ok, err := to.Activate(ctx, due[busy.ID], "node_9")
	answers(ok, err)(t, "activate", true)
	answers(to.Commit(ctx, lease, busy, run.Decision{Executing: []string{"a", "b"}}))(t, "execute again", true)
	if err := to.Blame(ctx, "node_10"); err != nil {
		t.Fatal(err)
	}
	same(t, "crashes after another one", found(to.Run(ctx, ws.ID, busy.ID))(t).Crashes, 2)
}

// testMoveNumbers checks that positions of streams stay ahead of nothing: the
// next number is larger than any before, also than those of rows that are gone.
func testMoveNumbers(t *testing.T, from, to *world) {
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
	moved(t, from, to, clock.Now())
	to.start(t, wf, "node_1")
	for table, before := range last {
		if got := to.count(t, `SELECT min(seq) FROM `+table); got <= before {
			t.Errorf("%s go on at %d after %d", table, got, before)
		}
	}
	// Where rows are left and nothing is gone, the same.
	again := newWorld(t, to.open)
	moved(t, to, again, clock.Now())
	before := again.count(t, `SELECT max(seq) FROM events`)
	r := again.start(t, wf, "node_1")
	if got := again.count(t, `SELECT seq FROM events WHERE id = $1`, again.eventOf(t, r.ID, event.RunStarted)); got <= before {
		t.Errorf("events go on at %d after %d", got, before)
	}
}

func testMoveEmpty(t *testing.T, from, to *world) {
	from.install(t)
	file := from.export(t)
	to.install(t)
	before := to.contents(t)
	if err := to.imports(t, bytes.NewReader(file), clock.Now()); !errors.Is(err, store.ErrInstalled) {
		t.Errorf("into an installation: %v", err)
	}
	same(t, "the installation", to.contents(t), before)

	to.exec(t, `DELETE FROM installation`)
	if err := to.imports(t, bytes.NewReader(file), clock.Now()); err == nil || !strings.Contains(err.Error(), "holds rows") {
		t.Errorf("into tables with rows of nobody: %v", err)
	}
	same(t, "rows of nobody", to.count(t, `SELECT count(*) FROM workspaces`), 1)
	same(t, "installations", to.count(t, `SELECT count(*) FROM installation`), 0)
}

// cutting is a file whose reader dies with it.
type cutting struct {
	io.Reader
	at func()
}

func (c cutting) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	if errors.Is(err, io.EOF) {
		c.at()
	}
	return n, err
}

// half is the archive of an installation with many runs, and about half of it.
func half(t *testing.T, w *world) (whole, part []byte) {
	t.Helper()
	ws := w.install(t)
	wf := w.workflow(t, ws.ID)
	for range 700 {
		w.start(t, wf, "node_1")
	}
	whole = w.export(t)
	return whole, whole[:len(whole)/2]
}

func testMoveCut(t *testing.T, from, to *world) {
	file, part := half(t, from)
	// The process dies in the middle: what it panics with gets past everything
	// that an import does after an error.
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it went through")
			}
		}()
		_ = to.imports(t, cutting{bytes.NewReader(part), func() { panic("killed") }}, clock.Now())
	}()
	same(t, "half of it", must(to.Half(t.Context()))(t), true)
	if to.count(t, `SELECT count(*) FROM runs`) == 0 {
		t.Fatal("nothing was written before the end")
	}
	if _, err := to.Install(t.Context(), auth.Installation{Workspace: newWorkspace()}); !errors.Is(err, store.ErrHalf) {
		t.Errorf("a server that starts meanwhile: %v", err)
	}
	gone(to.FirstWorkspace(t.Context()))(t, "the first workspace")

	if err := to.imports(t, bytes.NewReader(file), clock.Now()); err != nil {
		t.Fatal(err)
	}
	same(t, "half of it", must(to.Half(t.Context()))(t), false)
	if !cmp.Equal(from.contents(t), to.contents(t)) {
		t.Error("what has moved is not the same")
	}
}

// testMoveTwice lets a second import begin while the first is under way. One of
// them comes to its end.
func testMoveTwice(t *testing.T, from, to *world) {
	file, part := half(t, from)
	rest := file[len(part):]
	first := io.MultiReader(bytes.NewReader(part), cutting{strings.NewReader(""), func() {
		if err := to.imports(t, bytes.NewReader(file), clock.Now()); err != nil {
			t.Error(err)
		}
	}}, bytes.NewReader(rest))
	if err := to.imports(t, first, clock.Now()); err == nil {
		t.Error("both went through")
	}
	same(t, "half of it", must(to.Half(t.Context()))(t), false)
	if !cmp.Equal(from.contents(t), to.contents(t)) {
		t.Error("what has moved is not the same")
	}
}

func testMoveDamaged(t *testing.T, from, to *world) {
	file, part := half(t, from)
	changed := bytes.Clone(file)
	changed[len(changed)-6] ^= 1 // the checksum at the end
	for name, content := range map[string][]byte{"cut short": part, "changed": changed} {
		if err := to.imports(t, bytes.NewReader(content), clock.Now()); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		for _, table := range store.Tables() {
			if n := to.count(t, `SELECT count(*) FROM `+table.Name); n != 0 {
				t.Errorf("%s: %d rows of %s are left", name, n, table.Name)
			}
		}
	}
	to.install(t) // it is as if nothing had been
}

func testMoveOthers(t *testing.T, _, to *world) {
	for name, change := range map[string]func(*archive.Header){
		"newer":           func(h *archive.Header) { h.Schema++ },
		"older":           func(h *archive.Header) { h.Schema-- },
		"a table less":    func(h *archive.Header) { h.Tables = h.Tables[1:] },
		"another column":  func(h *archive.Header) { h.Tables[1].Columns[0].Name = uid.New(uid.Run) },
		"of another kind": func(h *archive.Header) { h.Tables[1].Columns[0].Kind = archive.Bytes },
	} {
		h := archive.Header{Schema: store.Schema, KeyCheck: keyCheck, Tables: store.Archived()}
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
		if err := to.imports(t, &file, clock.Now()); err == nil || !strings.Contains(err.Error(), "was written by Stepmill") {
			t.Errorf("%s: %v", name, err)
		}
	}
	same(t, "installations", to.count(t, `SELECT count(*) FROM installation`), 0)
}
