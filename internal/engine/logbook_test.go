package engine_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

// The log of an attempt is limited to 1,000 lines; the last one says so.
func TestStepLogIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	for _, tc := range []struct {
		written, kept int
		last          run.LogLine
	}{
		{written: 999, kept: 999, last: run.LogLine{Level: "info", Message: "998"}},
		{written: 5000, kept: 1000, last: run.LogLine{Level: "warn", Message: "the log of a step is limited to 1000 lines: further lines are dropped"}},
	} {
		steps := fmt.Sprintf(`[{"id": "a", "uses": "test.effect", "with": {"lines": %d}}]`, tc.written)
		id := w.startRun(w.workflow(steps), "{}")
		w.finished(id)
		log, _, err := w.store.Runs.Logs(t.Context(), w.actor.Workspace.ID, id, "a", paging.Request{Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		if len(log.Items) != tc.kept {
			t.Fatalf("of %d lines %d are stored", tc.written, len(log.Items))
		}
		if got := log.Items[tc.kept-1]; got.Level != tc.last.Level || got.Message != tc.last.Message || got.Path != "a" || got.Attempt != 1 {
			t.Errorf("the last of %d lines is %+v", tc.written, got)
		}
	}
}

// Every attempt has its own log.
func TestEachAttemptHasItsLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[{"id": "a", "retry": {"initial": "10ms"}, "uses": "test.effect", "with": {"call": "a", "passes_after": 2, "lines": 1}}]`), "{}")
	w.finished(id)
	log, _, err := w.store.Runs.Logs(t.Context(), w.actor.Workspace.ID, id, "", paging.Request{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var attempts []int
	for _, line := range log.Items {
		attempts = append(attempts, line.Attempt)
	}
	if fmt.Sprint(attempts) != "[1 2 3]" {
		t.Errorf("the lines are of the attempts %v", attempts)
	}
}

// logLines returns the log of a run.
func (w *world) logLines(id string) iter.Seq[run.LogLine] {
	return func(yield func(run.LogLine) bool) {
		for page := (paging.Request{Limit: 1000}); ; {
			found, _, err := w.store.Runs.Logs(w.t.Context(), w.actor.Workspace.ID, id, "", page)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, line := range found.Items {
				if !yield(line) {
					return
				}
			}
			if page.After = found.Next; found.Next == "" {
				return
			}
		}
	}
}
