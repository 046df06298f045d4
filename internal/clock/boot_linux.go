package clock

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bootID identifies the current boot of the machine.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// boot identifies the current boot of the machine and returns the time since then,
// including the time for which the machine was suspended. Setting the time of day does
// not affect it, and all processes of the machine agree on it.
func boot() (id string, running time.Duration) {
	if id = bootID(); id == "" {
		return "", 0
	}
	return id, read(unix.CLOCK_BOOTTIME)
}

// suspended returns for how long the machine has been suspended since it booted.
func suspended() time.Duration {
	boot, monotonic := together(func() time.Duration { return read(unix.CLOCK_BOOTTIME) }, func() time.Duration { return read(unix.CLOCK_MONOTONIC) })
	return boot - monotonic
}

// read reads a clock that every Linux has.
func read(clock int32) time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(clock, &now)
	return time.Duration(now.Nano())
}
