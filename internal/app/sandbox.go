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

// What a script may use, in MiB. With less than the minimum the interpreter
// itself has no room.
const (
	defaultMemory = 64
	minMemory     = 16
)

// newSandbox makes the pool of processes that run scripts. They are this very
// program with another command.
func (s *Server) newSandbox() (*sandbox.Pool, error) {
	memory := cmp.Or(s.config.JSMemory, defaultMemory)
	if memory < minMemory {
		return nil, fmt.Errorf("--js-memory must be at least %d", minMemory)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program itself: %w", err)
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

// Sandbox runs scripts that a server sends, each with at most so many MiB. It
// opens neither data nor settings.
func Sandbox(in io.Reader, out io.Writer, memory int) error {
	return sandbox.Serve(in, out, int64(max(memory, minMemory))<<20)
}
