package run

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Ending tells that a run has ended.
type Ending struct {
	WorkspaceID string
	RunID       string
	Status      Status
	// Detail is the whole run, where its end and all its steps were written at
	// once; else nil, and it has to be read.
	Detail *Detail
}

// WholeEnd is a run as its only decision leaves it: nobody needs to read what
// was just written. It is nil for a run that had been written about before, or
// whose end changes what is not in the decision.
func WholeEnd(of Run, d Decision) *Detail {
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

// Watchers lets many callers wait for the ends of runs in this process.
type Watchers struct {
	mu    sync.Mutex
	waits map[string][]chan *Detail
}

// NewWatchers makes an empty set.
func NewWatchers() *Watchers { return &Watchers{waits: map[string][]chan *Detail{}} }

// Watch implements Endings.
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

// Watched lists the runs that somebody watches.
func (w *Watchers) Watched() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.waits))
}

// Ended wakes everybody who watches the run, with the whole of it where it is
// known.
func (w *Watchers) Ended(runID string, whole *Detail) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ended := range w.waits[runID] {
		ended <- whole
		close(ended)
	}
	delete(w.waits, runID)
}
