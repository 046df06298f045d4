package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/branch"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/keys"
	"github.com/stepmill/stepmill/internal/action/logwrite"
	"github.com/stepmill/stepmill/internal/action/rows"
	"github.com/stepmill/stepmill/internal/action/stop"
	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/action/wait"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// effects is an action with effects that a test scripts through its input:
// {"returns": …}, {"fails": "message"}, {"panics": true}, {"gate": "name"},
// which blocks until the test opens the gate or the step is aborted, {"deaf":
// "name"}, which ignores the latter, {"logs": "text"} or {"lines": n},
// which write to the log of the step first, {"takes": "25s"}, {"call": "name",
// "passes_after": n}, which fails n times with a retryable failure, or {"scripted":
// true}, of which the test decides by its run and path whether it fails, and
// which returns the "tag" and "seen" of its input. With {"leaves": …} a failure
// keeps that output, with {"leaves_first": …} only the failure of the first call
// does, and with {"leaves_bytes": n} it is n bytes long.
type effects struct {
	mu    sync.Mutex
	calls map[string]int // by the "call" of the input
	texts map[string]string
	gates map[string]chan struct{}
	begun chan string // names of gates that were reached
	ended chan string // names of gates whose step was aborted
	fails atomic.Pointer[func(runID, path string) bool]
	slot  chan struct{} // of queued actions
}

func newEffects() *effects {
	return &effects{
		calls: map[string]int{}, texts: map[string]string{}, gates: map[string]chan struct{}{},
		begun: make(chan string, 1000), ended: make(chan string, 1000), slot: make(chan struct{}, 1),
	}
}

func (e *effects) entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{Name: "test.effect", Connects: true, Input: `{"type": "object"}`, Output: `{}`},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			e.take(req)
			if req.Input["scripted"] == true {
				if fails := e.fails.Load(); (*fails)(req.Run.ID, req.Run.Path) {
					return action.Result{}, &action.Failure{Code: "test_failed", Message: "scripted"}
				}
				out := map[string]any{"path": req.Run.Path}
				for _, key := range []string{"tag", "seen"} {
					if value, given := req.Input[key]; given {
						out[key] = value
					}
				}
				return action.Result{Output: out}, nil
			}
			return e.run(ctx, req.Input)
		}),
	}
}

