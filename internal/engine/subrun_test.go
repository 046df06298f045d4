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

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

// parentAndChild is a workflow that runs another one, and that one.
type parentAndChild struct {
	*world
	parent, child string // workflows
}

const childSteps = `[
	{"id": "one", "uses": "test.effect", "with": {"call": "one", "returns": {"n": 1}}},
	{"id": "rest", "uses": "flow.wait", "with": {"for": "1m"}},
	{"id": "two", "uses": "test.effect", "with": {"call": "two", "returns": {"n": 2}}}]`

func newParentAndChild(w *world, childSteps string) parentAndChild {
	f := parentAndChild{world: w, child: w.workflow(childSteps)}
	f.parent = w.workflow(fmt.Sprintf(`[
		{"id": "call", "on_error": "continue", "uses": "flow.run", "with": {"workflow_id": %q}},
		{"id": "then", "uses": "test.effect", "with": {"call": "then", "returns": {"output": "${{ steps.call.output.output }}", "why": "${{ steps.call.error.code }}"}}}]`, f.child))
	return f
}

func (f parentAndChild) children() []run.Item {
	f.t.Helper()
	page, err := f.runs.List(context.WithoutCancel(f.t.Context()), f.actor, f.child, "", nil, paging.Request{Limit: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	return page.Items
}

// TestChildEndsBeforeParentWaits delays the commit that makes the step wait until the child has
// ended.
func TestChildEndsBeforeParentWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := newParentAndChild(w, childSteps)
		st := &hooked{Store: w.store.Leases, before: func(_ run.Lease, d run.Decision) {
			if slices.ContainsFunc(d.Steps, func(s run.Step) bool { return s.Path == "call" && s.Status == run.StepWaiting && s.Answer == nil }) {
				w.endOf(f.children()[0].ID)
			}
		}}
		w.start(st)
		d := w.endOf(w.startRun(f.parent, "{}"))
		if took := d.FinishedAt.Sub(d.StartedAt); d.Status != run.Succeeded || string(d.Steps[1].Output) != `{"output":{"n":2},"why":null}` || took != time.Minute {
			t.Fatalf("%s after %s: %+v", d.Status, took, d.Steps)
		}
		if got := len(f.children()); got != 1 || w.effects.count("then") != 1 {
			t.Errorf("%d runs, %d calls", got, w.effects.count("then"))
		}
	})
}

