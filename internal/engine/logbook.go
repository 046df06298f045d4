package engine

import (
	"fmt"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	maxLogLines   = 1000
	maxLogMessage = 2 << 10
	// maxRunLog limits the logs of all steps of a run, in bytes.
	maxRunLog = 8 << 20
)

// stepLog collects the log lines of one attempt of a step. An abandoned action may
// still write; lines after take are dropped.
type stepLog struct {
	path    string
	attempt int
	mask    *mask.Masker

	mu     sync.Mutex
	lines  []run.LogLine
	count  int
	closed bool
}

func (l *stepLog) write(level action.Level, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	switch {
	case l.closed || l.count > maxLogLines:
		return
	case l.count == maxLogLines:
		level, message = action.Warn, fmt.Sprintf("the log of a step is limited to %d lines: further lines are dropped", maxLogLines)
	}
	// Mask before clipping: a secret that is cut in two would not be found.
	l.lines = append(l.lines, run.LogLine{
		Path: l.path, Attempt: l.attempt, At: clock.Now(), Level: string(level), Message: run.Clip(l.mask.Text(message), maxLogMessage),
	})
}

// take returns the lines and closes the log.
func (l *stepLog) take() []run.LogLine {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.lines
}
