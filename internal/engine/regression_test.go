package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
)

// TestMishaps has the smallest cases of mistakes that random ones have shown.
func TestMishaps(t *testing.T) {
	t.Parallel()
	act := func(kind string, takes int) deed { return deed{kind: kind, takes: takes, attempts: 1} }
	for name, test := range map[string]struct {
		parts   []*part
		mishaps []mishap
		idle    bool // nothing may be executed
	}{
		"the step that failed a loop is known after a crash": {
			parts: []*part{
				{id: "lines", loop: &loop{
					foreach: "trigger.payload.lists[1]", items: []int{4}, parallel: 1,
					body: []*part{{id: "check", implicit: true, deed: act("fails", 0)}},
				}},
				{id: "beside", deed: act("wait", 3)},
			},
			mishaps: []mishap{{3, crashBefore}},
		},
		"a run that was cancelled while it was written starts nothing": {
			parts:   []*part{{id: "a", deed: act("returns", 1)}},
			mishaps: []mishap{{0, cancelAfter}}, idle: true,
		},
		"a run is taken up although that seemed to fail": {
			parts:   []*part{{id: "a", deed: act("wait", 3)}},
			mishaps: []mishap{{1, failAfter}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, sk := newStage(t), &sketch{parts: test.parts}
				w, problems := s.play(sk, test.mishaps, 0)
				if len(problems) > 0 {
					t.Errorf("%s\n%s", strings.Join(problems, "\n"), sk.describe(test.mishaps, 0))
				}
				if test.idle && len(w.calls) > 0 {
					t.Errorf("something was executed: %v", w.calls)
				}
				if last := test.mishaps[len(test.mishaps)-1]; w.writes <= last.Write {
					t.Errorf("there were only %d writes", w.writes)
				}
			})
		})
	}
}

// tardy is a store to which a cancel comes just before an answer.
type tardy struct {
	*store.Store
	world *world
}

func (s tardy) AnswerStep(ctx context.Context, a run.Answer) (bool, error) {
	if _, err := s.world.runs.Cancel(ctx, s.world.actor, a.RunID); err != nil {
		return false, err
	}
	return s.Store.AnswerStep(ctx, a)
}

func TestAnAnswerThatComesTooLateIsToldWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store)
		id := w.startRun(w.workflow(`[{"id": "ask", "uses": "flow.approval"}]`), "{}")
		synctest.Wait()
		late := run.NewService(tardy{w.store, w}, w.plans, w.watchers, w, news.NewHub())
		_, err := late.Resume(context.Background(), w.actor, id, "ask", run.Resumption{Approved: true})
		if err == nil || !strings.Contains(err.Error(), "it is a flow.approval that is cancelled") {
			t.Fatal(err)
		}
	})
}
