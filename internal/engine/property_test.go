package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/branch"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/keys"
	"github.com/stepmill/stepmill/internal/action/logwrite"
	"github.com/stepmill/stepmill/internal/action/rows"
	"github.com/stepmill/stepmill/internal/action/stop"
	"github.com/stepmill/stepmill/internal/action/wait"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// longest is the longest simulated time for a run of a sketch. A run that takes longer
// has lost a wake-up.
const longest = 20 * time.Second

// scenario is a world that runs one sketch after another.
type scenario struct {
	*world
	workflowID string
	observer   atomic.Pointer[observer] // of the current run
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{world: newWorld(t)}
	entries := []action.Entry{approval.Entry(nil), branch.Entry(), dataset.Entry(), logwrite.Entry(), stop.Entry(), wait.Entry(), {
		Spec: action.Spec{Name: "test.act", Input: `{"type": "object"}`, Output: `{}`},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return s.observer.Load().perform(ctx, req)
		}),
	}}
	catalog, err := action.NewCatalog(slices.Concat(entries, rows.Entries(s.store.Tables), keys.Entries(s.store.State))...)
	if err != nil {
		t.Fatal(err)
	}
	s.flows, s.plans = workflow.NewService(s.store.Workflows, catalog, nil, names{s.values}, trigger.NewArming(nil, nil)), workflow.NewPrograms(s.store.Workflows, catalog, nil)
	s.runs = run.NewService(s.store.Runs, s.plans, s.watchers, s.world, pubsub.NewBroker())
	s.workflowID = s.workflow(`[]`)
	return s
}

// adopt saves a sketch as the next version of the workflow.
func (s *scenario) adopt(sk *sketch) error {
	var steps []workflow.Step
	if err := json.Unmarshal([]byte(sk.json()), &steps); err != nil {
		return err
	}
	_, err := s.flows.Update(context.Background(), s.actor, s.workflowID, workflow.Patch{Steps: &steps}, etag.Match{})
	return err
}

// play runs a sketch with faults until it ends, with as many engines as that takes, and
// returns the problems.
func (s *scenario) play(sk *sketch, faults []injectedFault, cancelAt int) (w *observer, problems []string) {
	w = newObserver(s.world, sk, faults)
	s.observer.Store(w)
	if err := s.adopt(sk); err != nil {
		return w, []string{"the definition is rejected: " + err.Error()}
	}
	p := &faultyStore{Store: s.store.Leases, observer: w}
	n := s.start(p)
	defer func() { n.end() }()
	id := s.startRun(s.workflowID, payload)
	ended, stopWatching := s.watchers.Watch(id)
	defer stopWatching()
	if cancelAt > 0 {
		timer := time.AfterFunc(time.Duration(cancelAt)*time.Millisecond+500*time.Microsecond, func() { w.cancel(id) })
		defer timer.Stop()
	}
	limit := time.After(longest)
	for s.get(id).Status == run.Running {
		select {
		case <-ended:
		case <-limit:
			w.cancel(id)
			return w, append(w.found(), fmt.Sprintf("the run did not end: %+v", s.get(id).Steps))
		case <-w.crashed:
			n.end()
			w.restored(id)
			w.mu.Lock()
			w.generation++
			w.mu.Unlock()
			p = &faultyStore{Store: s.store.Leases, observer: w}
			n = s.start(p)
		}
	}
	n.end() // nothing may happen after this
	w.restored(id)
	problems = slices.Concat(w.found(), compare(sk, s.actor.Name(), s.get(id)), s.events(id), s.counts(sk, id))
	if s.get(id).Status == run.Cancelled && len(problems) == 0 {
		problems = s.retry(sk, id)
	}
	return w, problems
}

// retry retries a cancelled run. The result must match the model of the whole run.
func (s *scenario) retry(sk *sketch, id string) []string {
	w := newObserver(s.world, sk, nil)
	s.observer.Store(w)
	s.current.Store(nil)
	again, err := s.runs.Retry(context.Background(), s.actor, id, run.RetryOptions{})
	if err != nil {
		return []string{"the run cannot be retried: " + err.Error()}
	}
	w.reuse(s.get(again.ID).Steps)
	ended, stopWatching := s.watchers.Watch(again.ID)
	defer stopWatching()
	n := s.start(&faultyStore{Store: s.store.Leases, observer: w})
	select {
	case <-ended:
	case <-time.After(longest):
		w.cancel(again.ID)
		w.problems = append(w.problems, "the retry did not end")
	}
	n.end()
	problems := slices.Concat(w.found(), compare(sk, s.actor.Name(), s.get(again.ID)), s.events(again.ID), s.counts(sk, again.ID))
	if len(problems) > 0 {
		problems = append([]string{"in a retry:"}, problems...)
	}
	return problems
}

