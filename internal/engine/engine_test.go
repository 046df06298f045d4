package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

func TestBranchesRunInParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[
		{"id": "a", "needs": [], "uses": "test.effect", "with": {"gate": "a"}},
		{"id": "b", "needs": [], "uses": "test.effect", "with": {"gate": "b"}}]`), "{}")
	// Both are running before either may end.
	got := map[string]bool{<-w.effects.begun: true, <-w.effects.begun: true}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true}, got); diff != "" {
		t.Fatal(diff)
	}
	w.effects.open("a")
	w.effects.open("b")
	if d := w.finished(id); d.Status != run.Succeeded {
		t.Fatalf("%+v", d)
	}
}

func TestCancelStopsStepInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[
		{"id": "a", "uses": "test.effect", "with": {"gate": "a"}},
		{"id": "b", "uses": "test.effect", "with": {"call": "b"}}]`), "{}")
	<-w.effects.begun
	d, err := w.runs.Cancel(t.Context(), w.actor, id)
	if err != nil || d.Status != run.Cancelled || d.Steps[0].Status != run.StepCancelled {
		t.Fatalf("%+v, %v", d, err)
	}
	if name := <-w.effects.ended; name != "a" {
		t.Fatalf("%s was aborted", name)
	}
	if after := w.get(id); w.effects.count("b") != 0 || len(after.Steps) != 1 || after.Status != run.Cancelled {
		t.Fatalf("something continued: %+v", after)
	}
}

// TestLeaseLostDuringCommit has a node that is no longer sure of its lease when the
// commit before a step returns. It leaves the step to the next owner of the run.
func TestLeaseLostDuringCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.start(&hooked{Store: w.store.Leases, after: func(_ run.Lease, d run.Decision) {
		if slices.Contains(d.Executing, "b") {
			w.leaseLost.Store(true)
		}
	}})
	id := w.startRun(w.workflow(`[
		{"id": "a", "uses": "test.effect", "with": {"call": "a"}},
		{"id": "b", "uses": "test.effect", "with": {"call": "b"}}]`), "{}")
	for !w.leaseLost.Load() || n.engine.IsActive(id) {
		time.Sleep(time.Millisecond)
	}
	if a, b := w.effects.count("a"), w.effects.count("b"); a != 1 || b != 0 {
		t.Errorf("a was called %d times, b %d times", a, b)
	}
	n.end()
	w.leaseLost.Store(false)
	w.start(w.store.Leases)
	if d := w.finished(id); d.Status != run.Succeeded || w.effects.count("a") != 1 || w.effects.count("b") != 1 {
		t.Errorf("the next owner: %s, b was called %d times", d.Status, w.effects.count("b"))
	}
}

func TestLateResultIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The engine does not learn about the cancel: its next write must be rejected.
	n := w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"gate": "a", "returns": {"late": true}}}]`), "{}")
	<-w.effects.begun
	w.current.Store(nil)
	if _, err := w.runs.Cancel(t.Context(), w.actor, id); err != nil {
		t.Fatal(err)
	}
	w.effects.open("a")
	n.end()
	if d := w.get(id); d.Status != run.Cancelled || d.Steps[0].Status != run.StepCancelled || d.Steps[0].Output != nil {
		t.Fatalf("the late result was stored: %+v", d)
	}
}

func TestDeletingWorkflowStopsItsRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	flow := w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"gate": "a"}}, {"id": "b", "uses": "test.effect", "with": {"call": "b"}}]`)
	id := w.startRun(flow, "{}")
	<-w.effects.begun
	if err := w.flows.Delete(t.Context(), w.actor, flow, etag.Match{}); err != nil {
		t.Fatal(err)
	}
	<-w.effects.ended
	if _, err := w.runs.Get(t.Context(), w.actor, id); err == nil {
		t.Fatal("the run is still there")
	}
	if w.effects.count("b") != 0 {
		t.Fatal("a step started after the delete")
	}
}

// A run that waits does not wake up after it was cancelled, or its workflow deleted.
func TestEndedRunsDoNotWakeUp(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, flow, id string) error{
		"a cancel": func(w *world, _, id string) error { _, err := w.runs.Cancel(w.t.Context(), w.actor, id); return err },
		"a delete": func(w *world, flow, _ string) error {
			return w.flows.Delete(w.t.Context(), w.actor, flow, etag.Match{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(w.store.Leases)
				flow := w.workflow(`[{"id": "nap", "uses": "flow.wait", "with": {"for": "1h"}}, {"id": "b", "uses": "test.effect", "with": {"call": "b"}}]`)
				id := w.startRun(flow, "{}")
				time.Sleep(time.Minute)
				if err := end(w, flow, id); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Hour)
				if n := w.effects.count("b"); n != 0 {
					t.Errorf("the next step was executed %d times", n)
				}
			})
		})
	}
}

func TestRunKeepsItsVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	flow := w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"gate": "a"}}, {"id": "b", "uses": "data.set", "with": {"values": {"v": "old"}}}]`)
	id := w.startRun(flow, "{}")
	<-w.effects.begun
	steps := []workflow.Step{{ID: "other", Uses: "data.set", With: []byte(`{"values": {"v": "new"}}`)}}
	if _, err := w.flows.Update(t.Context(), w.actor, flow, workflow.Patch{Steps: &steps}, etag.Match{}); err != nil {
		t.Fatal(err)
	}
	w.effects.open("a")
	if d := w.finished(id); d.WorkflowVersion != 2 || string(d.Steps[1].Output) != `{"v":"old"}` {
		t.Fatalf("%+v", d)
	}
	if d := w.finished(w.startRun(flow, "{}")); d.WorkflowVersion != 3 || d.Steps[0].Path != "other" {
		t.Fatalf("%+v", d)
	}
}

func TestShutdownLetsStepsFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"gate": "a", "call": "a"}}, {"id": "b", "uses": "test.effect", "with": {"call": "b"}}]`), "{}")
	<-w.effects.begun
	stopped := make(chan struct{})
	go func() {
		n.end()
		close(stopped)
	}()
	w.effects.open("a")
	<-stopped
	w.start(w.store.Leases)
	if d := w.finished(id); d.Status != run.Succeeded || w.effects.count("a") != 1 || w.effects.count("b") != 1 {
		t.Fatalf("a ran %d times, b %d times: %+v", w.effects.count("a"), w.effects.count("b"), d)
	}
}

