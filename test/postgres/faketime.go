package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// fakeTime returns the environment in which libfaketime sets the clock of the server. The
// library replaces functions of the C library, so it has no effect on programs in Go,
// which do not use them. The monotonic clock stays right.
func (s *Server) fakeTime() ([]string, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if named := os.Getenv("STEPMILL_TEST_FAKETIME"); named != "" {
		found = []string{named}
	}
	if err != nil || len(found) == 0 {
		return nil, errors.Join(errors.New("libfaketime is missing: install libfaketime (Debian, Ubuntu), or set STEPMILL_TEST_FAKETIME to the path of libfaketime.so.1"), err)
	}
	if err := s.setClock(0); err != nil {
		return nil, err
	}
	return []string{
		"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + s.clockFile(), "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
	}, nil
}

func (s *Server) clockFile() string { return filepath.Join(s.dir, "clock") }

func (s *Server) setClock(ahead time.Duration) error {
	next := s.clockFile() + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d", int64(ahead.Seconds())), 0o644); err != nil {
		return err
	}
	return os.Rename(next, s.clockFile())
}

// SetClock sets the clock of a server with FakeTime, in whole seconds ahead of the
// machine's clock.
func (s *Server) SetClock(tb testing.TB, ahead time.Duration) {
	tb.Helper()
	if err := s.setClock(ahead); err != nil {
		tb.Fatal(err)
	}
}
