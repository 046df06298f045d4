package crash_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

const mib = 1 << 20

// limits are the limits of the product that a test reaches. The gate uses smaller ones,
// which only the build with failpoints has.
type limits struct {
	log   int64
	stall time.Duration
	env   []string
}

func pickLimits() limits {
	l := limits{log: lane.Pick[int64](8*mib, 256*mib), stall: lane.Pick(5*time.Second, 30*time.Second)}
	if !lane.Long() {
		l.env = []string{fmt.Sprintf("FP_LOG_LIMIT=%d", l.log), fmt.Sprintf("FP_STALL_LIMIT=%d", l.stall)}
	}
	return l
}

// harmless is a failpoint that is never reached. It selects the build with failpoints.
const harmless = "at_start@nobody:exit"

// start starts a server with these limits.
func (l limits) start(t *testing.T, dir, failpoint string, args ...string) *harness.Server {
	t.Helper()
	if failpoint == "" && !lane.Long() {
		failpoint = harmless
	}
	return harness.StartWith(t, harness.Options{Dir: dir, Env: l.env, Failpoint: failpoint, Args: args})
}

// logSize returns the size of the write-ahead log of a server.
func logSize(s *harness.Server) int64 {
	info, err := os.Stat(filepath.Join(s.Dir, "stepmill.db-wal"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// writeMiB starts runs with a payload of 1 MiB each, and returns the largest size that the
// log had.
func writeMiB(t *testing.T, s *harness.Server, workflow string, n int64) (largest int64) {
	t.Helper()
	payload := map[string]any{"payload": map[string]any{"text": strings.Repeat("x", mib-100)}}
	for range n {
		s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", payload)
		largest = max(largest, logSize(s))
	}
	return largest
}

// stalledBackup is `stepmill backup -` whose output nobody reads.
type stalledBackup struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	exited chan struct{}
}

// stallBackup starts a backup, and stops reading its output after the first byte.
func stallBackup(t *testing.T, l limits, dir string) *stalledBackup {
	t.Helper()
	binary, err := harness.FailpointBinary()
	if lane.Long() {
		binary, err = harness.Binary()
	}
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	b := &stalledBackup{cmd: exec.CommandContext(t.Context(), binary, "backup", "-", "--data-dir", dir), exited: make(chan struct{})}
	b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr = harness.Environ(l.env...), write, &b.stderr
	err = b.cmd.Start()
	_ = write.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = b.cmd.Wait()
		close(b.exited)
	}()
	if _, err := read.Read(make([]byte, 1)); err != nil {
		<-b.exited
		t.Fatalf("the backup has no output: %v\n%s", err, &b.stderr)
	}
	return b
}

// awaitError waits until the backup has failed, and returns what it printed.
func (b *stalledBackup) awaitError(t *testing.T) string {
	t.Helper()
	select {
	case <-b.exited:
	case <-time.After(timeout):
		t.Fatal("the backup does not end")
	}
	if code := b.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("the backup exited with %d: %s", code, &b.stderr)
	}
	return b.stderr.String()
}

