package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// networkFilesystems are those where file locks or flushes may not be reliable
// enough for SQLite.
var networkFilesystems = map[uint32]string{
	0x6969:     "NFS",
	0x517B:     "SMB",
	0xFE534D42: "SMB2",
	0xFF534D42: "CIFS",
	0x01021997: "9p",
	0x73757245: "Coda",
	0x5346414F: "AFS",
}

func checkFilesystem(dir string) error {
	var info unix.Statfs_t
	switch err := unix.Statfs(dir, &info); {
	case errors.Is(err, fs.ErrNotExist):
		return nil // there is nothing to lose; opening the file will fail
	case err != nil:
		return fmt.Errorf("inspect the file system of %s: %w", dir, err)
	}
	return rejectNetwork(dir, uint32(info.Type))
}

func rejectNetwork(dir string, kind uint32) error {
	if name, ok := networkFilesystems[kind]; ok {
		return fmt.Errorf("%s is on a network file system (%s), where committed data can be lost: choose a local --data-dir", dir, name)
	}
	return nil
}
