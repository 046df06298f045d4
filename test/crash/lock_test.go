package crash_test

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// expectStartFailure starts a server and checks that it fails with a message that
// contains the texts.
func expectStartFailure(t *testing.T, dir string, env []string, says ...string) {
	t.Helper()
	result := harness.Run(t, env, append(harness.DataArgs(t, dir), "serve", "--listen", "127.0.0.1:0")...)
	if result.Code == 0 {
		t.Error("exit code 0, want a failure")
	}
	if result.Stdout != "" {
		t.Errorf("the server printed %q, want nothing", result.Stdout)
	}
	for _, part := range says {
		if !strings.Contains(result.Stderr, part) {
			t.Errorf("the message does not contain %q: %s", part, result.Stderr)
		}
	}
	if lines := strings.Count(result.Stderr, "\n"); lines != 1 {
		t.Errorf("the message has %d lines: %s", lines, result.Stderr)
	}
}

// A data directory allows one server, by whatever path it is opened.
func TestSecondServerIsRejected(t *testing.T) {
	harness.EmbeddedOnly(t, "nodes may share a PostgreSQL database")
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
		expectStartFailure(t, dir, nil, "another Stepmill process", dir, "--data-dir")
	}
	s.Expect(t, 200, "GET", "/readyz", nil)
	for _, v := range does.violations(awaitEnd(t, s.Client, run)) {
		t.Error(v)
	}
	startRun(t, s.Client, id, 2)
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
	restart(t, s).Expect(t, 200, "GET", "/v1/runs/"+run, nil)
}

// Without the right master key a server does not start, says why, and changes nothing.
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
	t.Run("wrong key in the file", func(t *testing.T) {
		write(wrong + "\n")
		expectStartFailure(t, s.Dir, nil, "the master key does not match this data")
	})
	t.Run("invalid key in the file", func(t *testing.T) {
		write("not a key\n")
		expectStartFailure(t, s.Dir, nil, file, "32 bytes")
	})
	t.Run("wrong key in the environment", func(t *testing.T) {
		write(string(right))
		expectStartFailure(t, s.Dir, []string{"STEPMILL_MASTER_KEY=" + wrong}, "the master key does not match this data")
	})
	t.Run("missing file", func(t *testing.T) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		missing := "missing"
		if harness.OnPostgres() {
			missing = "there is no master key"
		}
		expectStartFailure(t, s.Dir, nil, file, missing, "--master-key-file")
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("a new master key was made for existing data")
		}
		result := harness.Run(t, nil, append(harness.DataArgs(t, s.Dir), "keys", "list")...)
		if result.Code == 0 || !strings.Contains(result.Stderr, file) || !strings.Contains(result.Stderr, missing) {
			t.Errorf("keys list without the master key: exit code %d: %s", result.Code, result.Stderr)
		}
	})
	write(string(right))
	restart(t, s, egress).Expect(t, 200, "GET", "/v1/workflows/"+id, nil)
}
