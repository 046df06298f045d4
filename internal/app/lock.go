package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errDirInUse means that another process has locked a data directory.
var errDirInUse = errors.New("stop it, or choose another --data-dir")

const lockFile = "lock"

// lockTimeout is how long a server waits for a command that uses the directory.
const lockTimeout = 2 * time.Second

// lockDir locks a data directory for this process until the returned file is
// closed or the process ends.
func lockDir(ctx context.Context, dir string) (file *os.File, err error) {
	err = retry(ctx, lockTimeout, errDirInUse, func() error {
		file, err = tryLockDir(dir)
		return err
	})
	return file, err
}

func tryLockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file of the data directory: %w", err)
	}
	if err := tryLock(file); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 32))
		_ = file.Close()
		return nil, fmt.Errorf("another Stepmill process%s is using %s: %w", describe(holder), dir, errDirInUse)
	}
	// The process id is only informational; the lock is on the file itself.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	return file, nil
}

// tryLockReadOnly locks a data directory that cannot be written to against a server, whose
// user can write to it. It returns nil if there is no lock file: a server leaves one.
func tryLockReadOnly(dir string) (*os.File, error) {
	file, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the lock file of the data directory: %w", err)
	}
	if tryShare(file) != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another Stepmill process is using %s: %w", dir, errDirInUse)
	}
	return file, nil
}

func describe(holder []byte) string {
	if pid, err := strconv.Atoi(strings.TrimSpace(string(holder))); err == nil {
		return fmt.Sprintf(" (pid %d)", pid)
	}
	return ""
}
