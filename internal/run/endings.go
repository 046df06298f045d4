package run

import (
	"maps"
	"slices"
	"sync"
)

// Watchers lets many callers wait for the ends of runs in this process.
type Watchers struct {
	mu       sync.Mutex
	channels map[string]*watch
}

type watch struct {
	done  chan struct{}
	count int
}

// NewWatchers makes an empty set.
func NewWatchers() *Watchers { return &Watchers{channels: map[string]*watch{}} }

// Watch returns a channel that is closed when the run ends, and a function
// that stops watching.
func (w *Watchers) Watch(runID string) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.channels[runID]
	if entry == nil {
		entry = &watch{done: make(chan struct{})}
		w.channels[runID] = entry
	}
	entry.count++
	return entry.done, func() { w.leave(runID, entry) }
}

func (w *Watchers) leave(runID string, entry *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry.count--
	if entry.count == 0 && w.channels[runID] == entry {
		delete(w.channels, runID)
	}
}

// Watched lists the runs that somebody watches.
func (w *Watchers) Watched() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.channels))
}

// Ended wakes everybody who watches the run.
func (w *Watchers) Ended(runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.channels[runID]; entry != nil {
		close(entry.done)
		delete(w.channels, runID)
	}
}
