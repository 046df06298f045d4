package app

import (
	"os"

	"golang.org/x/sys/windows"
)

func tryLock(file *os.File) error {
	const all = 1
	return windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, all, 0, &windows.Overlapped{Offset: 1 << 20})
}

func tryShare(file *os.File) error {
	const all = 1
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, all, 0, &windows.Overlapped{Offset: 1 << 20})
}

// writable always returns true: directories that cannot be written to are not supported.
func writable(string) bool { return true }
