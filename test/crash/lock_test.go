package crash_test

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// refusalTime is how soon a second server must have said that it does not start.
const refusalTime = 2 * time.Second

// expectRefusal starts a server that must not start, and say why.
func expectRefusal(t *testing.T, dir string, env []string, says ...string) harness.Result {
	t.Helper()
	result := harness.Run(t, env, append(harness.Where(t, dir), "serve", "--listen", "127.0.0.1:0")...)
	if result.Code == 0 {
		t.Error("exit code 0, want a failure")
	}
	if result.Stdout != "" {
		t.Errorf("a server that does not start printed %q", result.Stdout)
	}
	for _, part := range says {
		if !strings.Contains(result.Stderr, part) {
			t.Errorf("the message does not contain %q: %s", part, result.Stderr)
		}
	}
	if lines := strings.Count(result.Stderr, "\n"); lines != 1 {
		t.Errorf("the message has %d lines: %s", lines, result.Stderr)
	}
	return result
}

// A data directory has one server, under whatever name it is reached.
func TestSecondServerRefused(t *testing.T) {
	harness.EmbeddedOnly(t, "the lock of a data directory; nodes share a database")
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	does := chain{{"add", 1}, {"wait", 500}, {"times", 2}}
	id := createWorkflow(t, s.Client, "first", does)
	run := startRun(t, s.Client, id, 1).ID

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Dir, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{s.Dir, link, filepath.Join(s.Dir, "..", filepath.Base(s.Dir))} {
		result := expectRefusal(t, dir, nil, "another Stepmill server", dir, "--data-dir")
		if result.Took > refusalTime {
			t.Errorf("it took %v to say so, more than %v", result.Took, refusalTime)
		}
	}
	s.Expect(t, 200, "GET", "/readyz", nil)
	for _, v := range does.violations(awaitEnd(t, s.Client, run, 20*time.Second)) {
		t.Error(v)
	}
	startRun(t, s.Client, id, 2)
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
	restart(t, s).Expect(t, 200, "GET", "/v1/runs/"+run, nil)
}

// Without the master key that sealed the data a server does not start, says so,
// and leaves everything as it is.
func TestWrongMasterKey(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), egress)
	id := createWorkflow(t, s.Client, "kept", chain{{"add", 1}})
	s.Stop(t)
	file := filepath.Join(s.Dir, "master.key")
	right, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := make([]byte, 32)
	_, _ = rand.Read(other)
	wrong := base64.StdEncoding.EncodeToString(other)
	t.Run("another key in the file", func(t *testing.T) {
		write(wrong + "\n")
		expectRefusal(t, s.Dir, nil, "the master key does not fit this data")
	})
	t.Run("no key in the file", func(t *testing.T) {
		write("not a key\n")
		expectRefusal(t, s.Dir, nil, file, "32 bytes")
	})
	t.Run("another key in the environment", func(t *testing.T) {
		write(string(right))
		expectRefusal(t, s.Dir, []string{"STEPMILL_MASTER_KEY=" + wrong}, "the master key does not fit this data")
	})
	t.Run("no file", func(t *testing.T) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		missing := "missing"
		if harness.OnPostgres() {
			missing = "there is no master key"
		}
		expectRefusal(t, s.Dir, nil, file, missing, "--master-key-file")
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("a new master key was made for old data")
		}
		result := harness.Run(t, nil, append(harness.Where(t, s.Dir), "keys", "list")...)
		if result.Code == 0 || !strings.Contains(result.Stderr, file) || !strings.Contains(result.Stderr, missing) {
			t.Errorf("a command without the master key: exit code %d: %s", result.Code, result.Stderr)
		}
	})
	write(string(right))
	restart(t, s, egress).Expect(t, 200, "GET", "/v1/workflows/"+id, nil)
}
