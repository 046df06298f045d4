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

	"github.com/stepmill/stepmill/test/postgres"
)

const endVariable = "STEPMILL_TEST_END"

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"passed", "failed", "panicked", "timed out", "killed"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			dir := temporary(t)
			cmd := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessThatEnds$", "-test.v", "-test.timeout=15s")
			cmd.Env = append(os.Environ(), endVariable+"="+end, "TMPDIR="+dir)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			lines := bufio.NewScanner(out)
			var text strings.Builder
			for lines.Scan() {
				fmt.Fprintln(&text, lines.Text())
				var pid int
				if n, _ := fmt.Sscanf(lines.Text(), "process %d", &pid); n == 1 {
					pids = append(pids, pid)
				}
				if lines.Text() == "all run" && end == "killed" {
					_ = cmd.Process.Kill()
				}
			}
			// All output has ended: for go test this is the end.
			if err := cmd.Wait(); (err == nil) != (end == "passed") {
				t.Errorf("the process ended with %v\n%s", err, text.String())
			}
			if len(pids) != 2 {
				t.Fatalf("%d servers were started\n%s", len(pids), text.String())
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, 0); err == nil {
					t.Errorf("process %d is left behind", pid)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// temporary is a folder that the user of the servers can reach.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stepmill-leftover-") //nolint:usetesting // only its owner can reach that one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestProcessThatEnds is what the test above runs in another process.
func TestProcessThatEnds(t *testing.T) {
	end := os.Getenv(endVariable)
	if end == "" {
		return
	}
	for _, server := range []*postgres.Server{postgres.Shared(t), postgres.Start(t, postgres.Options{})} {
		fmt.Printf("process %d\n", server.Pid())
	}
	postgres.StartBouncer(t, postgres.BouncerOptions{Server: postgres.Shared(t)})
	fmt.Println("all run")
	switch end {
	case "failed":
		t.Fatal("as wanted")
	case "panicked":
		panic("as wanted")
	case "timed out", "killed":
		time.Sleep(time.Minute)
	}
}
