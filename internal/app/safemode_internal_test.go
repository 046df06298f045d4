package app

import (
	"os"
	"path/filepath"
	"testing"
)

// begin records a start, which counts as a crash unless it is ready or undone.
func begin(t *testing.T, dir string, leave bool) starts {
	t.Helper()
	s, err := recordStart(dir, leave)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSafeMode(t *testing.T) {
	t.Parallel()
	crashes := func(starts) error { return nil }
	for _, test := range []struct {
		name string
		ends func(starts) error
		safe bool
	}{
		{"after crashes", crashes, true},
		{"after successful starts", starts.ready, false},
		{"after starts that failed with an error", starts.undo, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i := range startsBeforeSafeMode {
				s := begin(t, dir, false)
				if s.safe {
					t.Fatalf("start %d is in safe mode", i+1)
				}
				if err := test.ends(s); err != nil {
					t.Fatal(err)
				}
			}
			if s := begin(t, dir, false); s.safe != test.safe {
				t.Errorf("safe mode: %v", s.safe)
			}
		})
	}
}

func TestSafeModeLastsUntilLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range startsBeforeSafeMode {
		begin(t, dir, false)
	}
	for range 2 {
		s := begin(t, dir, false)
		if err := s.ready(); err != nil || !s.safe {
			t.Fatalf("safe mode: %v, %v", s.safe, err)
		}
	}
	if begin(t, dir, true).safe || begin(t, dir, false).safe {
		t.Error("still in safe mode after leaving it")
	}
}

func TestUnreadableStartCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, startsFile), []byte("\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if begin(t, dir, false).safe {
		t.Error("safe mode")
	}
}
