package app

import (
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
)

// Import writes an export into an empty location and returns the number of rows.
// It checks the whole file before it writes anything.
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

// verify reads an archive to the end to check it.
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

// ImportFrom is like Import but reads from a stream. It cannot check the stream in
// advance, so it undoes what it has written if it finds a problem.
func ImportFrom(ctx context.Context, data config.Data, from io.Reader) (rows int64, err error) {
	r, err := archive.NewReader(from)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(store.CheckSchema(r.Header()), checkExportKey(data, r.Header().KeyCheck)); err != nil {
		return 0, err
	}
	c, release, err := openForImport(ctx, data)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	place, err := openFilesPlace(ctx, data, c.db.openFiles)
	if err != nil {
		return 0, err
	}
	err = store.Import(ctx, c.db, store.FilesTarget{Place: place.name, Blobs: place.blobs}, r, clock.Now())
	if errors.Is(err, store.ErrInstalled) {
		err = fmt.Errorf("%w: name an empty --data-dir, or an empty database", err)
	}
	return r.Rows(), err
}

// openForImport opens a database for exclusive use until release. It creates the
// database and its tables if needed, and does not check that it is empty.
func openForImport(ctx context.Context, data config.Data) (_ *core, release func() error, err error) {
	unlock, err := locate(data).lock(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	c, err := openStore(ctx, data, sqlite.Options{Migrate: true}, store.Notify{})
	if err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	return c, func() error { return errors.Join(c.close(), unlock()) }, nil
}

// checkExportKey rejects an export that the current master key cannot decrypt.
// Without the right key, its secrets could not be read after the import.
func checkExportKey(data config.Data, check []byte) error {
	matches, err := masterKeyMatches(data, check)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no master key %s: an import needs the master key of the exported installation; put it there, or pass it with --master-key-file or STEPMILL_MASTER_KEY", data.KeyFile())
	}
	if err != nil {
		return err
	}
	if !matches {
		return fmt.Errorf("the master key %s is not the one that the export was encrypted with: pass that one with --master-key-file or STEPMILL_MASTER_KEY", data.KeyLocation())
	}
	return nil
}