// flaky is a store whose commits fail, or succeed and are reported as failed.
type flaky struct {
	engine.Store
	mu     sync.Mutex
	before int // commits that fail
	after  int // commits that succeed and are reported as failed
}

func (f *flaky) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (run.Committed, error) {
	f.mu.Lock()
	fail, hide := f.before > 0, f.after > 0
	if fail {
		f.before--
	} else if hide {
		f.after--
	}
	f.mu.Unlock()
	if fail {
		return run.Committed{}, errInjected
	}
	committed, err := f.Store.Commit(ctx, lease, of, d)
	if hide {
		return run.Committed{}, errInjected
	}
	return committed, err
}

func TestFailedCommitsAreRetried(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]*flaky{"before": {before: 3}, "after": {after: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			st.Store = w.store.Leases
			w.start(st)
			id := w.startRun(w.workflow(`[
				{"id": "a", "uses": "test.effect", "with": {"call": "a", "returns": {"n": 1}}},
				{"id": "b", "uses": "test.effect", "with": {"call": "b", "returns": {"n": "${{ steps.a.output.n + 1 }}"}}}]`), "{}")
			d := w.finished(id)
			if d.Status != run.Succeeded || string(d.Steps[1].Output) != `{"n":2}` || w.effects.count("a") != 1 || w.effects.count("b") != 1 {
				t.Fatalf("%+v", d)
			}
		})
	}
}

func TestCorruptStateFailsOnlyItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.startRun(w.workflow(`[{"id": "a", "uses": "data.set", "with": {"values": {}}}]`), "{}")
	bad := w.startRun(w.workflow(`[{"id": "a", "uses": "data.set", "with": {"values": {}}}]`), "{}")
	w.start(&corruptingStore{Store: w.store.Leases, id: bad})
	if d := w.finished(good); d.Status != run.Succeeded {
		t.Fatalf("%+v", d)
	}
	if d := w.finished(bad); d.Status != run.Failed || d.Error.Code != run.CodeCorruptState {
		t.Fatalf("%+v", d)
	}
}

type corruptingStore struct {
	engine.Store
	id string
}

func (c *corruptingStore) Snapshot(ctx context.Context, id string) (*run.Snapshot, error) {
	snapshot, err := c.Store.Snapshot(ctx, id)
	if id == c.id && snapshot != nil {
		snapshot.Trigger.Payload = []byte(`{"broken`)
	}
	return snapshot, err
}

func TestLongWaitReleasesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[
			{"id": "a", "uses": "flow.wait", "with": {"for": "30d"}},
			{"id": "b", "uses": "data.set", "with": {"values": {"done": true}}}]`), "{}")
		begun := time.Now()
		synctest.Wait()
		d := w.get(id)
		if got := d.WaitingFor(); got == nil || got.StepID != "a" || got.Until == nil {
			t.Fatalf("waiting for %+v", got)
		}
		// A restart in between does not change the time.
		time.Sleep(10 * 24 * time.Hour)
		n.end()
		time.Sleep(5 * 24 * time.Hour)
		w.start(w.store.Leases)
		time.Sleep(15*24*time.Hour + time.Minute)
		d = w.get(id)
		if d.Status != run.Succeeded || len(d.Steps) != 2 {
			t.Fatalf("%+v", d)
		}
		if took := d.FinishedAt.Sub(begun); took < 30*24*time.Hour || took > 30*24*time.Hour+time.Second {
			t.Fatalf("waited %s", took)
		}
	})
}

func TestManyWaitingRunsWakeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		flow := w.workflow(`[{"id": "a", "uses": "flow.wait", "with": {"for": "${{ trigger.payload.for }}"}}]`)
		lengths := map[string]time.Duration{}
		for i := range 40 {
			length := time.Duration(1+i*37%97) * time.Second
			lengths[w.startRun(flow, fmt.Sprintf(`{"for": %q}`, length))] = length
		}
		time.Sleep(2 * time.Minute)
		for id, length := range lengths {
			d := w.get(id)
			if d.FinishedAt == nil {
				t.Fatalf("a wait of %s has not ended", length)
			}
			if took := d.FinishedAt.Sub(d.StartedAt); took < length || took > length+time.Second {
				t.Errorf("a wait of %s took %s", length, took)
			}
		}
	})
}

// The completion of a run with a single commit carries its detail, and watchers receive
// it. In all tests, the harness compares such details with the store.
func TestCompletionCarriesDetail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	pure := w.workflow(`[
		{"id": "a", "uses": "data.set", "with": {"values": {"n": 1}}},
		{"id": "b", "uses": "data.set", "with": {"values": {"n": "${{ steps.a.output.n + 1 }}"}}},
		{"id": "c", "if": "false", "uses": "data.set", "with": {"values": {}}}]`)
	w.finished(w.startRun(pure, "{}"))
	if n := w.details.Load(); n != 1 {
		t.Errorf("%d completions carried a detail", n)
	}
	w.finished(w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"returns": 1}}]`), "{}"))
	if n := w.details.Load(); n != 1 {
		t.Error("the completion of a run with earlier commits carries a detail")
	}
}
