//go:build unix

package main

import (
	"os"
	"syscall"
)

// peak returns the peak memory usage of a process in MiB. It assumes that Maxrss
// is in KiB, as on Linux.
func peak(p *os.ProcessState) float64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return float64(usage.Maxrss) / 1024
}
