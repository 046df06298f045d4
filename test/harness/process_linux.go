package harness

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// Memory is the resident memory of the server in bytes.
func (s *Server) Memory(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	match := residentLine.FindSubmatch(text)
	if match == nil {
		t.Fatalf("process %d has no memory: %v", s.Pid(), err)
	}
	kilobytes, _ := strconv.ParseInt(string(match[1]), 10, 64)
	return kilobytes << 10
}

// OpenFiles is how many files and connections the server has open.
func (s *Server) OpenFiles(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
