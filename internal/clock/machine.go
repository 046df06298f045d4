//go:build !failpoint

package clock

import "time"

func machine() time.Time { return time.Now() }
