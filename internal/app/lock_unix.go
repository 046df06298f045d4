//go:build unix

package app

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock acquires the lock on an open file, or fails immediately when another
// process holds it. The system releases it however the process ends.
func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
