package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/run"
)

// mishap is something that happens at the n-th write of the engine, counted over
// all its lives.
type mishap struct {
	Write int
	Kind  string
}

// What can happen at a write.
const (
	crashBefore  = "crash before"  // the process ends, nothing was written
	crashAfter   = "crash after"   // the process ends when it was
	failBefore   = "fail before"   // the store reports an error, nothing was written
	failAfter    = "fail after"    // the store reports an error, but it was
	cancelBefore = "cancel before" // somebody cancels the run
	cancelAfter  = "cancel after"
	restart      = "restart" // the process is asked to stop
)

// watch looks at one run from outside of the engine: at everything that it
// writes and at every effect, over all lives of the engine.
type watch struct {
	world  *world
	sketch *sketch
	faults []mishap
	fallen chan string // this life of the engine ends

	mu        sync.Mutex
	life      int
	writes    int
	mirror    map[string]run.Step // as committed
	last      run.Decision        // that was committed
	wrote     run.Decision        // the last one with steps in it
	seq       int
	finished  bool
	cancelled bool
	calls     map[call]int
	announced map[call]bool   // committed as what is executed next
	asked     map[string]bool // approvals with an answer on its way
	problems  []string
}

// call is an attempt of a step in one life of the engine.
type call struct {
	life    int
	path    string
	attempt int
}

func newWatch(w *world, s *sketch, faults []mishap) *watch {
	return &watch{
		world: w, sketch: s, faults: faults, fallen: make(chan string, 10),
		mirror: map[string]run.Step{}, calls: map[call]int{}, announced: map[call]bool{}, asked: map[string]bool{},
	}
}

// inherit takes in the steps that a retry begins with.
func (w *watch) inherit(steps []run.Step) {
	for _, step := range steps {
		w.mirror[step.Path] = step
		w.seq = max(w.seq, step.Seq)
	}
}

func (w *watch) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// found are the problems so far.
func (w *watch) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.problems)
}

// next is what happens at the next write.
func (w *watch) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	for _, f := range w.faults {
		if f.Write == w.writes-1 {
			return f.Kind
		}
	}
	return ""
}

// committed takes a decision into the mirror and holds it against the rules.
func (w *watch) committed(runID string, d run.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished || w.cancelled {
		w.problem("something was written after the end of the run: %+v", d)
	}
	if len(d.Steps) > 0 && (d.Rev < w.wrote.Rev || d.Rev == w.wrote.Rev && !cmp.Equal(d.Steps, w.wrote.Steps)) {
		w.problem("commit %d comes after commit %d", d.Rev, w.wrote.Rev)
	}
	w.last, w.finished = d, d.Finish != nil
	if len(d.Steps) > 0 {
		w.wrote = d
	}
	latest := w.seq
	for _, step := range d.Steps {
		step.Rev = d.Rev
		old, known := w.mirror[step.Path]
		w.mirror[step.Path] = step
		if old.Rev = step.Rev; known && old.Status.Settled() && !cmp.Equal(old, step) {
			w.problem("a step that had settled has changed: %s", cmp.Diff(old, step))
		}
		if known && old.Seq != step.Seq || !known && step.Seq <= latest {
			w.problem("%s has the number %d; the last one was %d", step.Path, step.Seq, latest)
		}
		w.seq = max(w.seq, step.Seq)
	}
	for _, path := range d.Executing {
		w.announced[call{w.life, path, w.mirror[path].Attempt}] = w.mirror[path].Status == run.StepRunning
	}
	for _, step := range d.Steps {
		w.startedInTime(step)
		if step.Awaits == action.AwaitsAnswer {
			w.answer(runID, step)
		}
	}
}

// startedInTime holds the start of a step against what it needs, in the state
// as it is committed.
func (w *watch) startedInTime(step run.Step) {
	p, prefix := w.sketch.find(step.Path)
	if p == nil {
		w.problem("there is no step %s", step.Path)
		return
	}
	settled, succeeded := 0, false
	for _, id := range p.needs {
		need := w.mirror[prefix+id]
		if !need.Status.Settled() || need.FinishedAt == nil || need.FinishedAt.After(step.StartedAt) {
			continue
		}
		settled++
		succeeded = succeeded || need.Status == run.StepSucceeded
	}
	if settled < len(p.needs) && (p.join != "first" || !succeeded) {
		w.problem("%s has started before what it needs had ended", step.Path)
	}
}

// answer gives an approval the answer of its script, a while later.
func (w *watch) answer(runID string, step run.Step) {
	p, _ := w.sketch.find(step.Path)
	if p == nil || p.deed.kind == "unanswered" || w.asked[step.Path] {
		return
	}
	w.asked[step.Path] = true
	time.AfterFunc(time.Duration(p.deed.takes)*time.Millisecond+250*time.Microsecond, func() {
		_, err := w.world.runs.Resume(context.Background(), w.world.actor, runID, step.Path,
			run.Resumption{Approved: p.deed.kind == "approved", Comment: step.Path})
		if err != nil && !strings.Contains(err.Error(), "does not wait") {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.problem("the answer for %s was refused: %v", step.Path, err)
		}
	})
}