// queued returns test.queued: like test.effect, but only one step executes at a time.
func (e *effects) queued() action.Entry {
	entry := e.entry()
	entry.Spec.Name = "test.queued"
	entry.Acquire = func(ctx context.Context, _ string) (func(), error) {
		select {
		case e.slot <- struct{}{}:
			return func() { <-e.slot }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return entry
}

// take stores the input of the action and writes its log lines.
func (e *effects) take(req action.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines, _ := req.Input["lines"].(int)
	for i := range lines {
		req.Log(action.Info, strconv.Itoa(i))
	}
	if req.Input["issues"] == true {
		length, _ := req.Input["line"].(int)
		req.Log(action.Info, strings.Repeat("x", length)+canary)
	}
	for _, key := range []string{"header", "says", "logs"} {
		if text, ok := req.Input[key].(string); ok {
			req.Log(action.Info, text)
			e.texts[key] = text
		}
	}
}

// given returns the text that the action last received for a key.
func (e *effects) given(key string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.texts[key]
}

func (e *effects) forget(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.texts, key)
}

func (e *effects) run(ctx context.Context, in map[string]any) (action.Result, error) {
	if name, ok := in["call"].(string); ok {
		e.mu.Lock()
		e.calls[name]++
		e.mu.Unlock()
	}
	if name, ok := in["gate"].(string); ok {
		e.begun <- name
		select {
		case <-e.gate(name):
		case <-ctx.Done():
			e.ended <- name
			return action.Result{}, ctx.Err()
		}
	}
	if name, ok := in["deaf"].(string); ok {
		<-e.gate(name)
	}
	if text, ok := in["takes"].(string); ok {
		length, _ := time.ParseDuration(text)
		select {
		case <-time.After(length):
		case <-ctx.Done():
			return action.Result{}, ctx.Err()
		}
	}
	if n, ok := in["passes_after"].(int); ok && e.count(in["call"].(string)) <= n {
		text, _ := in["retry_after"].(string)
		asked, _ := time.ParseDuration(text)
		return action.Result{}, &action.Failure{Code: "test_passing", Message: "not yet", Output: e.leaves(in), Retryable: true, RetryAfter: asked}
	}
	if text, ok := in["fails"].(string); ok {
		return action.Result{}, &action.Failure{Code: "test_failed", Message: text, Output: e.leaves(in)}
	}
	if in["panics"] == true {
		panic("scripted")
	}
	if in["issues"] == true {
		return action.Result{Output: map[string]any{"body": map[string]any{"access_token": canary, "pin": 7, "user": "ada"}}}, nil
	}
	if in["echoes"] == true {
		return action.Result{Output: in}, nil
	}
	return action.Result{Output: in["returns"]}, nil
}

// leaves returns the output that a failure keeps.
func (e *effects) leaves(in map[string]any) map[string]any {
	if name, ok := in["call"].(string); ok && in["leaves_first"] != nil && e.count(name) == 1 {
		in = map[string]any{"leaves": in["leaves_first"]}
	}
	if size, ok := in["leaves_bytes"].(int); ok {
		return map[string]any{"body": strings.Repeat("x", size)}
	}
	output, _ := in["leaves"].(map[string]any)
	return output
}

// script sets which scripted steps fail.
func (e *effects) script(fails func(runID, path string) bool) { e.fails.Store(&fails) }

func (e *effects) gate(name string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gates[name] == nil {
		e.gates[name] = make(chan struct{})
	}
	return e.gates[name]
}

func (e *effects) open(name string) { close(e.gate(name)) }

func (e *effects) count(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[name]
}

// world is a store with everything around it except the engine, which a test starts,
// stops and crashes.
type world struct {
	t           *testing.T
	db          *sqlite.DB
	store       *store.DB
	plans       *workflow.Programs
	values      *secret.Service
	links       *run.Links
	vault       *vault.Vault
	nowhere     atomic.Bool // the public URL is unknown
	effects     *effects
	pages       *pages
	notifier    *testNotifier // of approvals
	connections *connections
	blobs       *blobtest.Memory
	files       *file.Service
	actor       auth.Actor
	flows       *workflow.Service
	runs        *run.Service
	watchers    *run.Watchers
	leaseLost   atomic.Bool           // nodes are no longer sure of their lease
	details     atomic.Int64          // completions that carried a detail
	reads       atomic.Pointer[error] // that steps read keys with; nil: none
	// openFails, if not nil, returns the error of the n-th time that a file is opened.
	openFails func(n int) error
	// childStarts, if not nil, is called before a step starts a run.
	childStarts func(parent string)

	current atomic.Pointer[node]
}

// node is one instance of the engine.
type node struct {
	dispatch *local.Dispatcher
	engine   *engine.Engine
	stop     context.CancelFunc
	done     sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, effects: newEffects(), pages: newPages(), notifier: &testNotifier{}, connections: &connections{}, watchers: run.NewWatchers()}
	w.db = sqlitetest.Open(t)
	w.store = store.New(w.db, w.notify())
	w.setUp()
	return w
}

func (w *world) notify() store.Notify {
	return store.Notify{
		Wake: func(wake run.Wake) {
			if n := w.current.Load(); n != nil {
				n.dispatch.Wake(wake)
			}
		},
		AnswerArrived: func(runID string) {
			if n := w.current.Load(); n != nil {
				n.engine.Nudge(runID)
			}
		},
		HeldBack: w.Unreserve,
		Ended: func(e run.Completion) {
			w.checkWhole(e.Detail)
			w.watchers.Ended(e.RunID, e.Detail)
			if n := w.current.Load(); n != nil && e.Status == run.Cancelled {
				n.engine.Abort(e.RunID)
			}
		},
		WorkflowDeleted: func(id string) {
			if n := w.current.Load(); n != nil {
				n.engine.AbortWorkflow(id)
			}
		},
	}
}

