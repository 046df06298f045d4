package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// A server is killed at a random moment of its first start. The next one starts, and an
// operator can get an admin key.
func TestKillDuringFirstStart(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	rounds := lane.Pick(3, 8)
	random := harness.Random(harness.Seed(t), 0)
	dir := t.TempDir()
	whole := harness.StartWith(t, harness.Options{Dir: filepath.Join(dir, "whole"), EmptyDatabase: true})
	whole.Stop(t)
	printed := 0
	for range rounds {
		data := filepath.Join(t.TempDir(), "data")
		s := harness.StartProcess(t, harness.Options{Dir: data, EmptyDatabase: true})
		time.Sleep(time.Duration(random.Int64N(int64(whole.StartupTime))))
		s.Kill(t)
		key := s.PrintedKey()

		again := harness.StartProcess(t, harness.Options{Dir: data})
		again.AwaitListening(t)
		again.AwaitReady(t)
		if key == "" {
			key = again.PrintedKey()
		}
		if key != "" {
			printed++
		} else {
			// The key was made and never printed: the operator makes another.
			result := harness.Run(t, nil, append(harness.DataArgs(t, data), "keys", "create", "--name", "second", "--scope", "admin")...)
			key = strings.TrimSpace(result.Stdout)
		}
		again.With(key).Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "works"})
		again.Stop(t)
		checkTables(t, openCopy(t, data), "")
	}
	t.Logf("%d of %d printed a key", printed, rounds)
}

// A failed first start does not print the admin key, and the next start does.
func TestFailedFirstStartKeepsAdminKey(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	other := harness.Start(t, t.TempDir())
	data := filepath.Join(t.TempDir(), "data")
	taken := strings.TrimPrefix(other.URL, "http://")
	result := harness.Run(t, nil, append(harness.DataArgs(t, data), "serve", "--listen", taken)...)
	if result.Code == 0 || !strings.Contains(result.Stderr, taken) || result.Stdout != "" {
		t.Errorf("server on a used port: exit code %d: %s%s", result.Code, result.Stdout, result.Stderr)
	}
	s := harness.StartProcess(t, harness.Options{Dir: data})
	s.AwaitListening(t)
	s.AwaitReady(t)
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
