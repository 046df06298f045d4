package app

import (
	"os"
	"path/filepath"
	"testing"
)

// begin is a start that dies unless something else is said of it.
func begin(t *testing.T, dir string, leave bool) starts {
	t.Helper()
	s, err := countStart(dir, leave)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSafeMode(t *testing.T) {
	t.Parallel()
	dies := func(starts) error { return nil }
	for _, test := range []struct {
		name string
		ends func(starts) error
		safe bool
	}{
		{"after starts that died", dies, true},
		{"after starts that were ready", (starts).ready, false},
		{"after starts that gave up with a reason", (starts).gaveUp, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i := range startsToSafeMode {
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

func TestSafeModeStaysUntilItIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range startsToSafeMode {
		begin(t, dir, false)
	}
	for range 2 {
		s := begin(t, dir, false)
		if err := s.ready(); err != nil || !s.safe {
			t.Fatalf("safe mode: %v, %v", s.safe, err)
		}
	}
	if begin(t, dir, true).safe || begin(t, dir, false).safe {
		t.Error("it was left and is there again")
	}
}

func TestACountThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, startsFile), []byte("\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if begin(t, dir, false).safe {
		t.Error("safe mode")
	}
}
