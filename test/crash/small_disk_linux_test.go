package crash_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// asRoot reports whether the test may mount file systems. If not, it repeats the test in
// a process that may, in namespaces of its own.
func asRoot(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v=true")
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("in a user namespace, which this test needs if it does not run as root: %v\n%s", err, out)
	}
	return false
}

// smallDisk is a file system of a fixed size, in memory.
type smallDisk struct{ dir string }

func mountDisk(t *testing.T, size string) smallDisk {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount a file system of %s: %v", size, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return smallDisk{dir}
}

func (d smallDisk) free(t *testing.T) int64 {
	t.Helper()
	var info syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &info); err != nil {
		t.Fatal(err)
	}
	return int64(info.Bavail) * info.Bsize
}

func (d smallDisk) fillers(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.dir, "filler-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// fill takes up space until only the given number of bytes is free.
func (d smallDisk) fill(t *testing.T, leave int64) {
	t.Helper()
	file, err := os.CreateTemp(d.dir, "filler-")
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<16)
	for err == nil && d.free(t) > leave {
		_, err = file.Write(block[:min(int64(len(block)), d.free(t)-leave)])
	}
	if closeErr := file.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) || closeErr != nil {
		t.Fatal(err, closeErr)
	}
}

// clear frees the space again.
func (d smallDisk) clear(t *testing.T) {
	t.Helper()
	for _, path := range d.fillers(t) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
