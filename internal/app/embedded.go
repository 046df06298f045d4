package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// directory is a data directory. It implements location.
type directory struct{ config.Data }

func (d directory) describe() string     { return d.Dir }
func (d directory) needDirectory() error { return nil }

func (d directory) needShared() error {
	return errors.New("a worker needs a shared database: name it with --database-url")
}

func (d directory) migrate(context.Context) error {
	return errors.New("name the database with --database-url; a data directory is migrated when the server starts")
}

// masterKey creates a key only for a server that starts with an empty directory: a new
// key could not decrypt existing data.
func (d directory) masterKey(serving bool) ([]byte, error) {
	missing := d.checkExists()
	empty := errors.Is(missing, sqlite.ErrMissing)
	if missing != nil && !(empty && serving) {
		return nil, missing
	}
	path := d.KeyFile()
	if empty && d.MasterKey == "" && d.MasterKeyFile == "" {
		return vault.ReadOrCreateMasterKey(path)
	}
	key, err := readMasterKey(d.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the master key %s is missing, and without it the secrets in %s cannot be read: restore it, or name another file with --master-key-file", path, d.Dir)
	}
	return key, err
}

// keepsPrevious implements location. The folder of files is moved with its database, a
// bucket is not.
func (d directory) keepsPrevious(place filesPlace) bool {
	return place.name != directoryPlace && lastPrevious(filepath.Join(d.Dir, sqlite.FileName)) != ""
}

func (d directory) commandDir() string { return d.Dir }

func (d directory) checkExists() error {
	_, err := os.Stat(filepath.Join(d.Dir, sqlite.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		if err := checkRestoreComplete(d.Dir); err != nil {
			return err
		}
		return explainMissing(sqlite.ErrMissing, d.Dir)
	}
	return nil
}

// inServerOr implements location. If there is no server, it locks the directory.
func (d directory) inServerOr(ctx context.Context, args []string, stdout, stderr io.Writer, do func(readOnly bool) error) (err error) {
	if err := d.checkExists(); err != nil {
		return err
	}
	readOnly := isReadOnly(d.Dir)
	server, lock, err := reach(ctx, d.Dir, readOnly)
	switch {
	case err != nil:
		return err
	case server != nil:
		return runInServer(ctx, server, args, stdout, stderr)
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	return do(readOnly)
}

func (d directory) create() error {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	return nil
}

func (d directory) lock(ctx context.Context, create bool) (unlock func() error, err error) {
	prepare := d.checkExists
	if create {
		prepare = d.create
	}
	if err := prepare(); err != nil {
		return nil, err
	}
	lock, err := lockDir(ctx, d.Dir)
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// prepareServer implements location. It locks the directory and counts the start. A
// server always migrates its own database.
func (d directory) prepareServer(ctx context.Context, s *storage, serve config.Serve, log *slog.Logger) (options sqlite.Options, err error) {
	if err := d.create(); err != nil {
		return options, err
	}
	warnIfDirIsWritable(d.Dir, log)
	if s.lock, err = lockDir(ctx, d.Dir); err != nil {
		return options, err
	}
	s.starts, err = recordStart(d.Dir, serve.LeaveSafeMode)
	return sqlite.Options{Migrate: true, UnsafeFilesystem: serve.UnsafeFilesystem}, err
}

func (d directory) finishRotation(c *core) error { return c.finishRotation(d.Data) }

func (d directory) open(ctx context.Context, opts sqlite.Options) (backend, error) {
	db, err := sqlite.Open(ctx, d.Dir, opts)
	if err != nil {
		return nil, explainMissing(err, d.Dir)
	}
	return embeddedBackend{db, d}, nil
}

// embeddedBackend is the database in a data directory.
type embeddedBackend struct {
	*sqlite.DB
	at directory
}

func (b embeddedBackend) resumeClock(ctx context.Context, st *store.DB) error {
	record, err := st.Installation.ServiceClock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	clock.Resume(record)
	return nil
}

// checkUnused implements backend. The lock on the directory ensures that no server runs.
func (b embeddedBackend) checkUnused(context.Context) error { return nil }

// pingTimeout is how long a health check waits for the database.
const pingTimeout = 5 * time.Second

// ping implements backend. It leaves a read behind that the disk does not respond to.
func (b embeddedBackend) ping(ctx context.Context, st *store.DB) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := st.Installation.KeyCheck(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b embeddedBackend) stalled(limit time.Duration) func() bool {
	return func() bool { return b.Busy() > limit }
}

func (b embeddedBackend) checkNodes(*workflow.Service) {}

func (b embeddedBackend) snapshot(ctx context.Context, spare int64, progress func()) (*sqlite.Snapshot, error) {
	return b.OpenSnapshot(ctx, spare, progress)
}

func (b embeddedBackend) openFiles() (filesPlace, error) { return openDirectory(b.at.Dir) }

// checkFiles implements backend. No other process uses the data, so if the disk is full,
// the next start records the place.
func (b embeddedBackend) checkFiles(ctx context.Context, st *store.DB, place filesPlace) error {
	err := checkFilesPlace(ctx, st, place, true)
	if fault.Is(err, fault.StorageFull) {
		return nil
	}
	return err
}

func (b embeddedBackend) openDisk(ctx context.Context, d *disk, reserve config.DiskReserve) {
	d.open(ctx, b.DB, reserve)
}

func (b embeddedBackend) watchDisk(ctx context.Context, d *disk) error { return d.watch(ctx) }

func (b embeddedBackend) collect(_ context.Context, m *telemetry.Scrape, d *disk) {
	counts := map[string]int64{warnLogSize: 0, warnDiskSpace: 0}
	for _, w := range d.warnings() {
		counts[w.reason] = 1
	}
	m.SetAll(telemetry.Warnings, counts)
	files := b.Files()
	m.Set(telemetry.SQLiteBytes, float64(files.Bytes))
	m.Set(telemetry.SQLiteLog, float64(files.LogBytes))
	if files.Free >= 0 {
		m.Set(telemetry.DiskFree, float64(files.Free))
		m.Set(telemetry.DiskReserve, float64(d.reserve))
	}
}

func (b embeddedBackend) join(ctx context.Context, config cluster.Config, _ time.Duration, _ filesPlace) (cluster.Topology, error) {
	return cluster.NewSingle(ctx, config), nil
}
