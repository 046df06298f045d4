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
	path string
	safe bool
}

// countStart notes that a start is under way, before anything can go wrong.
func countStart(dir string, leaveSafeMode bool) (*starts, error) {
	s := &starts{path: filepath.Join(dir, startsFile)}
	count := 0
	text, err := os.ReadFile(s.path)
	switch {
	case leaveSafeMode || errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		// A count that cannot be read was being written when the process died.
		count, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if s.safe = count >= startsToSafeMode; s.safe {
		return s, nil
	}
	if err := os.WriteFile(s.path, []byte(strconv.Itoa(count+1)+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("count the start: %w", err)
	}
	return s, nil
}

// ready forgets the starts before this one. Safe mode stays until it is left.
func (s *starts) ready() error {
	if s.safe {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

var errSafeMode = fmt.Errorf("safe mode: the last %d starts ended before the service was ready, so runs are accepted but not executed; "+
	"once the cause is gone, start it with --leave-safe-mode", startsToSafeMode)
