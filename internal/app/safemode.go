package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A service that dies again and again before it is ready would die for ever if
// it went on with the work that kills it. After so many starts in a row that
// did not come to that point, it starts without executing runs.
const startsToSafeMode = 5

// startsFile counts, in the data directory, the starts that were never ready.
const startsFile = "unready-starts"

// starts is that count.
type starts struct {
	path   string
	before int // without this start
	safe   bool
}

// countStart notes that a start is under way, before anything can go wrong.
func countStart(dir string, leaveSafeMode bool) (starts, error) {
	s := starts{path: filepath.Join(dir, startsFile)}
	text, err := os.ReadFile(s.path)
	switch {
	case leaveSafeMode || errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return starts{}, err
	default:
		// A count that cannot be read was being written when the process died.
		s.before, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if s.safe = s.before >= startsToSafeMode; s.safe {
		return s, nil
	}
	if err := s.write(s.before + 1); err != nil {
		return starts{}, err
	}
	return s, nil
}

func (s starts) write(count int) error {
	if err := os.WriteFile(s.path, []byte(strconv.Itoa(count)+"\n"), 0o600); err != nil {
		return fmt.Errorf("count the start: %w", err)
	}
	return nil
}

// gaveUp takes the start back: the service has said what is wrong and ended by
// itself, before it executed anything.
func (s starts) gaveUp() error {
	if s.safe {
		return nil
	}
	return s.write(s.before)
}

// ready forgets the starts before this one. Safe mode stays until it is left.
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
	"once the cause is gone, start it with --leave-safe-mode", startsToSafeMode)