// perform is the action test.act. It fails by the number of the attempt as it is
// committed, so that an attempt that a crash repeats ends the same way.
func (w *watch) perform(ctx context.Context, req action.Request) (action.Result, error) {
	attempt := w.enter(ctx, req)
	takes, _ := req.Input["takes"].(int)
	length := time.Duration(takes) * time.Millisecond
	if req.Input["does"] == "hangs" {
		length = time.Hour
	}
	select {
	case <-time.After(length):
	case <-ctx.Done():
		return action.Result{}, ctx.Err()
	}
	switch req.Input["does"] {
	case "panics":
		panic("scripted")
	case "fails":
		return action.Result{}, &action.Failure{Code: "test_failed", Message: "for good"}
	case "passing":
		if failures, _ := req.Input["failures"].(int); attempt <= failures {
			return action.Result{}, &action.Failure{Code: "test_passing", Message: "not yet", Retryable: true}
		}
	case "bare":
		return action.Result{Output: req.Input["v"]}, nil
	}
	return action.Result{Output: map[string]any{"v": req.Input["v"]}}, nil
}

// enter notes a call of an effect, and checks that it may be made.
func (w *watch) enter(ctx context.Context, req action.Request) (attempt int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := req.Run.Path
	step := w.mirror[path]
	this := call{w.life, path, step.Attempt}
	w.calls[this]++
	switch {
	case !w.announced[this]:
		w.problem("%s is executed, but what is committed of it is %q, executing %v", path, step.Status, w.last.Executing)
	case w.calls[this] > 1:
		w.problem("attempt %d of %s was executed twice without a crash", step.Attempt, path)
	case req.IdempotencyKey != req.Run.ID+"/"+path:
		w.problem("%s has the idempotency key %s", path, req.IdempotencyKey)
	case w.cancelled && ctx.Err() == nil:
		w.problem("%s is executed after the run was cancelled", path)
	}
	w.startedInTime(step)
	return step.Attempt
}

// cancel cancels the run like somebody from outside.
func (w *watch) cancel(runID string) {
	_, err := w.world.runs.Cancel(context.Background(), w.world.actor, runID)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelled = w.cancelled || err == nil
}

// restored holds what the store has of the run against the mirror.
func (w *watch) restored(runID string) {
	snapshot, err := w.world.store.Snapshot(context.Background(), runID)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || snapshot == nil {
		w.problem("the run cannot be read: %v", err)
		return
	}
	committed, stored := map[string]run.Step{}, map[string]run.Step{}
	// What ends a run before its steps have ended changes those that are open.
	cut := snapshot.Status == run.Cancelled || w.finished && w.last.Finish.CutShort
	for _, step := range snapshot.Steps {
		if mirrored := w.mirror[step.Path]; !cut || mirrored.Status.Settled() {
			committed[step.Path], stored[step.Path] = mirrored, step
		}
	}
	if len(snapshot.Steps) != len(w.mirror) {
		w.problem("%d steps are stored, %d were committed", len(snapshot.Steps), len(w.mirror))
	}
	if diff := cmp.Diff(committed, stored, cmpopts.IgnoreFields(run.Step{}, "Answer"), cmpopts.EquateEmpty()); diff != "" {
		w.problem("the state that is stored is not the one that was committed (-committed +stored):\n%s", diff)
	}
}

// perilous is the store of one life of the engine, under the faults of a watch.
type perilous struct {
	engine.Store
	watch *watch
	dead  atomic.Bool
}

func (p *perilous) Snapshot(ctx context.Context, runID string) (*run.Snapshot, error) {
	if p.dead.Load() {
		return nil, errInjected
	}
	return p.Store.Snapshot(ctx, runID)
}

func (p *perilous) Activate(ctx context.Context, wake run.Wake, node string) (lease run.Lease, ok bool, err error) {
	err = p.write(wake.RunID, func() error {
		lease, ok, err = p.Store.Activate(ctx, wake, node)
		return err
	})
	return lease, ok, err
}

func (p *perilous) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (held bool, err error) {
	err = p.write(lease.RunID, func() error {
		held, err = p.Store.Commit(ctx, lease, of, d)
		if err == nil && held {
			p.watch.committed(lease.RunID, d)
		}
		return err
	})
	return held, err
}

// write writes, or lets happen what happens at this write.
func (p *perilous) write(runID string, do func() error) error {
	if p.dead.Load() {
		return errInjected
	}
	kind := p.watch.next()
	switch kind {
	case crashBefore:
		p.die(kind)
		return errInjected
	case failBefore:
		return errInjected
	case cancelBefore:
		p.watch.cancel(runID)
	case restart:
		p.watch.fallen <- kind
	}
	err := do()
	switch kind {
	case crashAfter:
		p.die(kind)
		return errInjected
	case failAfter:
		return errInjected
	case cancelAfter:
		p.watch.cancel(runID)
	}
	return err
}

func (p *perilous) die(kind string) {
	p.dead.Store(true)
	p.watch.fallen <- kind
}
