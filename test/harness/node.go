package harness

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// StartNode starts a server that is written for Node, which ends with the test. It
// returns the line that the server prints when it is ready.
func StartNode(t testing.TB, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe() // it exits when this is closed
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
