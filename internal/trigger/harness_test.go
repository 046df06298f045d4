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
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// world is a store with services and no engine: runs are started and stay.
type world struct {
	t       *testing.T
	db      *sqlite.DB
	store   *store.Store
	values  *secret.Service
	actor   auth.Actor
	catalog *action.Catalog
	flows   *workflow.Service
	plans   *workflow.Plans
	runs    *run.Service
	full    atomic.Bool // the queue takes nothing more
	outside *outside

	mu    sync.Mutex
	nodes []*node
}

// node is one process that fires triggers.
type node struct {
	schedule *trigger.Scheduler
	respond  *trigger.Responder
	poll     *trigger.Poller
	stop     context.CancelFunc
	done     sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, outside: &outside{}}
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = db.Run(ctx)
	}()
	t.Cleanup(func() {
		w.halt()
		stop()
		<-ended
	})
	w.db = db
	w.store = store.New(db, store.Notify{
		Scheduled: func(kind string, at time.Time) {
			w.each(func(n *node) {
				switch kind {
				case workflow.ScheduleTrigger:
					n.schedule.Wake(at)
				case workflow.PollTrigger:
					n.poll.Wake(at)
				}
			})
		},
		Occasion: func(at time.Time) { w.each(func(n *node) { n.respond.Wake(at) }) },
	})
	w.setUp()
	return w
}

// each tells all processes something.
func (w *world) each(tell func(*node)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		tell(n)
	}
}

func (w *world) setUp() {
	w.t.Helper()
	v, err := vault.New(make([]byte, 32), w.store)
	w.must(err)
	_, err = auth.NewService(w.store, v).Bootstrap(w.t.Context())
	w.must(err)
	first, err := w.store.FirstWorkspace(w.t.Context())
	w.must(err)
	w.actor = auth.Actor{Workspace: *first, Type: "system", Scopes: auth.Scopes()}
	w.values = secret.NewService(w.store, v)
	w.catalog, err = catalog.New(catalog.Means{HTTP: w.outside})
	w.must(err)
	w.flows = workflow.NewService(w.store, w.catalog, names{w.values}, trigger.NewArming(v))
	w.plans = workflow.NewPlans(w.store, w.catalog)
	w.runs = run.NewService(w.store, w.plans, run.NewWatchers(), w, news.NewHub())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

type names struct{ values *secret.Service }

func (n names) Names(ctx context.Context, workspaceID string) (workflow.Names, error) {
	found, err := n.values.Names(ctx, workspaceID)
	return workflow.Names(found), err
}

// The queue of runs.

func (w *world) Reserve(string, string, int) (string, bool) { return "node_1", !w.full.Load() }
func (w *world) Unreserve(string)                           {}
func (w *world) Queued(string) bool                         { return false }

// start begins a process that fires triggers.
func (w *world) start() *node {
	ctx, stop := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	n := &node{
		schedule: trigger.NewScheduler(w.store, w.plans, w.runs, log),
		respond:  trigger.NewResponder(w.store, w.runs, log),
		poll:     trigger.NewPoller(w.store, w.plans, w.runs, w.values, w.catalog, log),
		stop:     stop,
	}
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	n.done.Go(func() { _ = n.schedule.Run(ctx) })
	n.done.Go(func() { _ = n.respond.Run(ctx) })
	n.done.Go(func() { _ = n.poll.Run(ctx) })
	return n
}

// halt ends all processes.
func (w *world) halt() {
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

// workflow makes a workflow with triggers and, unless given, one step.
func (w *world) workflow(state workflow.State, triggers string, settings ...string) workflow.Workflow {
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

func (w *world) patch(triggers string) workflow.Patch {
	w.t.Helper()
	var list []workflow.Trigger
	w.must(json.Unmarshal([]byte(triggers), &list))
	return workflow.Patch{Triggers: &list}
}

func (w *world) update(id string, patch workflow.Patch) workflow.Workflow {
	w.t.Helper()
	changed, err := w.flows.Update(w.t.Context(), w.actor, id, patch, workflow.Match{})
	w.must(err)
	return changed
}

func (w *world) setState(id string, state workflow.State) {
	w.t.Helper()
	w.update(id, workflow.Patch{State: &state})
}

// started are the runs of a workflow in the order in which they started.
func (w *world) started(workflowID string) []run.Detail {
	w.t.Helper()
	var out []run.Detail
	page := paging.Request{Limit: 100}
	for {
		found, err := w.store.Runs(w.t.Context(), w.actor.Workspace.ID, workflowID, "", page)
		w.must(err)
		for _, item := range found.Items {
			detail, err := w.store.Run(w.t.Context(), w.actor.Workspace.ID, item.ID)
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

// times are those that the runs of a workflow were started for.
func (w *world) times(workflowID string) []string {
	w.t.Helper()
	var out []string
	for _, r := range w.started(workflowID) {
		var payload struct {
			ScheduledAt string `json:"scheduled_at"`
		}
		w.must(json.Unmarshal(r.Trigger.Payload, &payload))
		out = append(out, payload.ScheduledAt)
	}
	return out
}

// trigger is the first trigger of a workflow as it is kept.
func (w *world) trigger(workflowID string) trigger.Trigger {
	w.t.Helper()
	found, err := w.store.Triggers(w.t.Context(), w.actor.Workspace.ID, workflowID)
	w.must(err)
	if len(found) == 0 {
		w.t.Fatal("there is no trigger")
	}
	return found[0]
}

// sleepUntil lets time pass up to a moment.
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

// same compares what was expected with what there is, by their written forms.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
