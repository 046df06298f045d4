package local

import "github.com/stepmill/stepmill/internal/run"

// fair is a queue that takes turns between workspaces: one with a single run is
// not behind another's ten thousand. Within a workspace it is first in, first
// out. A run is in it at most once, with its latest wake-up.
type fair struct {
	lines  map[string]*line
	turns  []string            // workspaces with something queued, next first
	wakes  map[string]run.Wake // of the runs that are queued
	length int
}

// line holds the ids of the runs of one workspace.
type line struct {
	runs []string
	head int
}

func newFair() fair { return fair{lines: map[string]*line{}, wakes: map[string]run.Wake{}} }

// push queues a wake-up, or answers false when the run is queued already.
func (f *fair) push(w run.Wake) bool {
	if queued, ok := f.wakes[w.RunID]; ok {
		if w.Epoch > queued.Epoch {
			f.wakes[w.RunID] = w
		}
		return false
	}
	f.wakes[w.RunID] = w
	f.length++
	l := f.lines[w.WorkspaceID]
	if l == nil {
		l = &line{}
		f.lines[w.WorkspaceID] = l
		f.turns = append(f.turns, w.WorkspaceID)
	}
	l.runs = append(l.runs, w.RunID)
	return true
}

func (f *fair) pop() (run.Wake, bool) {
	if len(f.turns) == 0 {
		return run.Wake{}, false
	}
	workspace := f.turns[0]
	f.turns = f.turns[1:]
	l := f.lines[workspace]
	id := l.runs[l.head]
	l.head++
	if l.head == len(l.runs) {
		delete(f.lines, workspace)
	} else {
		f.turns = append(f.turns, workspace)
		l.compact()
	}
	w := f.wakes[id]
	delete(f.wakes, id)
	f.length--
	return w, true
}

// compact gives back the room of what was taken, once that is most of it.
func (l *line) compact() {
	if l.head > 64 && l.head*2 > len(l.runs) {
		l.runs = append([]string(nil), l.runs[l.head:]...)
		l.head = 0
	}
}
