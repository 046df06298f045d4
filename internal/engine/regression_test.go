package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
)

// TestRegressions has minimal cases of bugs that the property tests have found.
func TestRegressions(t *testing.T) {
	t.Parallel()
	act := func(kind string, takes int) behavior { return behavior{kind: kind, takes: takes, attempts: 1} }
	for name, test := range map[string]struct {
		parts  []*part
		faults []injectedFault
		idle   bool // nothing may be executed
	}{
		"a restored loop reports the step that failed": {
			parts: []*part{
				{id: "lines", loop: &loop{
					foreach: "trigger.payload.lists[1]", items: []int{4}, parallel: 1,
					body: []*part{{id: "check", implicit: true, behavior: act("fails", 0)}},
				}},
				{id: "beside", behavior: act("wait", 3)},
			},
			faults: []injectedFault{{3, crashBefore}},
		},
		"a run cancelled during a commit starts no steps": {
			parts:  []*part{{id: "a", behavior: act("returns", 1)}},
			faults: []injectedFault{{0, cancelAfter}}, idle: true,
		},
		"an activation that was reported as failed is used": {
			parts:  []*part{{id: "a", behavior: act("wait", 3)}},
			faults: []injectedFault{{1, failAfter}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, sk := newScenario(t), &sketch{parts: test.parts}
				w, problems := s.play(sk, test.faults, 0)
				if len(problems) > 0 {
					t.Errorf("%s\n%s", strings.Join(problems, "\n"), sk.describe(test.faults, 0))
				}
				if test.idle && len(w.calls) > 0 {
					t.Errorf("something was executed: %v", w.calls)
				}
				if last := test.faults[len(test.faults)-1]; w.writes <= last.Write {
					t.Errorf("only %d writes", w.writes)
				}
			})
		})
	}
}

// cancelingStore cancels the run just before an answer.
type cancelingStore struct {
	run.Store
	world *world
}

func (s cancelingStore) AnswerStep(ctx context.Context, a run.Answer) (bool, error) {
	if _, err := s.world.runs.Cancel(ctx, s.world.actor, a.RunID); err != nil {
		return false, err
	}
	return s.Store.AnswerStep(ctx, a)
}

func TestLateAnswerErrorNamesStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "ask", "uses": "flow.approval"}]`), "{}")
		synctest.Wait()
		late := run.NewService(cancelingStore{w.store.Runs, w}, w.plans, w.watchers, w, pubsub.NewBroker())
		_, err := late.Resume(context.Background(), w.actor, id, "ask", run.Resumption{Approved: true})
		if err == nil || !strings.Contains(err.Error(), "its type is flow.approval and its status is cancelled") {
			t.Fatal(err)
		}
	})
}
