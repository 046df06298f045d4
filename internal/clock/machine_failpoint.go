//go:build failpoint

package clock

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// skew is by how much the clock of this machine is wrong, for tests.
var skew = sync.OnceValue(func() time.Duration {
	text := os.Getenv("FP_CLOCK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "FP_CLOCK: %v\n", err)
		os.Exit(2)
	}
	return d
})

// machine asks the machine, whose clock may be wrong.
func machine() time.Time { return time.Now().Add(skew()) }
