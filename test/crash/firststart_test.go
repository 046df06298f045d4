package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

const firstStartRounds = 8

// A server is killed during its very first start, at any point of it. The next
// one starts, and there is a way in.
func TestKillDuringFirstStart(t *testing.T) {
	seed := harness.Seed(t)
	random := harness.Random(seed, 0)
	dir := t.TempDir()
	whole := harness.Start(t, filepath.Join(dir, "whole"))
	whole.Stop(t)
	shown := 0
	for range firstStartRounds {
		data := filepath.Join(t.TempDir(), "data")
		s, err := harness.Spawn(harness.Options{Dir: data})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close(t) })
		time.Sleep(time.Duration(random.Int64N(int64(whole.Ready))))
		s.Kill(t)
		key := s.PrintedKey()

		again, err := harness.Spawn(harness.Options{Dir: data})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { again.Close(t) })
		if err := again.AwaitReadyLine(); err != nil {
			t.Fatal(err)
		}
		again.Expect(t, 200, "GET", "/readyz", nil)
		if key == "" {
			key = again.PrintedKey()
		}
		if key != "" {
			shown++
		} else {
			// It was made and never shown: the person at the machine makes another.
			result := harness.Run(t, nil, append(harness.Where(t, data), "keys", "create", "--name", "second", "--scope", "admin")...)
			key = strings.TrimSpace(result.Stdout)
		}
		again.With(key).Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "works"})
		again.Stop(t)
		checkTables(t, checkFile(t, data), "")
	}
	t.Logf("%d of %d showed a key", shown, firstStartRounds)
}

// A first start that fails has not used up the one showing of the first key.
func TestFirstKeyIsNotLost(t *testing.T) {
	t.Parallel()
	other := harness.Start(t, t.TempDir())
	data := filepath.Join(t.TempDir(), "data")
	taken := strings.TrimPrefix(other.URL, "http://")
	result := harness.Run(t, nil, append(harness.Where(t, data), "serve", "--listen", taken)...)
	if result.Code == 0 || !strings.Contains(result.Stderr, taken) || result.Stdout != "" {
		t.Errorf("a server on a port that is taken: exit code %d: %s%s", result.Code, result.Stdout, result.Stderr)
	}
	s, err := harness.Spawn(harness.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	if err := s.AwaitReadyLine(); err != nil {
		t.Fatal(err)
	}
	s.Expect(t, 200, "GET", "/readyz", nil)
	s.With(s.AwaitKey(t)).Expect(t, 200, "GET", "/v1/workflows", nil)
	files := []string{"master.key", "stepmill.db"}
	if harness.OnPostgres() {
		files = nil
	}
	for _, name := range files {
		info, err := os.Stat(filepath.Join(data, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", name, mode)
		}
	}
}
