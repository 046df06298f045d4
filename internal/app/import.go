package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
)

// Import writes an export into a place where no installation is yet, and returns
// how many rows that are. The whole file is checked before anything is written.
func Import(ctx context.Context, data config.Data, source string) (rows int64, err error) {
	file, err := os.Open(source)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := verify(file); err != nil {
		return 0, fmt.Errorf("%s: %w", source, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return ImportFrom(ctx, data, file)
}

// verify reads an archive to its end.
func verify(from io.Reader) error {
	r, err := archive.NewReader(from)
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ImportFrom is Import from what can be read only once: what is wrong with it is
// found on the way, and what was written until then is taken back.
func ImportFrom(ctx context.Context, data config.Data, from io.Reader) (rows int64, err error) {
	r, err := archive.NewReader(from)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(store.Fits(r.Header()), opens(data, r.Header().KeyCheck)); err != nil {
		return 0, err
	}
	c, release, err := openEmpty(ctx, data)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	err = store.Import(ctx, c.db, r, clock.Now())
	if errors.Is(err, store.ErrInstalled) {
		err = fmt.Errorf("%w: name an empty --data-dir, or an empty database", err)
	}
	return r.Rows(), err
}

// openEmpty opens a database that is made if there is none, with its tables, for
// one who has it alone until release. What is in it is looked at by others.
func openEmpty(ctx context.Context, data config.Data) (_ *core, release func() error, err error) {
	if data.Shared() {
		c, err := openStore(ctx, data, sqlite.Options{Migrate: true}, store.Notify{})
		if err != nil {
			return nil, nil, err
		}
		return c, c.close, nil
	}
	if err := os.MkdirAll(data.Dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := lockDir(data.Dir)
	if err != nil {
		return nil, nil, err
	}
	c, err := openStore(ctx, data, sqlite.Options{Migrate: true}, store.Notify{})
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return c, func() error { return errors.Join(c.close(), lock.Close()) }, nil
}

// opens refuses an export that the master key at hand does not open: without its
// key no secret in it could be read again.
func opens(data config.Data, check []byte) error {
	key, err := givenKey(data)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no master key %s: an import needs the one of the installation that was exported; put it there, or name it with --master-key-file or STEPMILL_MASTER_KEY", data.KeyFile())
	}
	if err != nil {
		return err
	}
	v, err := vault.New(key, nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(v.Check(), check) {
		return fmt.Errorf("the master key %s is not the one that the export was sealed with: name that one with --master-key-file or STEPMILL_MASTER_KEY", data.KeyPlace())
	}
	return nil
}