// TestCrashAtEveryCommitOfParentAndChild crashes the engine at each commit of a run and
// of the child that it waits for.
func TestCrashAtEveryCommitOfParentAndChild(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ child, want string }{
		"succeeds": {childSteps, `{"output":{"n":2},"why":null}`},
		"fails":    {`[{"id": "one", "uses": "test.effect", "with": {"fails": "boom"}}]`, `{"output":null,"why":"run_failed"}`},
		"is empty": {`[]`, `{"output":null,"why":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, happened := range []bool{false, true} {
				for commits, died := 0, true; died && !t.Failed(); commits++ {
					synctest.Test(t, func(t *testing.T) { died = crashParentAndChild(t, tc.child, tc.want, commits, happened) })
				}
			}
		})
	}
}

func crashParentAndChild(t *testing.T, child, want string, commits int, happened bool) bool {
	w := newWorld(t)
	f := newParentAndChild(w, child)
	m := newCrashingStore(w.store.Leases, commits, happened)
	n := w.start(m)
	id := w.startRun(f.parent, "{}")
	ended, stop := w.watchers.Watch(id)
	defer stop()
	select {
	case <-m.dead:
	case <-ended:
	}
	n.end()
	w.start(w.store.Leases)
	d := w.endOf(id)
	if len(d.Steps) != 2 || d.Status != run.Succeeded || string(d.Steps[1].Output) != want {
		t.Errorf("crashed at commit %d (committed: %v): %+v", commits, happened, d.Steps)
	}
	if got := f.children(); len(got) != 1 || got[0].Status == run.Running {
		t.Errorf("crashed at commit %d (committed: %v): %+v", commits, happened, got)
	}
	return m.left.Load() < 0
}

// TestCancelParentAtEveryMoment cancels a run before and after each of its commits and those of
// its child, and while the child is being started. Nothing continues after the cancel.
func TestCancelParentAtEveryMoment(t *testing.T) {
	t.Parallel()
	for moment, more := 0, true; more && !t.Failed(); moment++ {
		synctest.Test(t, func(t *testing.T) { more = cancelParentAndChild(t, moment) })
	}
}

func cancelParentAndChild(t *testing.T, moment int) bool {
	w := newWorld(t)
	f := newParentAndChild(w, childSteps)
	var (
		at   atomic.Int64
		mu   sync.Mutex
		id   string
		came = make(chan struct{})
	)
	pass := func(...any) {
		if at.Add(1)-1 != int64(moment) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		defer close(came)
		if _, err := w.runs.Cancel(context.WithoutCancel(t.Context()), w.actor, id); err != nil && w.get(id).Status == run.Running {
			t.Errorf("moment %d: %v", moment, err)
		}
	}
	st := &hooked{Store: w.store.Leases, before: func(run.Lease, run.Decision) { pass() }, after: func(run.Lease, run.Decision) { pass() }}
	w.childStarts = func(string) { pass() }
	mu.Lock()
	w.start(st)
	id = w.startRun(f.parent, "{}")
	mu.Unlock()
	ended, stop := w.watchers.Watch(id)
	defer stop()
	select {
	case <-came:
	case <-ended:
	}
	synctest.Wait()
	d := w.get(id)
	for _, step := range d.Steps {
		if !step.Status.Settled() {
			t.Errorf("moment %d: step %s is %s", moment, step.Path, step.Status)
		}
	}
	for _, child := range f.children() {
		if child.Status == run.Running {
			t.Errorf("moment %d: the child continues", moment)
		}
	}
	before := w.effects.count("one") + w.effects.count("two") + w.effects.count("then")
	time.Sleep(time.Hour)
	if after := w.effects.count("one") + w.effects.count("two") + w.effects.count("then"); after != before || len(f.children()) > 1 {
		t.Errorf("moment %d: something started after the cancel", moment)
	}
	return d.Status == run.Cancelled
}

// TestEndOfParentCancelsChildren ends the parent in every other way.
func TestEndOfParentCancelsChildren(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings, beside string
		end              func(w *world, parent string)
	}{
		"stopped":   {"{}", `{"id": "rest", "needs": [], "uses": "flow.wait", "with": {"for": "10s"}}, {"id": "stop", "uses": "flow.stop", "with": {}}`, nil},
		"timed out": {`{"timeout": "10s"}`, `{"id": "hang", "needs": [], "uses": "test.effect", "with": {"gate": "never"}}`, nil},
		"deleted": {"{}", `{"id": "rest", "needs": [], "uses": "flow.wait", "with": {"for": "1h"}}`, func(w *world, parent string) {
			if err := w.flows.Delete(context.WithoutCancel(w.t.Context()), w.actor, parent, etag.Match{}); err != nil {
				w.t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(w.store.Leases)
				f := newParentAndChild(w, childSteps)
				parent := w.workflowWith(fmt.Sprintf(`[
					{"id": "call", "needs": [], "uses": "flow.run", "with": {"workflow_id": %q}},
					{"id": "leave", "needs": [], "uses": "flow.run", "with": {"workflow_id": %q, "wait": false}}, %s]`, f.child, f.child, tc.beside), tc.settings)
				w.startRun(parent, "{}")
				time.Sleep(30 * time.Second)
				if tc.end != nil {
					tc.end(w, parent)
				}
				time.Sleep(time.Hour)
				got := map[run.Status]int{}
				for _, child := range f.children() {
					got[child.Status]++
				}
				if diff := cmp.Diff(map[run.Status]int{run.Cancelled: 1, run.Succeeded: 1}, got); diff != "" {
					t.Errorf("the awaited child ends, the other does not (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestNestedRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	flow := w.workflow(`[{"id": "down", "uses": "flow.run", "with": {"workflow_id": "${{ workflow.id }}"}}]`)
	d := w.finished(w.startRun(flow, "{}"))
	page, err := w.runs.List(t.Context(), w.actor, flow, run.Failed, nil, paging.Request{Limit: 100})
	if err != nil || len(page.Items) != 11 || d.Error.Code != "run_failed" {
		t.Fatalf("%d runs, %+v, %v", len(page.Items), d.Error, err)
	}
	// Each run is started by its parent; the deepest must not start another.
	var deepest run.Detail
	for _, item := range page.Items { // two that start within a millisecond are in no order
		if one := w.get(item.ID); one.Depth >= deepest.Depth {
			deepest = one
		}
	}
	if deepest.Depth != 10 || deepest.Steps[0].Error.Code != "chain_depth_exceeded" {
		t.Errorf("at depth %d: %+v", deepest.Depth, deepest.Steps[0].Error)
	}
}
