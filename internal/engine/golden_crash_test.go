package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/run"
)

// TestGoldenAfterCrash crashes the engine before or after every other commit of each golden
// history. The history stays the same. TestCrashAtEveryCommit tests every commit, on
// fewer workflows.
func TestGoldenAfterCrash(t *testing.T) {
	t.Parallel()
	for _, s := range goldenCases(t) {
		// Histories that count calls differ: steps in flight at the time of the
		// crash are called again.
		if strings.Contains(s.part("steps.json", ""), "passes_after") {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			t.Parallel()
			for commits, died := len(s.Files)%2, true; died && !t.Failed(); commits += 2 {
				synctest.Test(t, func(t *testing.T) { died = goldenAfterCrash(t, s, commits, commits%4 < 2) })
			}
		})
	}
}

// goldenAfterCrash reports whether the engine crashed before the run ended.
func goldenAfterCrash(t *testing.T, s *goldenCase, commits int, happened bool) bool {
	w := newWorld(t)
	m := newCrashingStore(w.store.Leases, commits, happened)
	first := w.start(m)
	id := s.begin(w)
	if ended, stop := w.watchers.Watch(id); s.index("answers.json") < 0 && w.get(id).Status == run.Running {
		select {
		case <-m.dead:
		case <-ended:
		}
		stop()
	}
	synctest.Wait()
	first.end()
	second := w.start(w.store.Leases)
	defer second.end()
	w.answerAll(id, s.part("answers.json", "{}"))
	got := withoutIDs(history(w.endOf(id)))
	if diff := cmp.Diff(s.part("history", ""), got); diff != "" {
		t.Errorf("crashed at commit %d (committed: %v): the history differs (-want +got):\n%s", commits, happened, diff)
	}
	return m.left.Load() < 0
}
