package river_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/action/wait"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster/heartbeat"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/fault"
	noun "github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/internal/store/storetest"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// hang is how long a condition may take to become true. A sweep repairs a lost wake-up
// after 15 to 25 seconds, and a run can lose several.
const hang = 5 * time.Minute

// node is one of several nodes in this process, on a store that fails.
type node struct {
	id       string
	db       *postgres.DB
	faulty   *storetest.Faulty
	store    *store.DB
	dispatch *river.Dispatcher
	engine   *engine.Engine
	keeper   *heartbeat.Keeper
	flows    *workflow.Service
	runs     *run.Service
	actor    auth.Actor
}

// Transactions time out, are rejected, or succeed and are reported as failed. Every
// started run still ends exactly once, and nothing is left behind.
func TestRunsUnderStoreFaults(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	seed := lane.Pick(1, uint64(time.Now().UnixNano()))
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	opts := postgrestest.New(t)
	var effects sync.Map // number of effects by step
	nodes := []*node{newNode(t, opts, random, &effects), newNode(t, opts, random, &effects)}
	flows := map[string]string{}
	child := nodes[0].define(t, `[{"id": "one", "uses": "test.effect"}]`)
	flows["effects"] = nodes[0].define(t, `[{"id": "one", "uses": "test.effect"}, {"id": "two", "uses": "test.effect"}]`)
	flows["waits"] = nodes[0].define(t, `[{"id": "one", "uses": "flow.wait", "with": {"for": "700ms"}}, {"id": "two", "uses": "test.effect"}]`)
	flows["family"] = nodes[0].define(t, fmt.Sprintf(`[{"id": "one", "uses": "flow.run", "with": {"workflow_id": %q}}, {"id": "two", "uses": "test.effect"}]`, child))
	flows["asks"] = nodes[0].define(t, `[{"id": "one", "uses": "flow.approval"}, {"id": "two", "uses": "test.effect"}]`)
	for _, n := range nodes {
		n.faulty.Fail(0.02)
	}
	var all sync.WaitGroup
	for i := 0; i < 60 || !enoughFaults(nodes) && i < 1000; i++ {
		for kind, id := range flows {
			n := nodes[(i+len(kind))%2]
			all.Go(func() { n.execute(t, id, kind == "asks") })
		}
		time.Sleep(20 * time.Millisecond)
	}
	all.Wait()
	if !enoughFaults(nodes) {
		t.Error("too few faults for the test to be meaningful")
	}
	for _, n := range nodes {
		n.faulty.Fail(0)
		t.Logf("%+v", n.faulty.Counts())
	}
	nodes[0].check(t)
	if t.Failed() {
		explain(t, nodes)
	}
}

// enoughFaults reports whether every node had several faults of each kind.
func enoughFaults(nodes []*node) bool {
	return !slices.ContainsFunc(nodes, func(n *node) bool {
		counts := n.faulty.Counts()
		return min(counts.Timeout, counts.Executed, counts.Unavailable) < 5
	})
}

// explain logs the rows that are left.
func explain(t *testing.T, nodes []*node) {
	t.Helper()
	for _, n := range nodes {
		t.Logf("%s works on %v", n.id, n.engine.Leases())
	}
	if err := nodes[0].db.Read(context.Background(), func(c database.Conn) error {
		return c.Query(`SELECT to_jsonb(q)::text FROM run_queue q UNION ALL SELECT to_jsonb(l)::text FROM workspace_load l UNION ALL SELECT to_jsonb(n)::text FROM nodes n`, nil, func(r database.Row) error {
			var row string
			err := r.Scan(&row)
			t.Log(row)
			return err
		})
	}); err != nil {
		t.Error(err)
	}
}

