package postgres_test

import (
	"bufio"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
)

const endVariable = "STEPMILL_TEST_END"

// However a test process ends, its servers and their files are removed before go test
// returns.
func TestServersAreRemovedWithTheProcess(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	ends := lane.Pick([]string{"failed", "panicked", "killed"}, []string{"passed", "failed", "panicked", "timed out", "killed"})
	for _, end := range ends {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			if end != "timed out" {
				endProcess(t, end, 10*time.Minute)
				return
			}
			timeout := 15 * time.Second
			for !endProcess(t, end, timeout) { // the servers must have started before the timeout
				if timeout *= 2; timeout > 5*time.Minute {
					t.Fatal("the servers never started in time")
				}
			}
		})
	}
}

// endProcess starts servers in another process, ends that process in some way, and
// checks that nothing is left behind. It reports whether all servers had started.
func endProcess(t *testing.T, end string, timeout time.Duration) bool {
	t.Helper()
	dir := temporary(t)
	cmd := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperProcess$", "-test.v", "-test.timeout="+timeout.String())
	cmd.Env = append(os.Environ(), endVariable+"="+end, "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var (
		pids    []int
		started bool
		text    strings.Builder
	)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&text, lines.Text())
		var pid int
		if n, _ := fmt.Sscanf(lines.Text(), "process %d", &pid); n == 1 {
			pids = append(pids, pid)
		}
		if lines.Text() == "all started" {
			if started = true; end == "killed" {
				_ = cmd.Process.Kill()
			}
		}
	}
	// The output has ended: now go test would return.
	if err := cmd.Wait(); (err == nil) != (end == "passed") {
		t.Errorf("the process ended with %v\n%s", err, text.String())
	}
	if !started && end != "timed out" {
		t.Fatalf("only %d servers started\n%s", len(pids), text.String())
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is left behind", pid)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return started
}

// temporary makes a directory that the user of the servers can access.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stepmill-leftover-") //nolint:usetesting // only its owner can access t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestHelperProcess runs in another process, for the test above.
func TestHelperProcess(t *testing.T) {
	end := os.Getenv(endVariable)
	if end == "" {
		return
	}
	for _, server := range []*postgres.Server{postgres.Shared(t), postgres.Start(t, postgres.Options{})} {
		fmt.Printf("process %d\n", server.Pid())
	}
	postgres.StartBouncer(t, postgres.BouncerOptions{Server: postgres.Shared(t)})
	fmt.Println("all started")
	switch end {
	case "failed":
		t.Fatal("on purpose")
	case "panicked":
		panic("on purpose")
	case "timed out", "killed":
		select {}
	}
}
