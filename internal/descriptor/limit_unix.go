//go:build unix

package descriptor

import (
	"math"
	"syscall"
)

// Limit returns how many file descriptors the process can have.
func Limit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 { //nolint:unconvert // it is signed on FreeBSD
		return math.MaxInt32
	}
	return int(limit.Cur)
}
