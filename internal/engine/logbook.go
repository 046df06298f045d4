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
	// maxLateMessage limits a line of a step that has a mask before it is clipped.
	maxLateMessage = 16 << 10
	// maxRunLog limits the logs of all steps of a run, in bytes.
	maxRunLog = 8 << 20
)

// stepLog collects the log lines of one attempt of a step. An abandoned action may
// still write; lines after take are dropped.
type stepLog struct {
	path    string
	attempt int
	mask    stepMask
	// late reports that the step has a mask: its lines are clipped when the values are
	// known, because a value that is cut in two would not be found.
	late bool

	mu     sync.Mutex
	lines  []run.LogLine
	count  int
	closed bool
}

// hide sets the mask for the secrets in the lines that follow.
func (l *stepLog) hide(secrets *mask.Masker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mask.secrets = secrets
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
	message = l.mask.Text(message)
	switch {
	case !l.late:
		message = run.Clip(message, maxLogMessage)
	case len(message) > maxLateMessage:
		message = fmt.Sprintf("a line of %d bytes was dropped: the step has a mask, and its lines are limited to %d bytes", len(message), maxLateMessage)
	}
	l.lines = append(l.lines, run.LogLine{Path: l.path, Attempt: l.attempt, At: clock.Now(), Level: string(level), Message: message})
}

// take closes the log and returns its lines without the values that are masked since
// they were written.
func (l *stepLog) take(now stepMask) []run.LogLine {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if now.secrets == l.mask.secrets {
		now.secrets = nil // it was used already
	}
	for i := range l.lines {
		l.lines[i].Message = run.Clip(now.Text(l.lines[i].Message), maxLogMessage)
	}
	return l.lines
}
