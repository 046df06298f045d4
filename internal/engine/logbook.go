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
	// maxRunLog bounds the logs of all steps of a run, in bytes.
	maxRunLog = 8 << 20
)

// record takes the lines of a step into the log of its run, as long as there is
// room.
func (d *driver) record(lines []run.LogLine) {
	for _, line := range lines {
		before := d.logged
		d.logged += len(line.Message) + len(line.Path)
		switch {
		case before > maxRunLog:
			return
		case d.logged > maxRunLog:
			line.Level, line.Message = string(action.Warn), fmt.Sprintf("the logs of a run have at most %d bytes: what follows is left out", maxRunLog)
		}
		d.logs = append(d.logs, line)
	}
}

// logbook collects what one attempt of a step writes to its log. An action that
// is left to itself may still write: what comes after take is dropped.
type logbook struct {
	path    string
	attempt int
	mask    *mask.Masker

	mu    sync.Mutex
	lines []run.LogLine
	count int
	shut  bool
}

func (l *logbook) write(level action.Level, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	switch {
	case l.shut || l.count > maxLogLines:
		return
	case l.count == maxLogLines:
		level, message = action.Warn, fmt.Sprintf("the log of a step has at most %d lines: what follows is left out", maxLogLines)
	}
	// Masked first: of a secret that is cut in two, neither part is found.
	l.lines = append(l.lines, run.LogLine{
		Path: l.path, Attempt: l.attempt, At: clock.Now(), Level: string(level), Message: run.Clip(l.mask.Text(message), maxLogMessage),
	})
}

// take returns the lines and ends the log.
func (l *logbook) take() []run.LogLine {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	return l.lines
}
