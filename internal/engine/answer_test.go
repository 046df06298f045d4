package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
)

// asks waits for an answer, next to a step that blocks on a gate, and uses the answer
// in a step that must be executed once.
const asks = `[
	{"id": "ask", "needs": [], "uses": "flow.approval", "with": {"timeout": "30d"}},
	{"id": "then", "needs": ["ask"], "uses": "test.effect", "with": {"call": "then", "returns": {"said": "${{ steps.ask.output.comment }}"}}}%s]`

var (
	asksAlone  = fmt.Sprintf(asks, "")
	asksBeside = fmt.Sprintf(asks, `, {"id": "beside", "needs": [], "timeout": "15m", "uses": "test.effect", "with": {"gate": "beside", "call": "beside"}}`)
)

func (w *world) answer(id, step, comment string) error {
	_, err := w.runs.Resume(context.WithoutCancel(w.t.Context()), w.actor, id, step, run.Resumption{Approved: true, Comment: comment})
	return err
}

func (w *world) mustAnswer(id, step, comment string) {
	w.t.Helper()
	if err := w.answer(id, step, comment); err != nil {
		w.t.Fatal(err)
	}
}

// continuedOnce checks that a run executed the step after the answer once, at the given
// time.
func (w *world) continuedOnce(id, said string, at time.Time) {
	w.t.Helper()
	synctest.Wait()
	for _, step := range w.get(id).Steps {
		if step.Path != "then" {
			continue
		}
		if want := fmt.Sprintf(`{"said":%q}`, said); string(step.Output) != want || w.effects.count("then") != 1 {
			w.t.Errorf("%s after %d calls", step.Output, w.effects.count("then"))
		}
		if !step.StartedAt.Equal(at) {
			w.t.Errorf("it continued %s after the answer", step.StartedAt.Sub(at))
		}
		return
	}
	w.t.Errorf("it did not continue: %+v", w.get(id).Steps)
}

func TestAnswerToWaitingRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(asksAlone), "{}")
		time.Sleep(50 * time.Hour)
		w.mustAnswer(id, "ask", "yes")
		w.continuedOnce(id, "yes", time.Now())
		if d := w.get(id); d.Status != run.Succeeded {
			t.Errorf("%s", d.Status)
		}
	})
}

func TestAnswerWhileOtherStepsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(asksBeside), "{}")
		time.Sleep(time.Minute)
		w.mustAnswer(id, "ask", "yes")
		w.continuedOnce(id, "yes", time.Now())
		w.effects.open("beside")
		if d := w.endOf(id); d.Status != run.Succeeded || w.effects.count("beside") != 1 || w.effects.count("then") != 1 {
			t.Errorf("%+v", d)
		}
	})
}

// TestAnswerBeforeStepWaits answers during the commit that makes the step wait.
// The answer is rejected, and accepted after the commit.
func TestAnswerBeforeStepWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var id atomic.Value
		var early error
		st := &hooked{Store: w.store.Leases, before: func(lease run.Lease, d run.Decision) {
			if slices.ContainsFunc(d.Steps, func(s run.Step) bool { return s.Path == "ask" && s.Status == run.StepWaiting }) {
				early = w.answer(lease.RunID, "ask", "early")
			}
		}, after: func(lease run.Lease, d run.Decision) {
			if d.Release && id.CompareAndSwap(nil, lease.RunID) {
				w.mustAnswer(lease.RunID, "ask", "yes")
			}
		}}
		w.start(st)
		run := w.startRun(w.workflow(asksAlone), "{}")
		w.continuedOnce(run, "yes", time.Now())
		if !fault.Is(early, fault.StepNotFound) {
			t.Errorf("the early answer: %v", early)
		}
	})
}

