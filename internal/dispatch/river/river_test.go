package river_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/dispatch/river"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
	server "github.com/stepmill/stepmill/test/postgres"
)

// place is a node: a store and a dispatcher on the database that it shares.
type place struct {
	*river.Dispatcher
	store *store.Store
	db    *postgres.DB
	node  string
	stop  func()
}

// claimer takes runs up in the store.
type claimer struct{ *place }

func (c claimer) Claim(ctx context.Context, wake run.Wake, complete func(context.Context, pgx.Tx) error) (run.Wake, run.Claimed, error) {
	return c.store.Claim(ctx, wake, func(ctx context.Context, conn store.Conn) error {
		tx, err := postgres.Tx(conn)
		if err != nil {
			return err
		}
		return complete(ctx, tx)
	})
}

func (c claimer) PassOn(ctx context.Context, workspaceID string) (bool, error) {
	return c.store.PassOn(ctx, workspaceID)
}

func (c claimer) GiveBack(ctx context.Context, runs []run.Wake) error {
	return c.store.GiveBack(ctx, runs)
}

var (
	template     string
	makeTemplate sync.Once
)

func newDatabase(t *testing.T) postgres.Options {
	t.Helper()
	makeTemplate.Do(func() {
		template = server.Shared(t).NewTemplate(t, func(url string) error {
			return postgres.Migrate(t.Context(), postgres.Options{URL: url, Name: "test"})
		})
	})
	return postgres.Options{URL: server.Shared(t).CopyDatabase(t, template), Name: "test"}
}

