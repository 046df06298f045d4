//go:build !linux

package sandbox

import "time"

func (c *child) cpuTime() (time.Duration, bool) { return 0, false }
