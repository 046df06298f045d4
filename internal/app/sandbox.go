package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	"github.com/stepmill/stepmill/internal/sandbox"
)

// Memory limits of a script in MiB. The interpreter itself needs the minimum.
const (
	defaultMemory = 64
	minMemory     = 16
)

// newSandbox creates the pool of processes that run scripts. Each is this
// executable with the sandbox command.
func (s *Server) newSandbox() (*sandbox.Pool, error) {
	memory := cmp.Or(s.config.JSMemory, defaultMemory)
	if memory < minMemory {
		return nil, fmt.Errorf("--js-memory must be at least %d", minMemory)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the stepmill executable: %w", err)
	}
	size := s.config.JSProcesses
	if size < 0 {
		return nil, errors.New("--js-processes must not be negative")
	}
	if size == 0 {
		size = max(2, runtime.NumCPU())
	}
	return sandbox.New(sandbox.Config{
		Command: []string{program, "sandbox", "--memory", strconv.Itoa(memory)}, Size: size, Log: s.log,
	}), nil
}

// Sandbox runs scripts that a server sends, each with at most memory MiB. It
// reads neither data nor settings.
func Sandbox(in io.Reader, out io.Writer, memory int) error {
	return sandbox.Serve(in, out, int64(max(memory, minMemory))<<20)
}
