//go:build failpoint

package release

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

// Known returns the highest level that this node knows: that of this release, or of the
// one in FP_RELEASE, with which tests make a node behave like one of an earlier release.
var Known = sync.OnceValue(func() int {
	text := os.Getenv("FP_RELEASE")
	if text == "" {
		return Number
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "FP_RELEASE: %v\n", err)
		os.Exit(2)
	}
	return number
})
