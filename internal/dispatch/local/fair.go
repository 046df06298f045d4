package local

import (
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/run"
)

// fair is a queue that takes turns between workspaces: one with a single run is
// not behind another's ten thousand, and none has more runs under way than its
// plan allows. Within a workspace it is first in, first out. A run is in it at
// most once, with its latest wake-up.
type fair struct {
	lines  map[string]*line
	turns  []string            // lines with something queued, next first
	wakes  map[string]run.Wake // of the runs that are queued
	length int
	out    map[string]int // how many runs of each line are under way
}

// line holds the runs of one workspace.
type line struct {
	runs []queued
	head int
}

// queued is a run in a line, and since when it is there.
type queued struct {
	runID string
	since time.Time
}

// suspects is the line of all runs that are executed one at a time.
const suspects = "suspects"

func newFair() fair {
	return fair{lines: map[string]*line{}, wakes: map[string]run.Wake{}, out: map[string]int{}}
}

// lineOf is where a run queues, mostOf how many of that line are under way at a
// time.
func lineOf(w run.Wake) string {
	if w.Isolated() {
		return suspects
	}
	return w.WorkspaceID
}

func mostOf(w run.Wake) int {
	if w.Isolated() {
		return 1
	}
	return w.Plan.Limits().ConcurrentRuns
}

// push queues a wake-up, or answers false when the run is queued already.
func (f *fair) push(w run.Wake, now time.Time) bool {
	if earlier, ok := f.wakes[w.RunID]; ok {
		switch {
		case w.Epoch <= earlier.Epoch:
			return false
		case lineOf(w) == lineOf(earlier):
			f.wakes[w.RunID] = w
			return false
		}
		f.remove(earlier)
	}
	f.wakes[w.RunID] = w
	f.length++
	name := lineOf(w)
	l := f.lines[name]
	if l == nil {
		l = &line{}
		f.lines[name] = l
		f.turns = append(f.turns, name)
	}
	l.runs = append(l.runs, queued{w.RunID, now})
	return true
}

// pop takes the next run of the first line that may have another one under way.
func (f *fair) pop() (run.Wake, bool) {
	for i, name := range f.turns {
		l := f.lines[name]
		w := f.wakes[l.runs[l.head].runID]
		if f.out[name] >= mostOf(w) {
			continue
		}
		f.turns = append(f.turns[:i], f.turns[i+1:]...)
		l.head++
		if l.head == len(l.runs) {
			delete(f.lines, name)
		} else {
			f.turns = append(f.turns, name)
			l.compact()
		}
		delete(f.wakes, w.RunID)
		f.length--
		f.out[name]++
		return w, true
	}
	return run.Wake{}, false
}

// remove takes a run out of its line, which is rare: it has to be looked for.
func (f *fair) remove(w run.Wake) {
	name := lineOf(w)
	l := f.lines[name]
	l.runs = slices.DeleteFunc(l.runs[l.head:], func(q queued) bool { return q.runID == w.RunID })
	l.head = 0
	if len(l.runs) == 0 {
		delete(f.lines, name)
		f.turns = slices.DeleteFunc(f.turns, func(other string) bool { return other == name })
	}
	delete(f.wakes, w.RunID)
	f.length--
}

// done counts a run that was taken as not under way any more.
func (f *fair) done(w run.Wake) {
	name := lineOf(w)
	if f.out[name]--; f.out[name] <= 0 {
		delete(f.out, name)
	}
}

// queued is the number of runs in a line.
func (f *fair) queued(name string) int {
	l := f.lines[name]
	if l == nil {
		return 0
	}
	return len(l.runs) - l.head
}

// oldest is since when the run that was queued first is in a line; zero when all
// lines are empty. The first of a line has been there longest.
func (f *fair) oldest() time.Time {
	var oldest time.Time
	for _, l := range f.lines {
		if since := l.runs[l.head].since; oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// compact gives back the room of what was taken, once that is most of it.
func (l *line) compact() {
	if l.head > 64 && l.head*2 > len(l.runs) {
		l.runs = append([]queued(nil), l.runs[l.head:]...)
		l.head = 0
	}
}
