package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/run"
)

// crashingStore stops responding after a number of commits, as if the process had
// crashed. The last commit may still have succeeded.
type crashingStore struct {
	engine.Store
	left     atomic.Int64
	happened bool
	dead     chan struct{}
}

func newCrashingStore(st engine.Store, commits int, happened bool) *crashingStore {
	m := &crashingStore{Store: st, happened: happened, dead: make(chan struct{})}
	m.left.Store(int64(commits))
	return m
}

func (m *crashingStore) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (run.Committed, error) {
	switch left := m.left.Add(-1); {
	case left >= 0:
		return m.Store.Commit(ctx, lease, of, d)
	case left == -1:
		if m.happened {
			_, _ = m.Store.Commit(ctx, lease, of, d)
		}
		close(m.dead)
	}
	return run.Committed{}, errInjected
}

// TestCrashAtEveryCommit crashes the engine before or after its n-th commit, for every n
// until the run ends, and continues the run with a new engine. The result is always the
// same.
func TestCrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps, payload string
		calls          map[string]int
	}{
		"branches":   {steps: branches, payload: "{}", calls: map[string]int{"a": 1, "b": 1, "f": 1, "d": 1}},
		"operations": {steps: operations, payload: `{"items": [1, 2, 3, 4]}`, calls: map[string]int{"alert": 1}},
		"loops":      {steps: loops, payload: `{"items": [1, 2, 3]}`, calls: map[string]int{"one": 3, "look": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashAtEveryCommit(t, test.steps, test.payload, test.calls)
		})
	}
}

const (
	branches = `[
		{"id": "a", "uses": "test.effect", "with": {"call": "a", "returns": {"n": 1}}},
		{"id": "b", "needs": ["a"], "uses": "test.effect", "with": {"call": "b", "returns": {"n": "${{ steps.a.output.n + 1 }}"}}},
		{"id": "c", "needs": ["a"], "uses": "data.set", "with": {"values": {"n": "${{ steps.a.output.n + 2 }}"}}},
		{"id": "w", "needs": ["c"], "uses": "flow.wait", "with": {"for": "20ms"}},
		{"id": "f", "needs": ["a"], "on_error": "continue", "uses": "test.effect", "with": {"call": "f", "fails": "no"}},
		{"id": "d", "needs": ["b", "w", "f"], "uses": "test.effect", "with": {"call": "d", "returns": {"n": "${{ steps.b.output.n * steps.c.output.n }}"}}}]`
	operations = `[
		{"id": "lines", "foreach": "trigger.payload.items", "parallel": 2, "steps": [
			{"id": "once", "uses": "state.set", "with": {"key": "alert", "value": "${{ item }}", "if_absent": true, "expires_in": "24h"}},
			{"id": "count", "uses": "state.increment", "with": {"key": "n", "by": "${{ item }}", "scope": "workspace"}},
			{"id": "alert", "if": "steps.once.output.set", "uses": "test.effect", "with": {"call": "alert", "returns": {"n": "${{ item }}"}}}]},
		{"id": "a", "needs": ["lines"], "uses": "state.increment", "with": {"key": "a"}},
		{"id": "b", "needs": ["lines"], "uses": "state.increment", "with": {"key": "b", "by": 2}},
		{"id": "c", "needs": ["lines"], "on_error": "continue", "uses": "table.increment", "with": {"table": "none", "key": "x", "column": "n"}},
		{"id": "read", "needs": ["a", "b", "c"], "uses": "state.get", "with": {"key": "n", "scope": "workspace"}},
		{"id": "gone", "uses": "state.delete", "with": {"key": "a"}}]`
	loops = `[
		{"id": "lines", "foreach": "trigger.payload.items", "parallel": 2, "steps": [
			{"id": "one", "uses": "test.effect", "with": {"call": "one", "returns": {"n": "${{ item }}"}}},
			{"id": "two", "uses": "data.set", "with": {"values": {"n": "${{ steps.one.output.n * 10 }}"}}}]},
		{"id": "poll", "repeat": {"until": "index == 2", "every": "10ms"}, "steps": [
			{"id": "look", "uses": "test.effect", "with": {"call": "look", "returns": {"n": "${{ index }}"}}}]},
		{"id": "sum", "uses": "data.set", "with": {"values": {"n": "${{ sum(map(steps.lines.output.items, .n)) + len(steps.poll.output.items) }}"}}}]`
)

func crashAtEveryCommit(t *testing.T, steps, payload string, calls map[string]int) {
	calm := newWorld(t)
	calm.start(calm.store.Leases)
	want := withoutTimes(calm.finished(calm.startRun(calm.workflow(steps), payload)))

	for _, happened := range []bool{false, true} {
		for commits := 0; ; commits++ {
			w := newWorld(t)
			m := newCrashingStore(w.store.Leases, commits, happened)
			n := w.start(m)
			id := w.startRun(w.workflow(steps), payload)
			ended, stopWatching := w.watchers.Watch(id)
			died := false
			select {
			case <-m.dead:
				died = true
			case <-ended:
			}
			stopWatching()
			n.end()
			w.start(w.store.Leases)
			got := withoutTimes(w.finished(id))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("crashed at commit %d (committed: %v): the result differs (-want +got):\n%s", commits, happened, diff)
			}
			for name, once := range calls {
				// Steps in flight at the time of the crash may be executed twice.
				if count := w.effects.count(name); count < once || count > once+2 {
					t.Errorf("INVARIANT: crashed at commit %d (committed: %v): %s was called %d times", commits, happened, name, count)
				}
			}
			if !died {
				break
			}
		}
	}
}

// withoutTimes returns a history without the times at which waits ended.
func withoutTimes(d run.Detail) string {
	for i := range d.Steps {
		if d.Steps[i].Type == "flow.wait" {
			d.Steps[i].Output = nil
		}
	}
	return withoutIDs(history(d))
}
