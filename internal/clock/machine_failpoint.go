//go:build failpoint

package clock

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// skew is the error that tests add to the machine's clock.
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

// machine reads the machine's clock and adds the skew.
func machine() time.Time { return time.Now().Add(skew()) }
