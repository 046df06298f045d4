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
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
)

// injectedFault is a fault at the n-th write, counted over all engines of a run.
type injectedFault struct {
	Write int
	Kind  string
}

// Kinds of faults.
const (
	crashBefore  = "crash before"  // the process crashes before the write
	crashAfter   = "crash after"   // the process crashes after the write
	failBefore   = "fail before"   // the write fails
	failAfter    = "fail after"    // the write succeeds and is reported as failed
	cancelBefore = "cancel before" // the run is cancelled
	cancelAfter  = "cancel after"
	restart      = "restart" // the process is asked to stop
)

// observer observes the writes and effects of one run, over all its engines, and checks
// them.
type observer struct {
	world   *world
	sketch  *sketch
	faults  []injectedFault
	crashed chan string // the current engine crashes

	mu         sync.Mutex
	generation int
	writes     int
	mirror     map[string]run.Step // as committed
	last       run.Decision        // last committed decision
	wrote      run.Decision        // last decision with steps
	seq        int
	finished   bool
	cancelled  bool
	calls      map[call]int
	announced  map[call]bool   // committed as executing
	asked      map[string]bool // approvals with a pending answer
	problems   []string
}

// call is an attempt of a step by one engine.
type call struct {
	generation int
	path       string
	attempt    int
}

func newObserver(w *world, s *sketch, faults []injectedFault) *observer {
	return &observer{
		world: w, sketch: s, faults: faults, crashed: make(chan string, 10),
		mirror: map[string]run.Step{}, calls: map[call]int{}, announced: map[call]bool{}, asked: map[string]bool{},
	}
}

// reuse adds the steps that a retry reuses.
func (w *observer) reuse(steps []run.Step) {
	for _, step := range steps {
		w.mirror[step.Path] = step
		w.seq = max(w.seq, step.Seq)
	}
}

func (w *observer) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// found returns the problems so far.
func (w *observer) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.problems)
}

// next returns the fault of the next write.
func (w *observer) next() string {
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

// committed applies a decision to the mirror and checks it.
func (w *observer) committed(runID string, d run.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished || w.cancelled {
		w.problem("a commit after the end of the run: %+v", d)
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
		w.announced[call{w.generation, path, w.mirror[path].Attempt}] = w.mirror[path].Status == run.StepRunning
	}
	for _, step := range d.Steps {
		w.startedInTime(step)
		if step.Awaits == action.AwaitsAnswer {
			w.answer(runID, step)
		}
	}
}

// startedInTime checks that a step started after the steps it needs, in the committed
// state.
func (w *observer) startedInTime(step run.Step) {
	p, prefix := w.sketch.find(step.Path)
	if p == nil {
		w.problem("there is no step %s", step.Path)
		return
	}
	if p.disabled { // it is skipped at once
		return
	}
	settled, succeeded := 0, false
	after := p.after(w.sketch.parts)
	for _, text := range after {
		id, path, _ := strings.Cut(text, ".")
		need := w.mirror[prefix+id]
		if !need.Status.Settled() || need.FinishedAt == nil || need.FinishedAt.After(step.StartedAt) {
			continue
		}
		settled++
		succeeded = succeeded || (need.Status == run.StepFailed) == (path == "error")
	}
	if settled < len(after) && (p.join != "first" || !succeeded) {
		w.problem("%s started before the steps it needs had ended", step.Path)
	}
}

// answer answers an approval as its script says, some time later.
func (w *observer) answer(runID string, step run.Step) {
	p, _ := w.sketch.find(step.Path)
	if p == nil || p.behavior.kind == "unanswered" || w.asked[step.Path] {
		return
	}
	w.asked[step.Path] = true
	time.AfterFunc(time.Duration(p.behavior.takes)*time.Millisecond+250*time.Microsecond, func() {
		_, err := w.world.runs.Resume(context.Background(), w.world.actor, runID, step.Path,
			run.Resumption{Approved: p.behavior.kind == "approved", Comment: step.Path})
		if err != nil && !fault.Is(err, fault.StepNotWaiting) { // the run may have ended meanwhile
			w.mu.Lock()
			defer w.mu.Unlock()
			w.problem("the answer for %s was rejected: %v", step.Path, err)
		}
	})
}

// perform implements the action test.act. Whether it fails depends on the committed
// attempt, so that an attempt that is repeated after a crash ends the same way.
func (w *observer) perform(ctx context.Context, req action.Request) (action.Result, error) {
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

// enter records a call of an effect and checks that it is allowed.
func (w *observer) enter(ctx context.Context, req action.Request) (attempt int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := req.Run.Path
	step := w.mirror[path]
	this := call{w.generation, path, step.Attempt}
	w.calls[this]++
	switch {
	case !w.announced[this]:
		w.problem("%s is executed, but its committed status is %q, executing %v", path, step.Status, w.last.Executing)
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

// cancel cancels the run as a user does.
func (w *observer) cancel(runID string) {
	_, err := w.world.runs.Cancel(context.Background(), w.world.actor, runID)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelled = w.cancelled || err == nil
}

// restored compares the stored run with the mirror.
func (w *observer) restored(runID string) {
	snapshot, err := w.world.store.Leases.Snapshot(context.Background(), runID)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || snapshot == nil {
		w.problem("the run cannot be read: %v", err)
		return
	}
	committed, stored := map[string]run.Step{}, map[string]run.Step{}
	// An early end of a run cancels its open steps.
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
		w.problem("the stored state differs from the committed one (-committed +stored):\n%s", diff)
	}
}

// faultyStore is the store of one engine, with the faults of an observer.
type faultyStore struct {
	engine.Store
	observer *observer
	dead     atomic.Bool
}

func (p *faultyStore) Snapshot(ctx context.Context, runID string) (*run.Snapshot, error) {
	if p.dead.Load() {
		return nil, errInjected
	}
	return p.Store.Snapshot(ctx, runID)
}

func (p *faultyStore) Activate(ctx context.Context, wake run.Wake, node string) (lease run.Lease, ok bool, err error) {
	err = p.write(wake.RunID, func() error {
		lease, ok, err = p.Store.Activate(ctx, wake, node)
		return err
	})
	return lease, ok, err
}

func (p *faultyStore) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (committed run.Committed, err error) {
	err = p.write(lease.RunID, func() error {
		committed, err = p.Store.Commit(ctx, lease, of, d)
		if err == nil && committed.Held {
			p.observer.committed(lease.RunID, d)
		}
		return err
	})
	return committed, err
}

// write performs a write with the fault for it, if any.
func (p *faultyStore) write(runID string, do func() error) error {
	if p.dead.Load() {
		return errInjected
	}
	kind := p.observer.next()
	switch kind {
	case crashBefore:
		p.crash(kind)
		return errInjected
	case failBefore:
		return errInjected
	case cancelBefore:
		p.observer.cancel(runID)
	case restart:
		p.observer.crashed <- kind
	}
	err := do()
	switch kind {
	case crashAfter:
		p.crash(kind)
		return errInjected
	case failAfter:
		return errInjected
	case cancelAfter:
		p.observer.cancel(runID)
	}
	return err
}

func (p *faultyStore) crash(kind string) {
	p.dead.Store(true)
	p.observer.crashed <- kind
}
