//go:build failpoint

package clock

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// skew is the error that tests add to the machine's clock: FP_CLOCK, or what the file
// named by FP_CLOCK_FILE contains. Tests rewrite the file to make the clock jump.
var skew = sync.OnceValue(func() func() time.Duration {
	if path := os.Getenv("FP_CLOCK_FILE"); path != "" {
		return skewFile(path)
	}
	fixed := parseSkew("FP_CLOCK", os.Getenv("FP_CLOCK"))
	return func() time.Duration { return fixed }
})

// skewFile reads the skew from a file, at most once every few milliseconds.
func skewFile(path string) func() time.Duration {
	const keep = 5 * time.Millisecond
	type reading struct {
		skew time.Duration
		at   time.Time
	}
	var last atomic.Pointer[reading]
	return func() time.Duration {
		if r := last.Load(); r != nil && time.Since(r.at) < keep {
			return r.skew
		}
		text, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			exit("FP_CLOCK_FILE", err)
		}
		r := &reading{parseSkew("FP_CLOCK_FILE", strings.TrimSpace(string(text))), time.Now()}
		last.Store(r)
		return r.skew
	}
}

func parseSkew(variable, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		exit(variable, err)
	}
	return d
}

func exit(variable string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", variable, err)
	os.Exit(2)
}

// machine reads the machine's clock and adds the skew.
func machine() time.Time { return time.Now().Add(skew()()) }
