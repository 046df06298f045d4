//go:build unix

package app

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock on an open file, or fails at once when another
// process has it. The system gives it back when the process ends, however.
func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
