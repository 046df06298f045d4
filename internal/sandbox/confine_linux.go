package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// confine sets kernel limits as the last line of defense. A huge allocation fails
// and ends this process instead of exhausting the machine. No file can be opened
// or written, and there are no core dumps. If the machine runs out of memory,
// the kernel kills this process before the server. System calls that scripts do not
// need fail.
func confine(memory int64) error {
	// Some containers do not allow this.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	// Not RLIMIT_DATA: Go first reserves address space for its heap, and the kernel does
	// not check that limit for memory within a reservation. But the race detector maps
	// memory of its own and ends the process without a message if it cannot.
	resource, field := unix.RLIMIT_AS, sizeField
	if raceEnabled {
		resource, field = unix.RLIMIT_DATA, dataField
	}
	mapped, err := mappedBytes(field)
	if err != nil {
		return err
	}
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{resource, mapped + headroom(memory)},
		{unix.RLIMIT_NOFILE, 0},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.value, Max: limit.value}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", limit.resource, err)
		}
	}
	return filterSystemCalls()
}

// headroom returns how much more the process may map. It exceeds the memory limit
// of a script, because Go maps 64 MiB at a time and the memory monitor should
// notice first.
func headroom(memory int64) uint64 { return mappingFactor * (2*uint64(memory) + 128<<20) }

// The fields of /proc/self/statm with what RLIMIT_AS and RLIMIT_DATA count.
const sizeField, dataField = 0, 5

// mappedBytes returns the bytes the process has mapped, from a field of
// /proc/self/statm.
func mappedBytes(field int) (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) <= field {
		return 0, fmt.Errorf("/proc/self/statm has %d fields", len(fields))
	}
	pages, err := strconv.ParseUint(fields[field], 10, 64)
	return pages * uint64(os.Getpagesize()), err
}
