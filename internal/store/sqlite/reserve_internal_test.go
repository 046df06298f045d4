package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zombiezen.com/go/sqlite"
)

func TestReserve(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]error{
		"no space for the index of the log": sqlite.ResultIOErrSHMSize.ToError(),
		"no space for the log":              sqlite.ResultFull.ToError(),
		"no space for a file":               &os.PathError{Op: "open", Path: "x", Err: syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			reserve := filepath.Join(dir, reserveName)
			opened := func(context.Context) (*DB, error) { return &DB{}, nil }
			if _, err := openWithReserve(t.Context(), dir, opened); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(reserve); err != nil || info.Size() != reserveBytes {
				t.Fatalf("the reserve was not created: %v", err)
			}
			onFullDisk := func(context.Context) (*DB, error) {
				if _, err := os.Stat(reserve); err == nil {
					return nil, fmt.Errorf("open: %w", full)
				}
				return &DB{}, nil
			}
			if _, err := openWithReserve(t.Context(), dir, onFullDisk); err != nil {
				t.Errorf("the reserve was not used: %v", err)
			}
			_, err := openWithReserve(t.Context(), dir, func(context.Context) (*DB, error) { return nil, full })
			if !errors.Is(err, full) || !strings.Contains(err.Error(), "the disk of the data directory "+dir+" is full") {
				t.Errorf("without a reserve: got %v", err)
			}
		})
	}
}
