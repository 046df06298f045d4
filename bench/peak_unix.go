//go:build unix

package main

import (
	"os"
	"syscall"
)

// peak is the most memory that a process had, in MiB; the unit of the system is
// that of Linux.
func peak(p *os.ProcessState) float64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return float64(usage.Maxrss) / 1024
}
