package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/logwrite"
	"github.com/stepmill/stepmill/internal/action/stop"
	"github.com/stepmill/stepmill/internal/action/wait"
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// longest is how long a run of a sketch may take on the clock of its bubble: one
// that takes longer has lost a wake-up.
const longest = 20 * time.Second

// fixedSketches is how many workflows die at every one of their writes: a few,
// or many when there is time.
func fixedSketches() int {
	if os.Getenv("STEPMILL_SLOW") != "" {
		return 400
	}
	return 10
}

// stage is a world for one sketch after the other.
type stage struct {
	*world
	workflowID string
	watch      atomic.Pointer[watch] // of the run that is under way
}

func newStage(t *testing.T) *stage {
	s := &stage{world: newWorld(t)}
	catalog, err := action.NewCatalog(approval.Entry(nil), dataset.Entry(), logwrite.Entry(), stop.Entry(), wait.Entry(), action.Entry{
		Spec: action.Spec{Name: "test.act", Input: `{"type": "object"}`, Output: `{}`},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return s.watch.Load().perform(ctx, req)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.flows, s.plans = workflow.NewService(s.store, catalog, names{s.values}, trigger.NewArming(nil)), workflow.NewPlans(s.store, catalog)
	s.runs = run.NewService(s.store, s.plans, s.watchers, s.world, news.NewHub())
	s.workflowID = s.workflow(`[]`)
	return s
}

// adopt makes a sketch the next version of the workflow.
func (s *stage) adopt(sk *sketch) error {
	var steps []workflow.Step
	if err := json.Unmarshal([]byte(sk.json()), &steps); err != nil {
		return err
	}
	_, err := s.flows.Update(context.Background(), s.actor, s.workflowID, workflow.Patch{Steps: &steps}, workflow.Match{})
	return err
}

// play runs a sketch under faults to its end, through as many lives of the
// engine as that takes, and returns what is wrong with it.
func (s *stage) play(sk *sketch, faults []mishap, cancelAt int) (w *watch, problems []string) {
	w = newWatch(s.world, sk, faults)
	s.watch.Store(w)
	if err := s.adopt(sk); err != nil {
		return w, []string{"the definition is refused: " + err.Error()}
	}
	p := &perilous{Store: s.store, watch: w}
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
			return w, append(w.found(), fmt.Sprintf("the run does not end: %+v", s.get(id).Steps))
		case <-w.fallen:
			n.end()
			w.restored(id)
			w.mu.Lock()
			w.life++
			w.mu.Unlock()
			p = &perilous{Store: s.store, watch: w}
			n = s.start(p)
		}
	}
	n.end() // nothing may follow
	w.restored(id)
	problems = append(append(w.found(), compare(sk, s.actor.Name(), s.get(id))...), s.events(id)...)
	if s.get(id).Status == run.Cancelled && len(problems) == 0 {
		problems = s.retry(sk, id)
	}
	return w, problems
}

// retry runs the rest of a run that was cancelled: together with what it takes
// over, that is what the model says of the whole.
func (s *stage) retry(sk *sketch, id string) []string {
	w := newWatch(s.world, sk, nil)
	s.watch.Store(w)
	s.current.Store(nil)
	again, err := s.runs.Retry(context.Background(), s.actor, id, false)
	if err != nil {
		return []string{"the run cannot be retried: " + err.Error()}
	}
	w.inherit(s.get(again.ID).Steps)
	ended, stopWatching := s.watchers.Watch(again.ID)
	defer stopWatching()
	n := s.start(&perilous{Store: s.store, watch: w})
	select {
	case <-ended:
	case <-time.After(longest):
		w.cancel(again.ID)
		w.problems = append(w.problems, "the retry does not end")
	}
	n.end()
	problems := append(append(w.found(), compare(sk, s.actor.Name(), s.get(again.ID))...), s.events(again.ID)...)
	if len(problems) > 0 {
		problems = append([]string{"in a retry:"}, problems...)
	}
	return problems
}

// events checks that there is one event of the run's start and one of its end.
func (s *stage) events(id string) []string {
	kinds := map[string]int{}
	err := s.db.Read(context.Background(), func(c store.Conn) error {
		return c.Query(`SELECT type FROM events WHERE run_id = $1`, []any{id}, func(r store.Row) error {
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

// drawFaults draws what happens to a run. Five crashes at the same steps would
// end it, so there are fewer.
func drawFaults(t *rapid.T) []mishap {
	kind := rapid.SampledFrom([]string{crashAfter, crashBefore, failAfter, failBefore, restart})
	faults := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) mishap {
		return mishap{Write: rapid.IntRange(0, 25).Draw(t, "write"), Kind: kind.Draw(t, "kind")}
	}), 0, 4).Draw(t, "faults")
	if rapid.IntRange(0, 3).Draw(t, "cancelled") == 3 {
		at := mishap{Write: rapid.IntRange(0, 15).Draw(t, "cancelled at"), Kind: rapid.SampledFrom([]string{cancelAfter, cancelBefore}).Draw(t, "cancel")}
		faults = append([]mishap{at}, faults...)
	}
	return faults
}

// bubbled is a test inside a bubble, which must not be asked for its deadline.
type bubbled struct{ rapid.TB }

// TestRunsEndAsTheModelSays draws workflows, runs them while the process dies,
// the store fails and somebody cancels, and compares each run with the model.
func TestRunsEndAsTheModelSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, first := newStage(t), ""
		// Timing may hide what a smaller case did not show again.
		defer func() {
			if first != "" {
				t.Logf("the first case that failed:\n%s", first)
			}
		}()
		rapid.Check(bubbled{t}, func(rt *rapid.T) {
			sk, faults, cancelAt := drawSketch(rt), drawFaults(rt), 0
			if rapid.IntRange(0, 9).Draw(rt, "cancelled in time") == 9 {
				cancelAt = rapid.IntRange(1, 60).Draw(rt, "cancelled after")
			}
			_, problems := s.play(sk, faults, cancelAt)
			if len(problems) > 0 {
				// Cases shrink while they fail with the same words.
				rt.Log(strings.Join(problems, "\n"), "\n"+sk.describe(faults, cancelAt))
				if first == "" {
					first = strings.Join(problems, "\n") + "\n" + sk.describe(faults, cancelAt)
				}
				rt.Fatal("the run is not what the model says")
			}
		})
	})
}

// TestCrashAtEveryWriteOfManySketches draws a fixed set of workflows and lets
// the process die before and after every single write of each.
func TestCrashAtEveryWriteOfManySketches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		sketches := rapid.Custom(drawSketch).Filter(func(sk *sketch) bool { return len(sk.parts) > 5 })
		writes := 0
		for seed := range fixedSketches() {
			sk := sketches.Example(seed)
			calm, problems := s.play(sk, nil, 0)
			if len(problems) > 0 {
				t.Errorf("sketch %d: %s\n%s", seed, strings.Join(problems, "\n"), sk.describe(nil, 0))
			}
			writes += calm.writes
			for n := range calm.writes {
				s.dieAt(t, sk, mishap{n, crashBefore})
				s.dieAt(t, sk, mishap{n, crashAfter})
			}
		}
		t.Logf("died before and after each of %d writes", writes)
	})
}

func (s *stage) dieAt(t *testing.T, sk *sketch, f mishap) {
	if _, problems := s.play(sk, []mishap{f}, 0); len(problems) > 0 {
		t.Errorf("%s\n%s", strings.Join(problems, "\n"), sk.describe([]mishap{f}, 0))
	}
}
