package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// confine makes the kernel the last line of defence. What a single allocation
// asks for is refused when it is far too much, so that it ends the process and
// not the machine; no file can be opened, written or dumped; and if memory gets
// short on the machine, this process goes before the server.
func confine(memory int64) error {
	// Not every container allows it.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	mapped, err := mappedData()
	if err != nil {
		return err
	}
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_DATA, mapped + headroom(memory)},
		{unix.RLIMIT_NOFILE, 0},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.value, Max: limit.value}); err != nil {
			return fmt.Errorf("set limit %d: %w", limit.resource, err)
		}
	}
	return nil
}

// headroom is what may still be mapped. It is more than the memory of a script:
// Go maps 64 MiB at a time, and the gauge is there to be the first to notice.
func headroom(memory int64) uint64 { return shadow * (2*uint64(memory) + 128<<20) }

// mappedData is what the process has mapped by now, as RLIMIT_DATA counts it.
func mappedData() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	const dataField = 5
	fields := strings.Fields(string(text))
	if len(fields) <= dataField {
		return 0, fmt.Errorf("/proc/self/statm has %d fields", len(fields))
	}
	pages, err := strconv.ParseUint(fields[dataField], 10, 64)
	return pages * uint64(os.Getpagesize()), err
}
