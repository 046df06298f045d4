//go:build linux || darwin

package sqlite

import "golang.org/x/sys/unix"

// diskSpace returns the space left for this process on a file's file system and its
// size, or -1 if they are unknown.
func diskSpace(path string) (free, total int64) {
	var info unix.Statfs_t
	if err := unix.Statfs(path, &info); err != nil {
		return -1, -1
	}
	return int64(info.Bavail) * int64(info.Bsize), int64(info.Blocks) * int64(info.Bsize) //nolint:unconvert // the types differ between systems
}