// TestAnswerDuringRelease answers right before and right after the commit that releases
// the run.
func TestAnswerDuringRelease(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"before", "after"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var once sync.Once
				hook := func(lease run.Lease, d run.Decision) {
					if d.Release {
						once.Do(func() { w.mustAnswer(lease.RunID, "ask", "yes") })
					}
				}
				st := &hooked{Store: w.store.Leases}
				if moment == "before" {
					st.before = hook
				} else {
					st.after = hook
				}
				w.start(st)
				id := w.startRun(w.workflow(asksBeside), "{}")
				time.Sleep(time.Minute)
				w.effects.open("beside")
				w.continuedOnce(id, "yes", time.Now())
				if d := w.endOf(id); d.Status != run.Succeeded || w.effects.count("beside") != 1 || w.effects.count("then") != 1 {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{"released": asksAlone, "held": asksBeside} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(w.store.Leases)
				id := w.startRun(w.workflow(steps), "{}")
				time.Sleep(time.Minute)
				var (
					all  sync.WaitGroup
					mu   sync.Mutex
					said []string
				)
				for i := range 16 {
					all.Go(func() {
						comment := fmt.Sprint("answer ", i)
						err := w.answer(id, "ask", comment)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							said = append(said, comment)
						} else if !fault.Is(err, fault.StepNotWaiting) {
							t.Errorf("%v", err)
						}
					})
				}
				all.Wait()
				if len(said) != 1 {
					t.Fatalf("%d answers were accepted", len(said))
				}
				w.continuedOnce(id, said[0], time.Now())
			})
		})
	}
}

// TestAnswerSurvivesCrash answers while no engine executes the run, or one that
// crashes before it reads the answer.
func TestAnswerSurvivesCrash(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{"released": asksAlone, "held": asksBeside} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				st := &hooked{Store: w.store.Leases}
				n := w.start(st)
				id := w.startRun(w.workflow(steps), "{}")
				time.Sleep(time.Minute)
				st.dead.Store(true)
				w.current.Store(nil)
				w.mustAnswer(id, "ask", "yes")
				w.crash(n, st, id)
				time.Sleep(time.Hour)
				w.start(w.store.Leases)
				w.continuedOnce(id, "yes", time.Now())
				w.effects.open("beside")
				if d := w.endOf(id); d.Status != run.Succeeded || w.effects.count("then") != 1 {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

// TestAnswerBeforeTimeoutCounts answers shortly before the timeout, while the store
// cannot be read.
func TestAnswerBeforeTimeoutCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var silent atomic.Bool
		st := &hooked{Store: w.store.Leases, answers: func() error {
			if silent.Load() {
				return errInjected
			}
			return nil
		}}
		w.start(st)
		id := w.startRun(w.workflow(`[
			{"id": "ask", "needs": [], "uses": "flow.approval", "with": {"timeout": "10m"}},
			{"id": "beside", "needs": [], "timeout": "15m", "uses": "test.effect", "with": {"gate": "beside"}}]`), "{}")
		time.Sleep(10*time.Minute - 100*time.Millisecond)
		silent.Store(true)
		w.mustAnswer(id, "ask", "yes")
		time.Sleep(time.Minute)
		silent.Store(false)
		time.Sleep(time.Minute)
		w.effects.open("beside")
		if d := w.endOf(id); d.Status != run.Succeeded || d.Steps[0].Status != run.StepSucceeded {
			t.Errorf("%+v", d.Error)
		}
	})
}

// TestAnswerWithoutNudge answers a step of a run that the engine holds, while the
// message about it is lost. The engine finds the answer when the run wakes for another
// reason, long before the step times out.
func TestAnswerWithoutNudge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(fmt.Sprintf(asks, `,
			{"id": "pause", "needs": [], "uses": "flow.wait", "with": {"for": "5m"}},
			{"id": "beside", "needs": [], "timeout": "15m", "uses": "test.effect", "with": {"gate": "beside"}}`)), "{}")
		woken := time.Now().Add(5 * time.Minute)
		time.Sleep(time.Minute)
		w.current.Store(nil)
		w.mustAnswer(id, "ask", "yes")
		w.current.Store(n)
		time.Sleep(time.Until(woken))
		w.continuedOnce(id, "yes", woken)
		w.effects.open("beside")
		if d := w.endOf(id); d.Status != run.Succeeded {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
	})
}
