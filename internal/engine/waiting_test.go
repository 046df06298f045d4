package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

// After every commit, the list of runs shows the same wait as the run itself.
func TestListMatchesWaitingFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := &hooked{Store: w.store.Leases}
	seen := map[bool]int{}
	st.after = func(lease run.Lease, d run.Decision) {
		if d.Finish != nil {
			return
		}
		read := func() run.Detail { return *must(w.store.Runs.Run(t.Context(), w.actor.Workspace.ID, lease.RunID))(t) }
		list := func(waiting *bool) []run.Listed {
			filter := run.Filter{Text: lease.RunID, Waiting: waiting}
			return must(w.store.Runs.AllRuns(t.Context(), w.actor.Workspace.ID, filter, paging.Request{Limit: 1}))(t).Items
		}
		detail := read()
		listed, waits, works := list(nil), list(new(true)), list(new(false))
		if !cmp.Equal(detail, read()) {
			return // it was released and has continued in the meantime
		}
		want := detail.WaitingFor()
		if diff := cmp.Diff(want, listed[0].Waiting); diff != "" {
			t.Errorf("(-run +list):\n%s", diff)
		}
		if (want != nil) != (len(waits) == 1) || (want == nil) != (len(works) == 1) {
			t.Errorf("the run waits for %v; listed as waiting: %v, as not waiting: %v", want, waits, works)
		}
		seen[want != nil]++
	}
	w.start(st)
	flow := w.workflow(`[
		{"id": "ask", "uses": "flow.approval", "with": {"message": "?"}},
		{"id": "work", "needs": [], "uses": "test.effect", "with": {"gate": "work"}},
		{"id": "try", "needs": ["work"], "uses": "test.effect", "with": {"call": "try", "passes_after": 1}, "retry": {"initial": "10ms", "max_delay": "10ms"}},
		{"id": "each", "needs": ["try"], "foreach": "[1, 2]", "parallel": 2, "steps": [{"id": "nap", "uses": "flow.wait", "with": {"for": "20ms"}}, {"id": "note", "uses": "data.set", "with": {"values": {}}}]},
		{"id": "poll", "needs": ["each"], "repeat": {"until": "index == 1", "every": "20ms"}, "steps": [{"id": "look", "uses": "data.set", "with": {"values": {}}}]},
		{"id": "last", "needs": ["poll"], "uses": "test.effect", "with": {"gate": "last"}}]`)
	id := w.startRun(flow, "{}")
	<-w.effects.begun
	w.effects.open("work")
	<-w.effects.begun
	w.effects.open("last")
	w.mustAnswer(id, "ask", "Yes")
	if ended := w.finished(id); ended.Status != run.Succeeded {
		t.Errorf("%s %+v", ended.Status, ended.Error)
	}
	if seen[true] < 2 || seen[false] < 2 {
		t.Errorf("the run waited after %d commits and did not after %d", seen[true], seen[false])
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return value
	}
}
