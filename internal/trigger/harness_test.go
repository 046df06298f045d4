package trigger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/trigger"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testEnv is a store with services and no engine: runs start but do not
// execute.
type testEnv struct {
	t         *testing.T
	db        *sqlite.DB
	store     *store.DB
	values    *secret.Service
	actor     auth.Actor
	catalog   *action.Catalog
	types     *trigger.Types
	flows     *workflow.Service
	programs  *workflow.Programs
	runs      *run.Service
	queueFull atomic.Bool // Reserve reports a full queue
	api       *fakeAPI
	// connection is what triggers of services use.
	connection *shopConnection

	mu    sync.Mutex
	nodes []*node
}

// node is a process that fires triggers.
type node struct {
	firers *trigger.Firers
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	types, err := triggers.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return newTestEnvWith(t, types)
}

// newTestEnvWith returns an environment with other types of triggers.
func newTestEnvWith(t *testing.T, types *trigger.Types) *testEnv {
	t.Helper()
	w := &testEnv{t: t, api: &fakeAPI{}, types: types}
	w.db = sqlitetest.Open(t)
	t.Cleanup(w.stopNodes)
	w.store = store.New(w.db, store.Notify{
		Scheduled: func(kind string, at time.Time) {
			w.forEachNode(func(n *node) { n.firers.Wake(kind, at) })
		},
		EventPending: func(at time.Time) { w.forEachNode(func(n *node) { n.firers.Wake(workflow.EventTrigger, at) }) },
	})
	w.setUp()
	return w
}

// forEachNode calls a function for each node.
func (w *testEnv) forEachNode(tell func(*node)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		tell(n)
	}
}

func (w *testEnv) setUp() {
	w.t.Helper()
	v, err := vault.New(make([]byte, 32), w.store.Workspaces)
	w.must(err)
	_, err = auth.NewService(w.store.Workspaces, v).Bootstrap(w.t.Context())
	w.must(err)
	first, err := w.store.Workspaces.FirstWorkspace(w.t.Context())
	w.must(err)
	w.actor = auth.Actor{Workspace: *first, Type: "system", Scopes: auth.Scopes()}
	w.values = secret.NewService(w.store.Secrets, v)
	w.catalog, err = catalog.New(catalog.Deps{HTTP: w.api})
	w.must(err)
	w.flows = workflow.NewService(w.store.Workflows, w.catalog, w.types.Format(), names{w.values}, trigger.NewArming(w.types, v))
	w.programs = workflow.NewPrograms(w.store.Workflows, w.catalog, w.types.Format())
	w.runs = run.NewService(w.store.Runs, w.programs, run.NewWatchers(), w, pubsub.NewBroker())
}

func (w *testEnv) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

type names struct{ values *secret.Service }

func (n names) Names(ctx context.Context, actor auth.Actor) (workflow.Names, error) {
	found, err := n.values.Names(ctx, actor.Workspace.ID)
	return workflow.Names{Secrets: found.Secrets, Variables: found.Variables, Connections: connectionNames}, err
}

// The queue of runs.

func (w *testEnv) Reserve(string, string, int) (string, bool) { return "node_1", !w.queueFull.Load() }
func (w *testEnv) Unreserve(string)                           {}

// startNode starts a node.
func (w *testEnv) startNode() *node {
	ctx, stop := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	n := &node{
		firers: w.types.Firers(trigger.Deps{Store: w.store.Triggers, Programs: w.programs, Runs: w.runs, Values: w.values, Connections: w.connection, Actions: w.catalog, Log: log}),
		stop:   stop,
	}
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	for _, firer := range n.firers.All() {
		n.done.Go(func() { _ = firer.Run(ctx) })
	}
	return n
}

// stopNodes stops all nodes.
func (w *testEnv) stopNodes() {
	w.mu.Lock()
	nodes := w.nodes
	w.nodes = nil
	w.mu.Unlock()
	for _, n := range nodes {
		n.stop()
		n.done.Wait()
	}
}

const oneStep = `[{"id": "work", "uses": "data.set", "with": {"values": {}}}]`

// workflow creates a workflow with triggers and, unless given, one step.
func (w *testEnv) workflow(state workflow.State, triggers string, settings ...string) workflow.Workflow {
	w.t.Helper()
	made, err := w.flows.Create(w.t.Context(), w.actor, workflow.New{Name: "Test"})
	w.must(err)
	patch := w.patch(triggers)
	var steps []workflow.Step
	w.must(json.Unmarshal([]byte(oneStep), &steps))
	patch.Steps, patch.State = &steps, &state
	for _, text := range settings {
		var s workflow.Settings
		w.must(json.Unmarshal([]byte(text), &s))
		patch.Settings = &workflow.SettingsPatch{Replace: &s}
	}
	return w.update(made.ID, patch)
}

func (w *testEnv) patch(triggers string) workflow.Patch {
	w.t.Helper()
	var list []workflow.Trigger
	w.must(json.Unmarshal([]byte(triggers), &list))
	return workflow.Patch{Triggers: &list}
}

func (w *testEnv) update(id string, patch workflow.Patch) workflow.Workflow {
	w.t.Helper()
	changed, err := w.flows.Update(w.t.Context(), w.actor, id, patch, etag.Match{})
	w.must(err)
	return changed
}

func (w *testEnv) setState(id string, state workflow.State) {
	w.t.Helper()
	w.update(id, workflow.Patch{State: &state})
}

// startedRuns returns the runs of a workflow in the order of their start.
func (w *testEnv) startedRuns(workflowID string) []run.Detail {
	w.t.Helper()
	var out []run.Detail
	page := paging.Request{Limit: 100}
	for {
		found, err := w.store.Runs.Runs(w.t.Context(), w.actor.Workspace.ID, workflowID, "", page)
		w.must(err)
		for _, item := range found.Items {
			detail, err := w.store.Runs.Run(w.t.Context(), w.actor.Workspace.ID, item.ID)
			w.must(err)
			out = append(out, *detail)
		}
		if page.After = found.Next; found.Next == "" {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// scheduledTimes returns the scheduled times of the runs of a workflow.
func (w *testEnv) scheduledTimes(workflowID string) []string {
	w.t.Helper()
	var out []string
	for _, r := range w.startedRuns(workflowID) {
		var payload struct {
			ScheduledAt string `json:"scheduled_at"`
		}
		w.must(json.Unmarshal(r.Trigger.Payload, &payload))
		out = append(out, payload.ScheduledAt)
	}
	return out
}

// trigger returns the first stored trigger of a workflow.
func (w *testEnv) trigger(workflowID string) trigger.Trigger {
	w.t.Helper()
	found, err := w.store.Triggers.Triggers(w.t.Context(), w.actor.Workspace.ID, workflowID)
	w.must(err)
	if len(found) == 0 {
		w.t.Fatal("there is no trigger")
	}
	return found[0]
}

// sleepUntil sleeps until the given time.
func sleepUntil(t *testing.T, text string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(at); left > 0 {
		time.Sleep(left)
	} else {
		t.Fatalf("it is %s, after %s", clock.Format(clock.Now()), text)
	}
}

// wantEqual compares the printed forms of two values.
func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
