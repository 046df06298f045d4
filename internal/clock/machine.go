//go:build !failpoint

package clock

import "time"

// machine reads the machine's clock.
func machine() time.Time { return time.Now() }
