package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/migrations"
)

// Export writes all data of an installation to a new file, while no server runs,
// and returns the number of rows. The master key is not included. It writes to notices
// if the export cannot be recorded in the audit log.
func Export(ctx context.Context, data config.Data, target string, notices io.Writer) (rows int64, err error) {
	err = writeNewFile(target, func(file io.Writer) error {
		rows, err = ExportTo(ctx, data, file, notices)
		return err
	})
	return rows, err
}

// ExportTo is like Export but writes to an io.Writer.
func ExportTo(ctx context.Context, data config.Data, to, notices io.Writer) (rows int64, err error) {
	c, release, err := openExclusive(ctx, data)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	place, err := c.openRecordedPlace(ctx, data)
	if err != nil {
		return 0, err
	}
	noteUnrecorded(notices, "export", c.recordCopy(ctx, exportCreated)) // before it is made, like a backup
	return c.export(ctx, place.blobs, to)
}

// openRecordedPlace opens the place of the files, which must be the one that the settings
// name.
func (c *core) openRecordedPlace(ctx context.Context, data config.Data) (filesPlace, error) {
	recorded, err := c.store.Files.RecordedFilesPlace(ctx)
	if err != nil {
		return filesPlace{}, err
	}
	place, err := openFilesPlace(ctx, data, c.db.openFiles)
	if err == nil {
		err = place.is(recorded)
	}
	return place, err
}

// export writes the database and the bytes of files to an archive.
func (c *core) export(ctx context.Context, blobs blob.Store, to io.Writer) (rows int64, err error) {
	check, err := c.store.Installation.KeyCheck(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the installation: %w", err)
	}
	if check == nil {
		return 0, errors.New("there is nothing to export: no server has been started with this data yet")
	}
	w, err := archive.NewWriter(to, archive.Header{
		Schema: migrations.Last(), CreatedAt: clock.Now(), Stepmill: config.VersionText(), KeyCheck: check, Tables: store.Archived(),
	})
	if err != nil {
		return 0, err
	}
	if err := store.Export(ctx, c.db, blobs, w); err != nil {
		return 0, explainMissingBytes(err)
	}
	return w.Rows(), w.Close()
}

// syncDir makes a renamed file durable.
func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
