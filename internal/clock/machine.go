//go:build !failpoint

package clock

import "time"

// machine asks the machine.
func machine() time.Time { return time.Now() }
