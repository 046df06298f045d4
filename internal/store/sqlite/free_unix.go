//go:build linux || darwin

package sqlite

import "golang.org/x/sys/unix"

// freeBytes is what we may still write to the file system of a file.
func freeBytes(path string) int64 {
	var info unix.Statfs_t
	if err := unix.Statfs(path, &info); err != nil {
		return -1
	}
	return int64(info.Bavail) * int64(info.Bsize) //nolint:unconvert // the types differ between systems
}
