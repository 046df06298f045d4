package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// startsBeforeSafeMode is how many starts in a row may crash before the service
// is ready. The next one does not execute runs, because one of them may be what
// crashes it.
const startsBeforeSafeMode = 5

// startsFile, in the data directory, counts the starts that were never ready.
const startsFile = "unready-starts"

// starts is the count in startsFile.
type starts struct {
	path   string
	before int // not counting this start
	safe   bool
}

// recordStart counts a start before anything can go wrong.
func recordStart(dir string, leaveSafeMode bool) (starts, error) {
	s := starts{path: filepath.Join(dir, startsFile)}
	text, err := os.ReadFile(s.path)
	switch {
	case leaveSafeMode || errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return starts{}, err
	default:
		// An unreadable count was being written when the process died.
		s.before, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if s.safe = s.before >= startsBeforeSafeMode; s.safe {
		return s, nil
	}
	if err := s.write(s.before + 1); err != nil {
		return starts{}, err
	}
	return s, nil
}

// write writes the count. On a full disk it does nothing: reads can still be
// served, so the start must not fail.
func (s starts) write(count int) error {
	if err := os.WriteFile(s.path, []byte(strconv.Itoa(count)+"\n"), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("record the start: %w", err)
	}
	return nil
}

// undo uncounts a start that ended with an error message before it executed any
// run.
func (s starts) undo() error {
	if s.safe {
		return nil
	}
	return s.write(s.before)
}

// ready resets the count. Safe mode stays on until --leave-safe-mode.
func (s starts) ready() error {
	if s.safe || s.path == "" {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

var errSafeMode = fmt.Errorf("safe mode: the last %d starts ended before the service was ready, so runs are accepted but not executed; "+
	"fix the cause, then start the service with --leave-safe-mode", startsBeforeSafeMode)
