package scripts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// TestThreadsReserveNoAddresses checks that the C library, which a build with cgo has, does
// not reserve addresses for each thread of a sandbox process: they count against its limit,
// and a busy machine, where there are more threads, left too few for scripts.
func TestThreadsReserveNoAddresses(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), "--js-processes", "1")
	execute(t, s.Client, defineScript(t, s.Client, "for (let i = 0; i < 1000; i++) console.log('x'.repeat(1000)); return {}", longTimeout), map[string]any{})
	pids := children(t, s.Pid())
	if len(pids) == 0 {
		t.Fatal("there is no sandbox process")
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	const arena = 64 << 20
	reserved := 0
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var access string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &access); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		// An arena ends at a multiple of its size, and only its beginning is in use.
		if access == "---p" && to%arena == 0 && to-from > arena/2 && to-from < arena {
			reserved++
		}
	}
	if reserved > 1 {
		t.Errorf("%d threads have reserved addresses:\n%s", reserved, maps)
	}
	s.Stop(t)
}
