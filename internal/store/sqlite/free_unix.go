//go:build linux || darwin

package sqlite

import "golang.org/x/sys/unix"

// freeBytes returns the space left for this process on a file's file system.
func freeBytes(path string) int64 {
	var info unix.Statfs_t
	if err := unix.Statfs(path, &info); err != nil {
		return -1
	}
	return int64(info.Bavail) * int64(info.Bsize) //nolint:unconvert // the types differ between systems
}
