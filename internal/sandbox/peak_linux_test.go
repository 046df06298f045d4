package sandbox_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/sandbox"
)

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// watchPeak watches the only warm child of the pool until it exits. The returned
// function returns its peak memory beyond the initial usage.
func watchPeak(t *testing.T, pool *sandbox.Pool) func() int64 {
	t.Helper()
	status := fmt.Sprintf("/proc/%d/status", pool.Pids()[0])
	read := func() int64 {
		text, _ := os.ReadFile(status)
		match := peakLine.FindSubmatch(text)
		if match == nil {
			return 0
		}
		kilobytes, _ := strconv.ParseInt(string(match[1]), 10, 64)
		return kilobytes << 10
	}
	base := read()
	peak := make(chan int64, 1)
	stop := make(chan struct{})
	go func() {
		var most int64
		for {
			most = max(most, read())
			select {
			case <-stop:
				peak <- most - base
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-peak
	}
}
