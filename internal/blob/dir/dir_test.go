package dir_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/blob/dir"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/test/lane"
)

func open(t *testing.T, root string) *dir.Store {
	t.Helper()
	s, err := dir.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, blobtest.Backend{
		Open:     func(t *testing.T) blob.Store { return open(t, filepath.Join(t.TempDir(), "files")) },
		Boundary: 64 << 10,
	})
}

// It is not parallel, because it measures the heap of the process.
func TestMemory(t *testing.T) {
	lane.NotShort(t)
	blobtest.CheckMemory(t, open(t, t.TempDir()), lane.Pick[int64](32<<20, 256<<20), 4<<20)
}

func TestIDIsUsedOnce(t *testing.T) {
	t.Parallel()
	s, id := open(t, t.TempDir()), blob.NewID()
	u, err := s.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), id); !errors.Is(err, blob.ErrExists) {
		t.Errorf("during the upload: %v", err)
	}
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), id); !errors.Is(err, blob.ErrExists) {
		t.Errorf("after the commit: %v", err)
	}
	if n, err := s.Sweep(t.Context(), farFuture()); n != 0 || err != nil {
		t.Errorf("the rejected upload left %d files, %v", n, err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("has no permission bits")
	}
	root := filepath.Join(t.TempDir(), "files")
	s := open(t, root)
	if err := blobtest.Put(t.Context(), s, blob.NewID(), []byte("x"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), blob.NewID()); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o700)
		if !entry.IsDir() {
			want = 0o600
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || files != 2 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestOpenRemovesLeftovers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	before, stored := open(t, root), blob.NewID()
	if err := blobtest.Put(t.Context(), before, stored, []byte("stored"), 10); err != nil {
		t.Fatal(err)
	}
	abandoned, err := before.Begin(t.Context(), blob.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := abandoned.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	after := open(t, root)
	if entries, err := os.ReadDir(filepath.Join(root, "uploads")); err != nil || len(entries) != 0 {
		t.Errorf("%d uploads are left, %v", len(entries), err)
	}
	if got, err := blobtest.Get(t.Context(), after, stored, 0, math.MaxInt64); err != nil || string(got) != "stored" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestListIgnoresOtherFiles(t *testing.T) {
	t.Parallel()
	root, id := t.TempDir(), blob.NewID()
	s := open(t, root)
	if err := blobtest.Put(t.Context(), s, id, []byte("x"), 1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lost+found/x", "README", string(id[:2]) + "/.DS_Store", "zz/notes.txt"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.List(t.Context(), paging.Request{Limit: 10})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != id {
		t.Errorf("%v, %v", page.Items, err)
	}
}

// /dev/full fails every write as a full disk does.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	root, id := t.TempDir(), blob.NewID()
	s := open(t, root)
	u, err := s.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	dir.ReplaceFile(u, device)
	if _, err := u.Write(bytes.Repeat([]byte("x"), 1000)); !fault.Is(err, fault.StorageFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a write: %v", err)
	}
	if err := u.Commit(); !fault.Is(err, fault.StorageFull) {
		t.Errorf("a commit after the failed write: %v", err)
	}
	if err := u.Abort(); err != nil {
		t.Error(err)
	}
	if _, err := s.Open(context.Background(), id, 0, 1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
