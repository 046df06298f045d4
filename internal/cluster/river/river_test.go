package river_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// testNode is a store and a dispatcher on a shared database.
type testNode struct {
	*river.Dispatcher
	store *store.DB
	queue *runqueue.Cluster
	db    *postgres.DB
	node  string
	stop  func()
}

// join returns a node. Its dispatcher runs once begin is called.
func join(t *testing.T, opts postgres.Options, node string, capacity, limit int) (p *testNode, begin func()) {
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
	p = &testNode{db: db, node: node}
	p.store = store.New(db, store.Notify{
		Wake:          func(w run.Wake) { p.Wake(w) },
		HeldBack:      func(id string) { p.Unreserve(id) },
		AnswerArrived: func(id string) { p.Nudge(id) },
	})
	p.queue = runqueue.NewCluster(runqueue.ClusterConfig{
		Node: node, Limit: func(auth.Plan) int { return limit },
		Wake: func(w run.Wake) { p.Wake(w) }, Reserve: func(w run.Wake) bool { return p.ReserveShared(w) }, Draining: func() bool { return p.Draining() }, SlotFreed: func(id string) { p.SlotFreed(id) },
		EnqueueJobs: func(ctx context.Context, c database.Conn, runs []run.Job) error { return p.EnqueueJobs(ctx, c, runs) },
		HasJob: func(ctx context.Context, c database.Conn, ids []string) (map[string]bool, error) {
			return p.HasJob(ctx, c, ids)
		},
	}, p.store)
	p.Dispatcher, err = river.New(p.queue, river.Config{
		Node: node, Capacity: capacity, Pool: jobs, HoldsLease: func() bool { return true }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.store.SetQueue(p.queue)
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
		running.Go(func() { _ = p.AdmitThrottled(work) })
	}
}

// newWorkflow creates a workflow in a new workspace.
func (p *testNode) newWorkflow(t *testing.T) workflow.Workflow {
	t.Helper()
	now := clock.Now()
	ws := auth.Workspace{ID: uid.At(uid.Workspace, now), Plan: auth.Pro, CreatedAt: now, UpdatedAt: now}
	key := auth.Key{ID: uid.At(uid.Key, now), WorkspaceID: ws.ID, Lookup: uid.New(uid.Key), Hash: []byte("h"), Scopes: []auth.Scope{auth.Admin}}
	entry := func() audit.Entry { return audit.Entry{ID: uid.New(uid.Audit), WorkspaceID: ws.ID, At: now} }
	if err := p.store.Workspaces.InsertWorkspace(t.Context(), ws, []byte("k"), key, "", entry()); err != nil {
		t.Fatal(err)
	}
	wf := workflow.Workflow{ID: uid.At(uid.Workflow, now), WorkspaceID: ws.ID, State: workflow.Active, Version: 1, Revision: 1}
	if ok, err := p.store.Workflows.InsertWorkflow(t.Context(), wf, workflow.Version{WorkflowID: wf.ID, Number: 1}, 10, entry()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return wf
}

// start starts a run as the service does: on this node if it has capacity.
func (p *testNode) start(t *testing.T, of workflow.Workflow) run.Run {
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
	if ok, err := p.store.Runs.StartRun(t.Context(), run.Start{Run: r, Revision: 1, Node: node, Plan: auth.Pro, Event: e}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return r
}

// next returns the next run of a node.
func (p *testNode) next(t *testing.T, within time.Duration) (run.Wake, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	w, err := p.Next(ctx)
	return w, err == nil
}

// gets waits until the node gets the given run.
func (p *testNode) gets(t *testing.T, want run.Run, within time.Duration) run.Wake {
	t.Helper()
	w, ok := p.next(t, within)
	if !ok || w.RunID != want.ID || !w.Owned {
		t.Fatalf("%s got %+v, want %s", p.node, w, want.ID)
	}
	return w
}

func (p *testNode) finish(t *testing.T, r run.Run, w run.Wake) {
	t.Helper()
	r.Status = run.Succeeded
	e, err := run.EndedEvent(r, "w", clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	d := run.Decision{Finish: &run.Finish{Status: run.Succeeded, At: e.At, Event: e}}
	if committed, err := p.store.Leases.Commit(t.Context(), run.Lease{RunID: r.ID, Epoch: w.Epoch}, r, d); err != nil || !committed.Held {
		t.Fatal(committed.Held, err)
	}
	p.Done(w)
}

// patient is how long a test waits for a run.
const patient = hang

// Runs for which a node has no capacity go to another one.
func TestRunsGoToNodesWithCapacity(t *testing.T) {
	t.Parallel()
	opts := postgrestest.New(t)
	a, _ := join(t, opts, "a", 1, 10)
	b, begin := join(t, opts, "b", 10, 10)
	begin()
	wf := a.newWorkflow(t)
	first := a.start(t, wf)
	a.gets(t, first, patient)
	second := a.start(t, wf)
	b.gets(t, second, patient)
	third := a.start(t, wf)
	w := b.gets(t, third, patient)
	b.finish(t, third, w)
}

// A full node leaves jobs to other nodes.
func TestFullNodeLeavesJobs(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := postgrestest.New(t)
	a, beginA := join(t, opts, "a", 1, 10)
	beginA()
	wf := a.newWorkflow(t)
	first := a.start(t, wf)
	held := a.gets(t, first, patient)
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

// The job of a waiting run reaches a node early. The node sets a local timer and
// executes the run on time.
func TestWaitingRunWakesOnTime(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := postgrestest.New(t)
	a, begin := join(t, opts, "a", 10, 10)
	begin()
	wf := a.newWorkflow(t)
	for _, wait := range []time.Duration{11 * time.Second, 300 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			r := a.start(t, wf)
			w := a.gets(t, r, patient)
			at := clock.Now().Add(wait)
			a.release(t, r, w, at)
			again := a.gets(t, r, patient)
			if now := clock.Now(); now.Before(at) {
				t.Errorf("it woke %v early", at.Sub(now))
			}
			a.finish(t, r, again)
		})
	}
}

// release releases a run that waits until the given time.
func (p *testNode) release(t *testing.T, r run.Run, w run.Wake, at time.Time) {
	t.Helper()
	if committed, err := p.store.Leases.Commit(t.Context(), run.Lease{RunID: r.ID, Epoch: w.Epoch}, r, run.Decision{Rev: 1, Release: true, WakeAt: at}); err != nil || !committed.Held {
		t.Fatal(committed.Held, err)
	}
	p.Done(w)
}

// releaseToTimer releases a run for an hour and lets the node own it, as if its job had
// arrived early. The timer itself is not set.
func (p *testNode) releaseToTimer(t *testing.T, r run.Run, w run.Wake) {
	t.Helper()
	p.release(t, r, w, clock.Now().Add(time.Hour))
	p.change(t, `UPDATE run_queue SET node = $1 WHERE run_id = $2`, p.node, r.ID)
}

// ownedWithTimer returns a run that should have a timer on the node.
func (p *testNode) ownedWithTimer(t *testing.T, r run.Run) run.Wake {
	t.Helper()
	owned, err := p.queue.OwnedRuns(t.Context(), p.node)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range owned {
		if o.RunID == r.ID && o.LocalTimer {
			return o.Wake
		}
	}
	t.Fatalf("%s owns %+v, want %s with a timer", p.node, owned, r.ID)
	return run.Wake{}
}

// A run that becomes due on a full node goes to one with capacity.
func TestTimerOnFullNodeRequeues(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := postgrestest.New(t)
	a, beginA := join(t, opts, "a", 1, 10)
	b, beginB := join(t, opts, "b", 1, 10)
	beginA()
	wf := a.newWorkflow(t)
	r := a.start(t, wf)
	a.releaseToTimer(t, r, a.gets(t, r, patient))
	busy := a.start(t, wf)
	a.gets(t, busy, patient)
	a.change(t, `UPDATE run_queue SET wake_at = 1 WHERE run_id = $1`, r.ID)
	a.Watch(a.ownedWithTimer(t, r))
	beginB()
	b.gets(t, r, patient)
}

// A node that stops immediately requeues the runs that it does not execute, even if
// others take long to finish.
func TestStopRequeuesWaitingRuns(t *testing.T) {
	t.Parallel()
	opts := postgrestest.New(t)
	a, beginA := join(t, opts, "a", 3, 10)
	b, beginB := join(t, opts, "b", 3, 10)
	beginA()
	wf := a.newWorkflow(t)
	watched, busy := a.start(t, wf), a.start(t, wf)
	a.release(t, watched, a.gets(t, watched, patient), clock.Now().Add(time.Second))
	held := a.gets(t, busy, patient)
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

// An answer wakes a run with a local timer. Watch sets a timer that was lost.
func TestNudgeWakesRunWithLocalTimer(t *testing.T) {
	t.Parallel()
	a, begin := join(t, postgrestest.New(t), "a", 10, 10)
	begin()
	wf := a.newWorkflow(t)
	r := a.start(t, wf)
	a.releaseToTimer(t, r, a.gets(t, r, patient))
	a.Watch(a.ownedWithTimer(t, r))
	a.change(t, `UPDATE run_queue SET wake_at = 1 WHERE run_id = $1`, r.ID) // as an answer does
	a.Nudge(r.ID)
	a.gets(t, r, patient)
}

func (p *testNode) change(t *testing.T, statement string, args ...any) {
	t.Helper()
	if err := p.db.Write(t.Context(), func(c database.Conn) error { return c.Do(statement, args...) }); err != nil {
		t.Fatal(err)
	}
}

// A node executes one isolated run at a time.
func TestIsolatedRunsOneAtATime(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	a, begin := join(t, postgrestest.New(t), "a", 10, 10)
	wf := a.newWorkflow(t)
	runs := map[string]run.Run{}
	for range 3 {
		r := a.start(t, wf)
		runs[r.ID] = r
		a.next(t, patient)
	}
	a.change(t, `UPDATE run_queue SET crashes = 2`)
	if n, _, err := a.queue.TakeOver(t.Context(), "a", false); err != nil || n != 3 {
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
			t.Fatalf("two isolated runs at a time: %s and %s", w.RunID, other.RunID)
		}
		a.finish(t, runs[w.RunID], w)
	}
}

// Runs of a workspace with few runs in flight have a higher priority.
func TestPriorityByRunsInFlight(t *testing.T) {
	t.Parallel()
	a, _ := join(t, postgrestest.New(t), "a", 0, 1000)
	many, one := a.newWorkflow(t), a.newWorkflow(t)
	for range 70 {
		a.start(t, many)
	}
	a.start(t, one)
	var got []string
	err := a.db.Read(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT priority::bigint, count(*) FROM stepmill_river.river_job WHERE state = 'available' GROUP BY 1 ORDER BY 1`, nil, func(r database.Row) error {
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

// HasJob counts jobs that are due, but not those for later or with a dead node.
func TestHasJob(t *testing.T) {
	t.Parallel()
	a, _ := join(t, postgrestest.New(t), "a", 0, 10)
	wf := a.newWorkflow(t)
	due, far, lost := a.start(t, wf), a.start(t, wf), a.start(t, wf)
	a.change(t, `UPDATE stepmill_river.river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour' WHERE args->>'run_id' = $1`, far.ID)
	a.change(t, `UPDATE stepmill_river.river_job SET state = 'running', attempted_at = now() - interval '1 minute' WHERE args->>'run_id' = $1`, lost.ID)
	a.change(t, `UPDATE run_queue SET wake_at = 1`)
	found, _, _, err := a.queue.Sweep(t.Context())
	if err != nil || found != 2 {
		t.Errorf("Sweep found %d runs, %v", found, err)
	}
	err = a.db.Write(t.Context(), func(c database.Conn) error {
		hasJob, err := a.HasJob(t.Context(), c, []string{due.ID, far.ID, lost.ID, "run_none"})
		if len(hasJob) != 3 {
			t.Errorf("HasJob: %v", hasJob)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Free slots go to throttled runs. A node that leaves claims no more runs, and its
// throttled runs go to others.
func TestThrottledRunsAreAdmitted(t *testing.T) {
	t.Parallel()
	opts := postgrestest.New(t)
	a, beginA := join(t, opts, "a", 10, 1)
	b, beginB := join(t, opts, "b", 10, 1)
	beginA()
	wf := a.newWorkflow(t)
	first := a.start(t, wf)
	w := a.gets(t, first, patient)
	second, third := a.start(t, wf), a.start(t, wf)
	a.finish(t, first, w)
	w = a.gets(t, second, patient)
	a.stop()
	beginB()
	for !a.Draining() {
		time.Sleep(time.Millisecond)
	}
	if node, _ := a.Reserve(wf.WorkspaceID, "run_x", 0); node != "" {
		t.Error("a node that leaves reserves slots")
	}
	a.finish(t, second, w)
	if _, err := b.queue.AdmitThrottled(t.Context(), wf.WorkspaceID); err != nil {
		t.Fatal(err)
	}
	b.gets(t, third, patient)
}