func newNode(t *testing.T, opts postgres.Options, random *rand.Rand, effects *sync.Map) *node {
	t.Helper()
	n := &node{id: uid.New(uid.Node)}
	var err error
	if n.db, err = postgres.Open(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	n.faulty = storetest.NewFaulty(n.db, rand.New(rand.NewPCG(random.Uint64(), 0)))
	watchers := run.NewWatchers()
	n.store = store.New(n.faulty, store.Notify{
		Wake:          func(w run.Wake) { n.dispatch.Wake(w) },
		AnswerArrived: func(id string) { n.Nudge(id) },
		HeldBack:      func(id string) { n.dispatch.Unreserve(id) },
	})
	v, err := vault.New(make([]byte, 32), n.store.Workspaces)
	if err != nil {
		t.Fatal(err)
	}
	running, begin := runner(t)
	running(n.db.Run)
	if _, err := auth.NewService(n.store.Workspaces, v).Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := n.store.Workspaces.FirstWorkspace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.actor = auth.Actor{Workspace: *first, Type: "system", Scopes: auth.Scopes()}
	catalog, err := action.NewCatalog(approval.Entry(nil), dataset.Entry(), subrun.Entry(n), wait.Entry(), action.Entry{
		Spec: action.Spec{Name: "test.effect", Input: `{"type": "object"}`, Output: `{}`},
		Action: action.Func(func(_ context.Context, req action.Request) (action.Result, error) {
			effects.Store(req.IdempotencyKey, true)
			return action.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	values := secret.NewService(n.store.Secrets, v)
	plans := workflow.NewPrograms(n.store.Workflows, catalog, nil)
	log := slog.New(slog.DiscardHandler)
	config, err := n.db.Configure(opts, 4)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	queue := runqueue.NewCluster(runqueue.ClusterConfig{
		Node: n.id, Limit: func(auth.Plan) int { return 20 }, EnqueueJobs: n.enqueueJobs, HasJob: n.hasJob,
		Wake: func(w run.Wake) { n.dispatch.Wake(w) }, Reserve: func(w run.Wake) bool { return n.dispatch.ReserveShared(w) },
		Draining: func() bool { return n.dispatch.Draining() }, SlotFreed: func(id string) { n.dispatch.SlotFreed(id) },
	}, n.store)
	if n.dispatch, err = river.New(queue, river.Config{Node: n.id, Capacity: engine.Slots, Pool: pool, HoldsLease: func() bool { return true }, Log: log}); err != nil {
		t.Fatal(err)
	}
	n.store.SetQueue(queue)
	n.flows = workflow.NewService(n.store.Workflows, catalog, nil, names{values}, trigger.NewArming(nil, nil))
	n.runs = run.NewService(n.store.Runs, plans, watchers, n.dispatch, pubsub.NewBroker())
	n.engine = engine.New(engine.Config{
		Node: n.id, Store: n.store.Leases, Source: n.dispatch, Programs: plans, Values: values, Vault: v, Log: log,
		HoldsLease: func() bool { return true }, Links: run.NewLinks(n.store.Runs, v, func() string { return "" }),
	})
	n.keeper = heartbeat.New(heartbeat.Config{
		Node: noun.Node{ID: n.id, Name: n.id, StartedAt: clock.Now()}, Capacity: engine.Slots, TTL: 10 * time.Second, OnHeartbeat: func(noun.Heartbeat) {},
	}, registry{n.db}, queue, n.dispatch, n, log)
	if err := n.keeper.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin(n.keeper.Run, n.dispatch.Run, n.dispatch.AdmitThrottled, n.engine.Run)
	return n
}

// runner runs functions until the test ends. Those passed to first stop before the one
// passed to last.
func runner(t *testing.T) (last func(func(context.Context) error), first func(...func(context.Context) error)) {
	start := func(parts ...func(context.Context) error) {
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		for _, part := range parts {
			running.Go(func() {
				if err := part(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		t.Cleanup(func() {
			stop()
			running.Wait()
		})
	}
	return func(part func(context.Context) error) { start(part) }, start
}

func (n *node) hasJob(ctx context.Context, conn database.Conn, ids []string) (map[string]bool, error) {
	return n.dispatch.HasJob(ctx, conn, ids)
}

func (n *node) enqueueJobs(ctx context.Context, conn database.Conn, runs []run.Job) error {
	return n.dispatch.EnqueueJobs(ctx, conn, runs)
}

type names struct{ values *secret.Service }

func (n names) Names(ctx context.Context, actor auth.Actor) (workflow.Names, error) {
	found, err := n.values.Names(ctx, actor.Workspace.ID)
	return workflow.Names{Secrets: found.Secrets, Variables: found.Variables}, err
}

type registry struct{ *postgres.DB }

func (r registry) Forget(ctx context.Context, id string) (bool, error) {
	return r.DB.Forget(ctx, id, river.ReleaseJobs)
}

// node implements heartbeat.Executor.

func (n *node) Leases() []run.Lease        { return n.engine.Leases() }
func (n *node) AbortLease(lease run.Lease) { n.engine.AbortLease(lease) }
func (n *node) AbortAll()                  { n.engine.AbortAll() }
func (n *node) OnTakeover()                {}

func (n *node) Nudge(runID string) {
	n.engine.Nudge(runID)
	n.dispatch.Nudge(runID)
}

// StartChild implements subrun.Starter.
func (n *node) StartChild(ctx context.Context, c subrun.Child) (string, error) {
	return n.runs.StartChild(ctx, run.Child{
		WorkspaceID: c.Workspace, WorkflowID: c.WorkflowID, Payload: c.Payload, Files: c.Files, Depth: c.Run.Depth + 1, Began: c.Began,
		Parent: run.Parent{RunID: c.Run.ID, StepID: c.Run.Path, Waits: c.Waited},
	})
}

func (n *node) define(t *testing.T, steps string) string {
	t.Helper()
	made, err := n.flows.Create(t.Context(), n.actor, workflow.New{Name: "Test"})
	if err != nil {
		t.Fatal(err)
	}
	var list []workflow.Step
	if err := json.Unmarshal([]byte(steps), &list); err != nil {
		t.Fatal(err)
	}
	if _, err := n.flows.Update(t.Context(), n.actor, made.ID, workflow.Patch{Steps: &list}, etag.Match{}); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// execute starts a run and waits until it ends. A start that fails may have succeeded;
// the run then ends without being watched.
func (n *node) execute(t *testing.T, workflowID string, asks bool) {
	started, err := n.runs.Start(t.Context(), n.actor, run.Request{WorkflowID: workflowID, Payload: []byte(`{}`)})
	if err != nil {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("a start failed: %v", err)
		}
		return
	}
	for deadline := time.Now().Add(hang); ; time.Sleep(20 * time.Millisecond) {
		if asks {
			_, err := n.runs.Resume(t.Context(), n.actor, started.ID, "one", run.Resumption{Approved: true})
			asks = err != nil && !fault.Is(err, fault.StepNotWaiting)
		}
		now, err := n.runs.Get(t.Context(), n.actor, started.ID)
		switch {
		case err == nil && now.Status == run.Succeeded:
			return
		case err == nil && now.Status != run.Running:
			t.Errorf("run %s is %s: %+v", started.ID, now.Status, now.Error)
			return
		case err != nil && !fault.Is(err, fault.Unavailable):
			t.Errorf("cannot read a run: %v", err)
			return
		case time.Now().After(deadline):
			t.Errorf("run %s does not end: %+v", started.ID, now)
			return
		}
	}
}

// check checks the final state of the database.
func (n *node) check(t *testing.T) {
	t.Helper()
	if err := n.dispatch.DeleteStaleJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	for rule, statement := range map[string]string{
		"every run has ended": `SELECT count(*) FROM run_queue q WHERE NOT EXISTS
			(SELECT 1 FROM steps s WHERE s.run_id = q.run_id AND s.awaits = 'answer' AND s.status = 'waiting')`,
		"the load counts match the queue": `SELECT count(*) FROM workspace_load l WHERE
			running <> (SELECT count(*) FROM run_queue q WHERE q.workspace_id = l.workspace_id AND q.slot) OR
			throttled <> (SELECT count(*) FROM run_queue q WHERE q.workspace_id = l.workspace_id AND q.throttled)`,
		"a run has one start and one end": `SELECT count(*) FROM runs r WHERE r.status <> 'running' AND
			((SELECT count(*) FROM events e WHERE e.run_id = r.id AND e.type = 'run.started') <> 1 OR
			(SELECT count(*) FROM events e WHERE e.run_id = r.id AND e.type <> 'run.started') <> 1)`,
		"every job is done, or for a run that waits": `SELECT count(*) FROM stepmill_river.river_job j WHERE state <> 'completed' AND NOT
			(state = 'scheduled' AND EXISTS (SELECT 1 FROM run_queue q WHERE q.run_id = j.args->>'run_id'))`,
		"a step starts one run": `SELECT count(*) FROM (SELECT 1 FROM runs WHERE parent_run IS NOT NULL GROUP BY parent_run, parent_step HAVING count(*) > 1) d`,
	} {
		for began, left := time.Now(), 1; left > 0; time.Sleep(50 * time.Millisecond) {
			if err := n.db.Read(t.Context(), func(c database.Conn) error {
				return c.Query(statement, nil, func(r database.Row) error { return r.Scan(&left) })
			}); err != nil {
				t.Fatal(err)
			}
			if left > 0 && time.Since(began) > hang {
				t.Errorf("%s: violated by %d rows", rule, left)
				break
			}
		}
	}
}