func (w *world) setUp() {
	w.t.Helper()
	v, err := vault.New(make([]byte, 32), w.store.Workspaces)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := auth.NewService(w.store.Workspaces, v).Bootstrap(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	first, err := w.store.Workspaces.FirstWorkspace(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.actor = auth.Actor{Workspace: *first, Type: "system", Scopes: auth.Scopes()}
	w.vault, w.values = v, secret.NewService(w.store.Secrets, v)
	if w.blobs == nil {
		w.blobs = blobtest.NewMemory()
	}
	w.files = file.NewService(file.Config{
		Store: w.store.Files, Blobs: w.blobs, Keys: v, Capacity: file.Capacity{Writers: 16, Readers: 16, IO: 16}, Exclusive: true, Log: slog.New(slog.DiscardHandler),
	})
	w.links = run.NewLinks(w.store.Runs, v, func() string {
		if w.nowhere.Load() {
			return ""
		}
		return "https://flows.example"
	})
	entries := []action.Entry{
		approval.Entry(w.notifier), branch.Entry(), dataset.Entry(), logwrite.Entry(), stop.Entry(), subrun.Entry(w), wait.Entry(), w.effects.entry(), w.effects.queued(), w.pages.entry(), filesEntry(w.effects), listEntry(), partsEntry(),
	}
	catalog, err := action.NewCatalog(slices.Concat(entries, rows.Entries(w.store.Tables), keys.Entries(keyReader{w}))...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.flows, w.plans = workflow.NewService(w.store.Workflows, catalog, nil, names{w.values}, trigger.NewArming(nil, nil)), workflow.NewPrograms(w.store.Workflows, catalog, nil)
	w.runs = run.NewService(w.store.Runs, w.plans, w.watchers, w, pubsub.NewBroker())
	w.runs.QueuedInMemory(w.queued)
}

// keyReader reads keys unless reads fail.
type keyReader struct{ w *world }

func (r keyReader) GetKey(ctx context.Context, scope state.Scope, name string) (*state.Key, error) {
	if err := r.w.reads.Load(); err != nil {
		return nil, *err
	}
	return r.w.store.State.GetKey(ctx, scope, name)
}

// names lists the secrets and variables of a workspace.
type names struct{ values *secret.Service }

func (n names) Names(ctx context.Context, actor auth.Actor) (workflow.Names, error) {
	found, err := n.values.Names(ctx, actor.Workspace.ID)
	return workflow.Names{Secrets: found.Secrets, Variables: found.Variables, Connections: []workflow.ConnectionName{{Name: shop, Now: shop}}}, err
}

// setPlan changes the plan of the workspace.
func (w *world) setPlan(plan auth.Plan) {
	w.t.Helper()
	changed := w.actor.Workspace
	changed.Plan, changed.UpdatedAt = plan, time.Now()
	entry := w.actor.AuditEntry("workspace.updated", "workspace", changed.ID, nil)
	if ok, err := w.store.Workspaces.UpdateWorkspace(w.t.Context(), changed, w.actor.Workspace.UpdatedAt, entry); err != nil || !ok {
		w.t.Fatal(ok, err)
	}
	w.actor.Workspace = changed
}

// StartChild implements subrun.Starter.
func (w *world) StartChild(ctx context.Context, c subrun.Child) (string, error) {
	if w.childStarts != nil {
		w.childStarts(c.Run.ID)
		ctx = context.WithoutCancel(ctx) // do not abort a write in progress
	}
	return w.runs.StartChild(ctx, run.Child{
		WorkspaceID: c.Workspace, WorkflowID: c.WorkflowID, Payload: c.Payload, Files: c.Files, Depth: c.Run.Depth + 1, Began: c.Began,
		Parent: run.Parent{RunID: c.Run.ID, StepID: c.Run.Path, Waits: c.Waited},
	})
}

// world implements run.Queue with the queue of its current node, if any.

func (w *world) Reserve(workspaceID, runID string, atMost int) (node string, ok bool) {
	if n := w.current.Load(); n != nil {
		if _, ok := n.dispatch.Reserve(workspaceID, runID, atMost); !ok {
			return "", false
		}
	}
	return "node_first", true
}

func (w *world) Unreserve(runID string) {
	if n := w.current.Load(); n != nil {
		n.dispatch.Unreserve(runID)
	}
}

func (w *world) queued(runID string) bool {
	n := w.current.Load()
	return n != nil && n.dispatch.Queued(runID)
}

// start starts a new engine on a store, usually the world's own.
func (w *world) start(st engine.Store) *node {
	id := uid.New(uid.Node)
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	n := &node{dispatch: local.New(w.store.Leases, id, engine.Slots, log), stop: stop}
	n.engine = engine.New(engine.Config{
		Node: id, Store: st, Source: n.dispatch, Programs: w.plans, Values: w.values, Links: w.links, Connections: w.connections, Vault: w.vault, Files: &openedFiles{Service: w.files, fails: w.openFails}, Log: log,
		HoldsLease: func() bool { return !w.leaseLost.Load() },
	})
	w.current.Store(n)
	if err := n.dispatch.Recover(ctx); err != nil {
		w.t.Fatal(err)
	}
	n.done.Go(func() { _ = n.dispatch.Run(ctx) })
	n.done.Go(func() { _ = n.engine.Run(ctx) })
	w.t.Cleanup(func() { n.end() })
	return n
}

// hooked is a store with hooks. It can stop responding as if the process had crashed.
type hooked struct {
	engine.Store
	// before and after, if not nil, are called around a commit.
	before, after func(run.Lease, run.Decision)
	answers       func() error
	dead          atomic.Bool
}

func (h *hooked) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (run.Committed, error) {
	if h.before != nil {
		h.before(lease, d)
	}
	if h.dead.Load() {
		return run.Committed{}, errInjected
	}
	committed, err := h.Store.Commit(ctx, lease, of, d)
	if h.after != nil {
		h.after(lease, d)
	}
	return committed, err
}

func (h *hooked) Answers(ctx context.Context, runID string) (map[string]run.StepAnswer, error) {
	if h.answers != nil {
		if err := h.answers(); err != nil {
			return nil, err
		}
	}
	return h.Store.Answers(ctx, runID)
}

func (h *hooked) Activate(ctx context.Context, wake run.Wake, node string) (run.Lease, bool, error) {
	if h.dead.Load() {
		return run.Lease{}, false, errInjected
	}
	return h.Store.Activate(ctx, wake, node)
}

// crash crashes an engine: nothing that it does from now on has an effect.
func (w *world) crash(n *node, st *hooked, runs ...string) {
	st.dead.Store(true)
	w.discard(n, runs...)
}

// discard stops an engine whose store is dead, and aborts the runs that it executes.
func (w *world) discard(n *node, runs ...string) {
	w.current.CompareAndSwap(n, nil)
	n.stop()
	for _, id := range runs {
		n.engine.Abort(id)
	}
	n.done.Wait()
}

func (n *node) end() {
	n.stop()
	n.done.Wait()
}

// workflow creates a workflow with the given steps, as JSON.
func (w *world) workflow(steps string) string {
	w.t.Helper()
	return w.workflowWith(steps, "{}")
}

// workflowWith creates a workflow with the given steps and settings, as JSON.
func (w *world) workflowWith(steps, settings string) string {
	w.t.Helper()
	made, err := w.flows.Create(w.t.Context(), w.actor, workflow.New{Name: "Test"})
	if err != nil {
		w.t.Fatal(err)
	}
	var list []workflow.Step
	if err := json.Unmarshal([]byte(steps), &list); err != nil {
		w.t.Fatal(err)
	}
	var options workflow.Settings
	if err := json.Unmarshal([]byte(settings), &options); err != nil {
		w.t.Fatal(err)
	}
	patch := workflow.Patch{Steps: &list, Settings: &workflow.SettingsPatch{Replace: &options}}
	if _, err := w.flows.Update(w.t.Context(), w.actor, made.ID, patch, etag.Match{}); err != nil {
		w.t.Fatal(err)
	}
	return made.ID
}

func (w *world) startRun(workflowID, payload string) string {
	w.t.Helper()
	started, err := w.runs.Start(context.WithoutCancel(w.t.Context()), w.actor, run.Request{WorkflowID: workflowID, Payload: []byte(payload)})
	if err != nil {
		w.t.Fatal(err)
	}
	return started.ID
}

func (w *world) get(id string) run.Detail {
	w.t.Helper()
	detail, err := w.runs.Get(context.WithoutCancel(w.t.Context()), w.actor, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return detail
}

// checkWhole compares the detail of a completion with the stored run.
func (w *world) checkWhole(completed *run.Detail) {
	// Check a sample, because property tests have thousands.
	if completed == nil || w.details.Add(1)%32 != 1 {
		return
	}
	stored, err := w.store.Runs.Run(context.WithoutCancel(w.t.Context()), completed.WorkspaceID, completed.ID)
	if err != nil || stored == nil { // the store may have crashed, and the run may be deleted
		return
	}
	if diff := cmp.Diff(*stored, *completed, cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("the completion of run %s differs from the store (-stored +completion):\n%s", completed.ID, diff)
	}
}

// finished waits until a run ends.
func (w *world) finished(id string) run.Detail {
	w.t.Helper()
	ended, stop := w.watchers.Watch(id)
	defer stop()
	if detail := w.get(id); detail.Status != run.Running {
		return detail
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		w.t.Fatalf("run %s did not end: %+v", id, w.get(id).Steps)
	}
	return w.get(id)
}

var errInjected = errors.New("injected")
