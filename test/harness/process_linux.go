package harness

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// OpenFiles returns the number of open files and connections of the server.
func (s *Server) OpenFiles(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// PeakMemory returns the most resident memory that the server had so far, in bytes.
func (s *Server) PeakMemory(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(peak, &kib); err != nil {
		t.Fatalf("VmHWM: %v", err)
	}
	return kib << 10
}
