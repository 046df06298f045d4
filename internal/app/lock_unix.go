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

// tryShare is like tryLock, but others can share the lock.
func tryShare(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
}

// writable reports whether this process may write to a file or directory.
func writable(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil
}