// copies returns the temporary copies of the database that backups are made from.
func copies(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "stepmill.db.copy-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkBackup takes a backup and restores it.
func checkBackup(t *testing.T, dir string) {
	t.Helper()
	file, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	if result := harness.Run(t, nil, "backup", file, "--data-dir", dir); result.Code != 0 {
		t.Fatalf("backup: exit code %d: %s", result.Code, result.Stderr)
	}
	if result := harness.Run(t, nil, "restore", file, "--data-dir", restored); result.Code != 0 {
		t.Fatalf("restore: exit code %d: %s", result.Code, result.Stderr)
	}
	checkTables(t, openCopy(t, restored), "")
}

// While a client reads nothing of a backup, the log stays below its limit. The backup ends
// with an error, and if the server is killed meanwhile, nothing of it is left.
func TestStalledBackup(t *testing.T) {
	harness.EmbeddedOnly(t, "the write-ahead log")
	t.Parallel()
	l := pickLimits()
	s := l.start(t, t.TempDir(), "")
	workflow := flow.Define(t, s.Client, flow.Set("a", 1))
	writeMiB(t, s, workflow, 4) // more than pipes and sockets buffer

	stalled := stallBackup(t, l, s.Dir)
	if largest := writeMiB(t, s, workflow, 2*l.log/mib); largest > l.log {
		t.Errorf("the log had %d bytes, %d are allowed", largest, l.log)
	}
	if printed, want := stalled.awaitError(t), fmt.Sprintf("made no progress for %s: its output is not being read", l.stall); !strings.Contains(printed, want) {
		t.Errorf("the backup printed %q, want %q", printed, want)
	}
	if body := s.Expect(t, http.StatusOK, "GET", "/readyz", nil).Body; !strings.Contains(string(body), `"warnings":[]`) {
		t.Errorf("/readyz: %s", body)
	}
	harness.Eventually(t, "the copy is removed", func() bool { return len(copies(t, s.Dir)) == 0 })
	checkBackup(t, s.Dir)

	stalled = stallBackup(t, l, s.Dir)
	s.Kill(t)
	if printed := stalled.awaitError(t); printed == "" {
		t.Error("the backup did not say why it failed")
	}
	key := s.Key
	s = l.start(t, s.Dir, "")
	s.Key = key
	if left := copies(t, s.Dir); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	checkBackup(t, s.Dir)
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// A backup without a server ends too. It would keep a server from starting.
func TestStalledBackupWithoutServer(t *testing.T) {
	harness.EmbeddedOnly(t, "backups of PostgreSQL are made with its own tools")
	t.Parallel()
	l := pickLimits()
	s := l.start(t, t.TempDir(), "")
	writeMiB(t, s, flow.Define(t, s.Client, flow.Set("a", 1)), 4)
	s.Stop(t)
	stalled := stallBackup(t, l, s.Dir)
	if printed := stalled.awaitError(t); !strings.Contains(printed, "its output is not being read") {
		t.Errorf("the backup printed %q", printed)
	}
	restart(t, s).Stop(t)
}

// A server is killed while it copies the database for a backup.
func TestKillDuringCopy(t *testing.T) {
	harness.EmbeddedOnly(t, "backups of PostgreSQL are made with its own tools")
	t.Parallel()
	l := pickLimits()
	s := l.start(t, t.TempDir(), "mid_copy:kill:#3")
	writeMiB(t, s, flow.Define(t, s.Client, flow.Set("a", 1)), 4)
	result := harness.Run(t, nil, "backup", filepath.Join(t.TempDir(), "backup"), "--data-dir", s.Dir)
	if result.Code != 1 || !strings.Contains(result.Stderr, "the server stopped") {
		t.Errorf("backup: exit code %d: %s", result.Code, result.Stderr)
	}
	s.Wait(t)
	if left := copies(t, s.Dir); len(left) != 1 {
		t.Errorf("the kill came too early or too late: %q", left)
	}
	s = restart(t, s)
	if left := copies(t, s.Dir); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	checkBackup(t, s.Dir)
	s.Stop(t)
}

// A reader that holds the log beyond its limit is named in the log, in the metrics and in
// /readyz, while everything goes on. When it is over, the log shrinks, also after a kill.
func TestLogExceedsLimit(t *testing.T) {
	harness.EmbeddedOnly(t, "the write-ahead log")
	t.Parallel()
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("kill=%t", kill), func(t *testing.T) {
			t.Parallel()
			l := pickLimits()
			l.env = append(l.env, "FP_CHECK_LIMIT=0")
			dir, hold := t.TempDir(), filepath.Join(t.TempDir(), "hold")
			s := l.start(t, dir, "")
			workflow, key := flow.Define(t, s.Client, flow.Set("a", 1)), s.Key
			// The next start checks the database, unless the log has just been truncated.
			harness.Eventually(t, "a kill leaves a log behind", func() bool {
				if s.Exited() {
					s = l.start(t, dir, "")
					s.Key = key
				}
				writeMiB(t, s, workflow, 1)
				s.Kill(t)
				return logSize(s) > 0
			})
			if err := os.WriteFile(hold, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			const message = "cannot be truncated because of the check of the database after an unclean stop"
			s = harness.StartWith(t, harness.Options{
				Dir: dir, Env: l.env, Failpoint: "during_check:block=" + hold, Args: []string{"--metrics-listen", "127.0.0.1:0"}, CountLines: []string{message},
			})
			s.Key = key
			harness.Eventually(t, "the check holds the log", func() bool {
				_, err := os.Stat(hold + ".reached")
				return err == nil
			})
			metric := func(value string) bool {
				text := s.Metrics(t).Expect(t, http.StatusOK, "GET", "/metrics", nil).Body
				return strings.Contains(string(text), `stepmill_warnings{reason="log_size"} `+value+"\n")
			}
			if !metric("0") {
				t.Error("the metric warns before anything has happened")
			}
			harness.Eventually(t, "/readyz names what holds the log", func() bool {
				writeMiB(t, s, workflow, 1)
				return strings.Contains(string(s.Expect(t, http.StatusOK, "GET", "/readyz", nil).Body), message)
			})
			if size := logSize(s); size <= l.log {
				t.Errorf("it warns of a log of %d bytes", size)
			}
			awaitReadiness(t, s.Metrics(t), http.StatusOK, message)
			if !metric("1") {
				t.Error("the metric does not warn")
			}
			if n := s.CountLogged(message); n != 1 {
				t.Errorf("it was logged %d times", n)
			}
			if kill {
				s.Kill(t)
				s = l.start(t, dir, "")
				s.Key = key
			} else if err := os.Remove(hold); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "the log shrinks while writes go on", func() bool {
				writeMiB(t, s, workflow, 1)
				body := s.Expect(t, http.StatusOK, "GET", "/readyz", nil).Body
				return logSize(s) <= l.log && strings.Contains(string(body), `"warnings":[]`)
			})
			s.Stop(t)
			checkTables(t, openCopy(t, dir), "")
		})
	}
}
