package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/store"
)

// storage holds the data of a server: the database and, if it has its own, the
// data directory.
type storage struct {
	*core
	lock   *os.File // on the data directory; nil: a shared database
	starts starts
}

func (d *storage) open(ctx context.Context, data config.Data, serve config.Serve, notify store.Notify, log *slog.Logger) (err error) {
	at := locate(data)
	options, err := at.prepareServer(ctx, d, serve, log)
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.AtStart, "")
	if d.core, err = openCore(ctx, data, options, notify); err != nil {
		return err
	}
	warnIfKeyIsExposed(data, log)
	return at.finishRotation(d.core)
}

// undoStart uncounts a start that failed.
func (d *storage) undoStart() error {
	if d.starts.path == "" {
		return nil
	}
	return d.starts.undo()
}

// close closes the database, then unlocks the data directory.
func (d *storage) close() error {
	var errs []error
	if d.core != nil {
		errs = append(errs, d.core.close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// warnIfDirIsWritable warns about a data directory in which other users can replace
// files. The server creates it without such permissions, but it may have existed before.
func warnIfDirIsWritable(dir string, log *slog.Logger) {
	if mode, open := openToOthers(dir, 0o022); open {
		log.Warn("other users of this machine can write to the data directory", "directory", dir, "mode", mode, "fix", "chmod 700 "+dir)
	}
}

// openToOthers returns the mode of a file, and whether it has one of the permissions.
// Windows has no such modes.
func openToOthers(path string, permissions os.FileMode) (mode string, open bool) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return "", false
	}
	return fmt.Sprintf("%04o", info.Mode().Perm()), info.Mode().Perm()&permissions != 0
}
