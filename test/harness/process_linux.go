package harness

import (
	"fmt"
	"os"
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