// events checks that the run has one started event and one ended event.
func (s *scenario) events(id string) []string {
	kinds := map[string]int{}
	err := s.db.Read(context.Background(), func(c database.Conn) error {
		return c.Query(`SELECT type FROM events WHERE run_id = $1`, []any{id}, func(r database.Row) error {
			var kind string
			err := r.Scan(&kind)
			kinds[kind]++
			return err
		})
	})
	if end := "run." + string(s.get(id).Status); err != nil || len(kinds) != 2 || kinds["run.started"] != 1 || kinds[end] != 1 {
		return []string{fmt.Sprintf("the events of the run are %v (%v)", kinds, err)}
	}
	return nil
}

// counts checks that every step that counts has counted exactly once. A step that was
// cancelled may have.
func (s *scenario) counts(sk *sketch, id string) (problems []string) {
	succeeded, cancelled := map[string]int{}, map[string]int{}
	for _, step := range s.get(id).Steps {
		p, _ := sk.find(step.Path)
		switch {
		case p == nil || p.behavior.kind != "count" || strings.HasPrefix(step.Reason, "copied from"):
		case step.Status == run.StepSucceeded:
			succeeded[p.id]++
		case step.Status == run.StepCancelled:
			cancelled[p.id]++
		}
	}
	for i := range mostParts + 1 {
		part, n := fmt.Sprintf("s%d", i), 0
		key, err := s.store.State.GetKey(context.Background(), state.Scope{WorkspaceID: s.actor.Workspace.ID, WorkflowID: s.workflowID}, id+":"+part)
		if err == nil && key != nil {
			err = json.Unmarshal(key.Value, &n)
		}
		if err != nil || n < succeeded[part] || n > succeeded[part]+cancelled[part] {
			problems = append(problems, fmt.Sprintf("%s has counted %d times (%v); %d steps succeeded, %d were cancelled", part, n, err, succeeded[part], cancelled[part]))
		}
	}
	return problems
}

// drawFaults draws the faults of a run. There are fewer than five crashes, because five
// at the same step would quarantine the run.
func drawFaults(t *rapid.T) []injectedFault {
	kind := rapid.SampledFrom([]string{crashAfter, crashBefore, failAfter, failBefore, restart})
	faults := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) injectedFault {
		return injectedFault{Write: rapid.IntRange(0, 25).Draw(t, "write"), Kind: kind.Draw(t, "kind")}
	}), 0, 4).Draw(t, "faults")
	if rapid.IntRange(0, 3).Draw(t, "cancelled") == 3 {
		at := injectedFault{Write: rapid.IntRange(0, 15).Draw(t, "cancelled at"), Kind: rapid.SampledFrom([]string{cancelAfter, cancelBefore}).Draw(t, "cancel")}
		faults = append([]injectedFault{at}, faults...)
	}
	return faults
}

// bubbled hides the deadline of a test inside a bubble.
type bubbled struct{ rapid.TB }

// TestRunsMatchModel draws workflows, runs them with crashes, failures of the store and
// cancels, and compares each run with the model.
func TestRunsMatchModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, first := newScenario(t), ""
		// Because of timing, a smaller case may not fail again.
		defer func() {
			if first != "" {
				t.Logf("the first case that failed:\n%s", first)
			}
		}()
		lane.Check(bubbled{t}, func(rt *rapid.T) {
			sk, faults, cancelAt := drawSketch(rt), drawFaults(rt), 0
			if rapid.IntRange(0, 9).Draw(rt, "cancelled in time") == 9 {
				cancelAt = rapid.IntRange(1, 60).Draw(rt, "cancelled after")
			}
			_, problems := s.play(sk, faults, cancelAt)
			if len(problems) > 0 {
				// Cases only shrink while they fail with the same message.
				rt.Log(strings.Join(problems, "\n"), "\n"+sk.describe(faults, cancelAt))
				if first == "" {
					first = strings.Join(problems, "\n") + "\n" + sk.describe(faults, cancelAt)
				}
				rt.Fatal("INVARIANT: the run does not match the model")
			}
		})
	})
}

// TestCrashAtEveryWrite draws a fixed set of workflows and crashes the engine before and
// after every write of each.
func TestCrashAtEveryWrite(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector crashes if a process keeps it busy for this long")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t)
		sketches := rapid.Custom(drawSketch).Filter(func(sk *sketch) bool { return len(sk.parts) > 5 })
		writes := 0
		for seed := range lane.Pick(10, 400) {
			sk := sketches.Example(seed)
			calm, problems := s.play(sk, nil, 0)
			if len(problems) > 0 {
				t.Errorf("INVARIANT: sketch %d: %s\n%s", seed, strings.Join(problems, "\n"), sk.describe(nil, 0))
			}
			writes += calm.writes
			for n := range calm.writes {
				s.crashAt(t, sk, injectedFault{n, crashBefore})
				s.crashAt(t, sk, injectedFault{n, crashAfter})
			}
		}
		t.Logf("died before and after each of %d writes", writes)
	})
}

func (s *scenario) crashAt(t *testing.T, sk *sketch, f injectedFault) {
	if _, problems := s.play(sk, []injectedFault{f}, 0); len(problems) > 0 {
		t.Errorf("INVARIANT: %s\n%s", strings.Join(problems, "\n"), sk.describe([]injectedFault{f}, 0))
	}
}
