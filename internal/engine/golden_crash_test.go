package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/run"
)

// TestGoldenAfterACrash lets the engine die at every other commit of each golden
// history, before or after it took place: the history stays the same. That of
// every single commit is tested on fewer workflows (TestCrashAtEveryCommit).
func TestGoldenAfterACrash(t *testing.T) {
	t.Parallel()
	for _, s := range stories(t) {
		// One that counts its calls tells another story: what is under way at the
		// moment of death is called again.
		if strings.Contains(s.part("steps.json", ""), "passes_after") {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			t.Parallel()
			for commits, died := len(s.Files)%2, true; died && !t.Failed(); commits += 2 {
				synctest.Test(t, func(t *testing.T) { died = goldenAfterACrash(t, s, commits, commits%4 < 2) })
			}
		})
	}
}

// goldenAfterACrash tells whether the engine died before the run had ended.
func goldenAfterACrash(t *testing.T, s *story, commits int, happened bool) bool {
	w := newWorld(t)
	m := newMortal(w.store, commits, happened)
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
	second := w.start(w.store)
	defer second.end()
	w.answerAll(id, s.part("answers.json", "{}"))
	got := runIDs.ReplaceAllString(history(w.endOf(id)), "<run>")
	if diff := cmp.Diff(s.part("history", ""), got); diff != "" {
		t.Errorf("died at commit %d (took place: %v): the history differs (-want +got):\n%s", commits, happened, diff)
	}
	return m.left.Load() < 0
}
