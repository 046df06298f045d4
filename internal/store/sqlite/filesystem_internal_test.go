//go:build linux

package sqlite

import (
	"strings"
	"testing"
)

// TestNetworkFilesystemsAreRejected uses the magic numbers of statfs(2).
func TestNetworkFilesystemsAreRejected(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind uint32
		name string // empty for a local one
	}{
		{0x6969, "NFS"},
		{0x517B, "SMB"},
		{0xFE534D42, "SMB2"},
		{0xFF534D42, "CIFS"},
		{0x01021997, "9p"},
		{0x73757245, "Coda"},
		{0x5346414F, "AFS"},
		{0xEF53, ""},     // ext4
		{0x58465342, ""}, // XFS
		{0x9123683E, ""}, // Btrfs
		{0x2FC12FC1, ""}, // ZFS
		{0x01021994, ""}, // tmpfs
		{0x794C7630, ""}, // overlayfs
	} {
		err := rejectNetwork("/data", tc.kind)
		if (err != nil) != (tc.name != "") {
			t.Errorf("%#x: got %v", tc.kind, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "("+tc.name+")") || !strings.Contains(err.Error(), "/data")) {
			t.Errorf("%#x: the message does not name the file system and the directory: %v", tc.kind, err)
		}
	}
	if err := checkFilesystem(t.TempDir()); err != nil {
		t.Errorf("the temporary directory: %v", err)
	}
}