// join makes a node. It takes part once begin is called.
func join(t *testing.T, opts postgres.Options, node string, capacity, limit int) (p *place, begin func()) {
	t.Helper()
	db, err := postgres.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	config, err := db.Configure(opts, 4)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	p = &place{db: db, node: node}
	p.store = store.New(db, store.Notify{
		Wake:     func(w run.Wake) { p.Wake(w) },
		HeldBack: func(id string) { p.Unreserve(id) },
		Stirred:  func(id string) { p.Stir(id) },
	})
	p.Dispatcher, err = river.New(claimer{p}, river.Config{
		Node: node, Capacity: capacity, Pool: jobs, Trusted: func() bool { return true }, Schema: postgres.JobSchema, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.store.OfCluster(store.Cluster{
		Node: node, Limit: func(auth.Plan) int { return limit }, Room: p.Room, Leaving: p.Leaving, Freed: p.Freed,
		Hand: func(ctx context.Context, c store.Conn, runs []run.Handover) error {
			tx, err := postgres.Tx(c)
			if err != nil {
				return err
			}
			return p.Hand(ctx, tx, runs)
		},
		Carried: func(ctx context.Context, c store.Conn, ids []string) (map[string]bool, error) {
			tx, err := postgres.Tx(c)
			if err != nil {
				return nil, err
			}
			return p.Carried(ctx, tx, ids)
		},
	})
	rows, closeRows := context.WithCancel(context.Background())
	work, stop := context.WithCancel(context.Background())
	p.stop = stop
	var data, running sync.WaitGroup
	data.Go(func() { _ = db.Run(rows) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		jobs.Close()
		closeRows()
		data.Wait()
	})
	return p, func() {
		running.Go(func() {
			if err := p.Run(work); err != nil {
				t.Error(err)
			}
		})
		running.Go(func() { _ = p.PassOn(work) })
	}
}

// newWorkflow makes a workflow in a workspace of its own.
func (p *place) newWorkflow(t *testing.T) workflow.Workflow {
	t.Helper()
	now := clock.Now()
	ws := auth.Workspace{ID: uid.At(uid.Workspace, now), Plan: auth.Pro, CreatedAt: now, UpdatedAt: now}
	key := auth.Key{ID: uid.At(uid.Key, now), WorkspaceID: ws.ID, Lookup: uid.New(uid.Key), Hash: []byte("h"), Scopes: []auth.Scope{auth.Admin}}
	entry := func() audit.Entry { return audit.Entry{ID: uid.New(uid.Audit), WorkspaceID: ws.ID, At: now} }
	if err := p.store.InsertWorkspace(t.Context(), ws, []byte("k"), key, "", entry()); err != nil {
		t.Fatal(err)
	}
	wf := workflow.Workflow{ID: uid.At(uid.Workflow, now), WorkspaceID: ws.ID, State: workflow.Active, Version: 1, Revision: 1}
	if ok, err := p.store.InsertWorkflow(t.Context(), wf, workflow.Version{WorkflowID: wf.ID, Number: 1}, 10, entry()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return wf
}

// start starts a run as the service does: here, if there is room.
func (p *place) start(t *testing.T, of workflow.Workflow) run.Run {
	t.Helper()
	now := clock.Now()
	r := run.Run{
		ID: uid.At(uid.Run, now), WorkspaceID: of.WorkspaceID, WorkflowID: of.ID, WorkflowVersion: 1, Status: run.Running, StartedAt: now,
		Trigger: run.Trigger{Type: run.Manual, Payload: json.RawMessage(`{}`)},
	}
	e, err := run.StartedEvent(r, "w")
	if err != nil {
		t.Fatal(err)
	}
	node, _ := p.Reserve(r.WorkspaceID, r.ID, 0)
	if ok, err := p.store.StartRun(t.Context(), run.Start{Run: r, Revision: 1, Node: node, Plan: auth.Pro, Event: e}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return r
}

// next is the next run that a node works on.
func (p *place) next(t *testing.T, within time.Duration) (run.Wake, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	w, err := p.Next(ctx)
	return w, err == nil
}

// gets waits for a run that has to come to a node.
func (p *place) gets(t *testing.T, want run.Run, within time.Duration) run.Wake {
	t.Helper()
	w, ok := p.next(t, within)
	if !ok || w.RunID != want.ID || !w.Owned {
		t.Fatalf("%s got %+v, want %s", p.node, w, want.ID)
	}
	return w
}

func (p *place) finish(t *testing.T, r run.Run, w run.Wake) {
	t.Helper()
	r.Status = run.Succeeded
	e, err := run.EndedEvent(r, "w", clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	d := run.Decision{Finish: &run.Finish{Status: run.Succeeded, At: e.At, Event: e}}
	if ok, err := p.store.Commit(t.Context(), run.Lease{RunID: r.ID, Epoch: w.Epoch}, r, d); err != nil || !ok {
		t.Fatal(ok, err)
	}
	p.Done(w)
}

const (
	// prompt is less than River takes to look at what is scheduled.
	prompt = 4 * time.Second
	// patient is for what may take as long as it takes.
	patient = 30 * time.Second
)

// What a node has no room for goes to another one, at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	a, _ := join(t, opts, "a", 1, 10)
	b, begin := join(t, opts, "b", 10, 10)
	begin()
	wf := a.newWorkflow(t)
	first := a.start(t, wf)
	a.gets(t, first, prompt)
	second := a.start(t, wf)
	b.gets(t, second, prompt)
	third := a.start(t, wf)
	w := b.gets(t, third, prompt)
	b.finish(t, third, w)
}

// A node that is full leaves what it was brought to others.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	a, beginA := join(t, opts, "a", 1, 10)
	beginA()
	wf := a.newWorkflow(t)
	first := a.start(t, wf)
	held := a.gets(t, first, prompt)
	waits := a.start(t, wf)
	if w, ok := a.next(t, time.Second); ok {
		t.Fatalf("a full node got %+v", w)
	}
	b, beginB := join(t, opts, "b", 1, 10)
	beginB()
	b.gets(t, waits, patient)
	another := a.start(t, wf)
	a.finish(t, first, held)
	a.gets(t, another, patient)
}

// A run that waits for a while comes to a node before its time, which then
// watches it.
func TestTimer(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	a, begin := join(t, opts, "a", 10, 10)
	begin()
	wf := a.newWorkflow(t)
	for _, wait := range []time.Duration{11 * time.Second, 300 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			r := a.start(t, wf)
			w := a.gets(t, r, prompt)
			at := clock.Now().Add(wait)
			a.release(t, r, w, at)
			again := a.gets(t, r, patient)
			if now := clock.Now(); now.Before(at) || now.After(at.Add(prompt)) {
				t.Errorf("it came %v after its time", now.Sub(at))
			}
			a.finish(t, r, again)
		})
	}
}

// release gives a run back until a time that its node watches.
func (p *place) release(t *testing.T, r run.Run, w run.Wake, at time.Time) {
	t.Helper()
	if ok, err := p.store.Commit(t.Context(), run.Lease{RunID: r.ID, Epoch: w.Epoch}, r, run.Decision{Rev: 1, Release: true, WakeAt: at}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	p.Done(w)
}

// A run whose time comes on a node that is full goes to one that has room.
func TestTimerWithoutRoom(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	a, beginA := join(t, opts, "a", 1, 10)
	b, beginB := join(t, opts, "b", 1, 10)
	beginA()
	wf := a.newWorkflow(t)
	r := a.start(t, wf)
	a.release(t, r, a.gets(t, r, prompt), clock.Now().Add(time.Second))
	busy := a.start(t, wf)
	a.gets(t, busy, prompt)
	beginB()
	b.gets(t, r, patient)
}

// A node that stops gives back at once what it watches and what it has not begun
// with, however long it still works on the rest.
func TestStopGivesBack(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	a, beginA := join(t, opts, "a", 3, 10)
	b, beginB := join(t, opts, "b", 3, 10)
	beginA()
	wf := a.newWorkflow(t)
	watched, busy := a.start(t, wf), a.start(t, wf)
	a.release(t, watched, a.gets(t, watched, prompt), clock.Now().Add(time.Second))
	held := a.gets(t, busy, prompt)
	waits := a.start(t, wf)
	a.stop()
	beginB()
	for want := map[string]bool{watched.ID: true, waits.ID: true}; len(want) > 0; {
		w, ok := b.next(t, patient)
		if !ok || !want[w.RunID] {
			t.Fatalf("b got %+v, want one of %v", w, want)
		}
		delete(want, w.RunID)
	}
	a.finish(t, busy, held)
}

// What a node watches is taken up when something comes for it, and watched again
// when the node has forgotten it.
func TestWatch(t *testing.T) {
	t.Parallel()
	a, begin := join(t, newDatabase(t), "a", 10, 10)
	begin()
	wf := a.newWorkflow(t)
	r := a.start(t, wf)
	w := a.gets(t, r, prompt)
	a.release(t, r, w, clock.Now().Add(9*time.Second))
	a.Forget()
	held, err := a.store.Held(t.Context(), "a")
	if err != nil || len(held) != 1 || !held[0].Armed {
		t.Fatal(held, err)
	}
	a.Watch(held[0].Wake)
	a.change(t, `UPDATE run_queue SET wake_at = 1 WHERE run_id = $1`, r.ID) // as an answer does
	a.Stir(r.ID)
	a.gets(t, r, prompt)
}

func (p *place) change(t *testing.T, statement string, args ...any) {
	t.Helper()
	if err := p.db.Write(t.Context(), func(c store.Conn) error { return c.Do(statement, args...) }); err != nil {
		t.Fatal(err)
	}
}

// Of runs under suspicion a node has one at a time.
func TestSuspects(t *testing.T) {
	t.Parallel()
	a, begin := join(t, newDatabase(t), "a", 10, 10)
	wf := a.newWorkflow(t)
	runs := map[string]run.Run{}
	for range 3 {
		r := a.start(t, wf)
		runs[r.ID] = r
		a.next(t, prompt)
	}
	a.change(t, `UPDATE run_queue SET crashes = 2`)
	if n, _, err := a.store.TakeFrom(t.Context(), "a", false); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	for range 3 {
		a.Done(run.Wake{})
	}
	begin()
	for range 3 {
		w, ok := a.next(t, patient)
		if !ok || !w.Isolated() {
			t.Fatal(w, ok)
		}
		if other, ok := a.next(t, 1500*time.Millisecond); ok {
			t.Fatalf("two suspects at a time: %s and %s", w.RunID, other.RunID)
		}
		a.finish(t, runs[w.RunID], w)
	}
}

// A workspace with one run is not behind another's many.
func TestPriority(t *testing.T) {
	t.Parallel()
	a, _ := join(t, newDatabase(t), "a", 0, 1000)
	many, one := a.newWorkflow(t), a.newWorkflow(t)
	for range 70 {
		a.start(t, many)
	}
	a.start(t, one)
	var got []string
	err := a.db.Read(t.Context(), func(c store.Conn) error {
		return c.Query(`SELECT priority::bigint, count(*) FROM stepmill_river.river_job WHERE state = 'available' GROUP BY 1 ORDER BY 1`, nil, func(r store.Row) error {
			var priority, n int
			err := r.Scan(&priority, &n)
			got = append(got, fmt.Sprint(priority, ": ", n))
			return err
		})
	})
	if want := "[1: 9 2: 56 3: 6]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
}

// A job that is on its way is known, one that is not due about now does not
// count.
func TestCarried(t *testing.T) {
	t.Parallel()
	a, _ := join(t, newDatabase(t), "a", 0, 10)
	wf := a.newWorkflow(t)
	due, far, lost := a.start(t, wf), a.start(t, wf), a.start(t, wf)
	a.change(t, `UPDATE stepmill_river.river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour' WHERE args->>'run_id' = $1`, far.ID)
	a.change(t, `UPDATE stepmill_river.river_job SET state = 'running', attempted_at = now() - interval '1 minute' WHERE args->>'run_id' = $1`, lost.ID)
	a.change(t, `UPDATE run_queue SET wake_at = 1`)
	found, _, _, err := a.store.Sweep(t.Context())
	if err != nil || found != 2 {
		t.Errorf("%d runs were found, %v", found, err)
	}
	err = a.db.Write(t.Context(), func(c store.Conn) error {
		tx, err := postgres.Tx(c)
		if err != nil {
			return err
		}
		carried, err := a.Carried(t.Context(), tx, []string{due.ID, far.ID, lost.ID, "run_none"})
		if len(carried) != 3 {
			t.Errorf("carried: %v", carried)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Slots that become free go to runs that are parked; a node that leaves takes up
// nothing more, and what it has goes to others.
func TestParkedAndLeaving(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	a, beginA := join(t, opts, "a", 10, 1)
	b, beginB := join(t, opts, "b", 10, 1)
	beginA()
	wf := a.newWorkflow(t)
	first := a.start(t, wf)
	w := a.gets(t, first, prompt)
	second, third := a.start(t, wf), a.start(t, wf)
	a.finish(t, first, w)
	w = a.gets(t, second, prompt)
	a.stop()
	beginB()
	for !a.Leaving() {
		time.Sleep(time.Millisecond)
	}
	if node, _ := a.Reserve(wf.WorkspaceID, "run_x", 0); node != "" {
		t.Error("a node that leaves keeps places")
	}
	a.finish(t, second, w)
	if _, err := b.store.PassOn(t.Context(), wf.WorkspaceID); err != nil {
		t.Fatal(err)
	}
	b.gets(t, third, patient)
}
