package run

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Completion announces that a run has ended.
type Completion struct {
	WorkspaceID string
	RunID       string
	Status      Status
	// Detail is the final state of the run if its only commit wrote all of it;
	// otherwise nil, and the run has to be read.
	Detail *Detail
}

// CompletedDetail returns the final state of a run whose only decision is d, so that
// it need not be read back. It returns nil for a run with earlier commits, or whose
// end changes rows that are not in the decision.
func CompletedDetail(of Run, d Decision) *Detail {
	if d.Rev != 1 || d.Finish == nil || d.Finish.CutShort || of.RetryOf != "" {
		return nil
	}
	of.Status, of.FinishedAt, of.Error = d.Finish.Status, &d.Finish.At, d.Finish.Error
	whole := &Detail{Run: of, Steps: make([]Step, len(d.Steps)), Attempts: append([]Attempt{}, d.Attempts...)}
	for i, step := range d.Steps {
		step.Rev = d.Rev
		whole.Steps[i] = step
	}
	slices.SortFunc(whole.Steps, func(a, b Step) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortFunc(whole.Attempts, func(a, b Attempt) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Number, b.Number))
	})
	return whole
}

// Watchers lets callers in this process wait for runs to end.
type Watchers struct {
	mu    sync.Mutex
	waits map[string][]chan *Detail
}

// NewWatchers returns an empty set of watchers.
func NewWatchers() *Watchers { return &Watchers{waits: map[string][]chan *Detail{}} }

// Watch implements CompletionSource.
func (w *Watchers) Watch(runID string) (<-chan *Detail, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := make(chan *Detail, 1)
	w.waits[runID] = append(w.waits[runID], ended)
	return ended, func() { w.leave(runID, ended) }
}

func (w *Watchers) leave(runID string, ended chan *Detail) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.waits[runID], func(c chan *Detail) bool { return c == ended })
	if w.waits[runID] = left; len(left) == 0 {
		delete(w.waits, runID)
	}
}

// Watched lists the runs that are watched.
func (w *Watchers) Watched() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.waits))
}

// Ended wakes the watchers of a run. They receive its final state if it is not nil.
func (w *Watchers) Ended(runID string, whole *Detail) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ended := range w.waits[runID] {
		ended <- whole
		close(ended)
	}
	delete(w.waits, runID)
}
