// Package app is the composition root: the only package that imports all others.
// It builds a server, or the parts that a command needs, from the settings and
// runs it until the context ends.
package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
)

// core holds the services that every command on the data needs.
type core struct {
	store    *store.DB
	vault    *vault.Vault
	auth     *auth.Service
	accounts *account.Service

	db     backend
	pg     *postgres.DB // nil: SQLite
	lite   *sqlite.DB   // nil: PostgreSQL
	stop   context.CancelFunc
	ended  chan struct{}
	failed error

	rotated bool // the key in use is the draft of an unfinished rotation
}

// openCore opens the data of a complete or a new installation. The writer of the
// database runs until close.
func openCore(ctx context.Context, data config.Data, opts sqlite.Options, notify store.Notify) (*core, error) {
	master, err := masterKey(data, opts.Migrate)
	if err != nil {
		return nil, err
	}
	c, err := openStore(ctx, data, opts, notify)
	if err != nil {
		return nil, err
	}
	if err = c.checkImportComplete(ctx); err == nil {
		err = c.resumeClock(ctx)
	}
	if err == nil {
		c.vault, err = vault.New(master, c.store.Workspaces)
	}
	if err == nil {
		err = c.checkMasterKey(ctx, data)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.auth, c.accounts = auth.NewService(c.store.Workspaces, c.vault), account.NewService(c.store.Accounts)
	return c, nil
}

// resumeClock continues the steady time of an installation. With a shared database,
// openShared has done that.
func (c *core) resumeClock(ctx context.Context) error {
	if c.lite == nil {
		return nil
	}
	record, err := c.store.Installation.ServiceClock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	clock.Resume(record)
	return nil
}

// openStore opens only the database, without checking its contents.
func openStore(ctx context.Context, data config.Data, opts sqlite.Options, notify store.Notify) (*core, error) {
	c := &core{ended: make(chan struct{})}
	if data.Shared() {
		shared, err := openShared(ctx, data, opts.Migrate)
		if err != nil {
			return nil, err
		}
		c.db, c.pg = shared, shared
	} else {
		own, err := sqlite.Open(ctx, data.Dir, opts)
		if err != nil {
			return nil, explainMissing(err, data.Dir)
		}
		c.db, c.lite = own, own
	}
	c.store = store.New(c.db, notify)
	// The database must outlive its users, so it does not stop with ctx.
	dbCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() {
		defer close(c.ended)
		c.failed = c.db.Run(dbCtx)
	}()
	return c, nil
}

// backend is implemented by sqlite.DB and postgres.DB.
type backend interface {
	store.Mover
	Run(ctx context.Context) error
	Stats() store.Stats
}

// checkImportComplete rejects an installation with an unfinished import.
func (c *core) checkImportComplete(ctx context.Context) error {
	half, err := c.store.Installation.ImportIncomplete(ctx)
	if err != nil {
		return fmt.Errorf("read the installation: %w", err)
	}
	if half {
		return fmt.Errorf("%w: run `stepmill import FILE` again, which replaces the partial data", store.ErrImportIncomplete)
	}
	return nil
}

// openExclusive opens the data of an installation for exclusive use until
// release. The lock on the data directory ensures that no server runs.
func openExclusive(ctx context.Context, data config.Data) (_ *core, release func() error, err error) {
	if data.Shared() {
		return openSharedExclusive(ctx, data)
	}
	if err := checkDataExists(data); err != nil {
		return nil, nil, err
	}
	lock, err := lockDir(ctx, data.Dir)
	if err != nil {
		return nil, nil, err
	}
	c, err := openCore(ctx, data, sqlite.Options{}, store.Notify{})
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	release = func() error { return errors.Join(c.close(), lock.Close()) }
	if err := c.finishRotation(data); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return c, release, nil
}

// pingTimeout is how long a health check waits for the database.
const pingTimeout = 5 * time.Second

// ping returns an error if the database cannot be read. It leaves a read behind
// that the disk does not respond to.
func (c *core) ping(ctx context.Context) error {
	if c.pg != nil {
		return c.pg.Ping(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.store.Installation.KeyCheck(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close flushes pending writes and closes the database.
func (c *core) close() error {
	c.stop()
	<-c.ended
	return c.failed
}

// checkDataExists returns an error if a data directory contains no database.
func checkDataExists(data config.Data) error {
	_, err := os.Stat(filepath.Join(data.Dir, sqlite.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		if err := checkRestoreComplete(data.Dir); err != nil {
			return err
		}
		return explainMissing(sqlite.ErrMissing, data.Dir)
	}
	return nil
}

func explainMissing(err error, place string) error {
	if errors.Is(err, sqlite.ErrMissing) {
		return missingData{place}
	}
	return err
}

// missingData is the error for a location without data.
type missingData struct{ place string }

func (e missingData) Error() string {
	return fmt.Sprintf("there is no Stepmill data in %s: start `stepmill serve` first, or name another location with --data-dir or --database-url", e.place)
}

func (missingData) Unwrap() error { return sqlite.ErrMissing }

// masterKey reads the master key. Only a server that starts with an empty
// directory creates one: a new key could not decrypt existing data.
func masterKey(data config.Data, serving bool) ([]byte, error) {
	if data.Shared() {
		return sharedMasterKey(data)
	}
	missing := checkDataExists(data)
	empty := errors.Is(missing, sqlite.ErrMissing)
	if missing != nil && !(empty && serving) {
		return nil, missing
	}
	if data.MasterKey != "" {
		return vault.ParseMasterKey(data.MasterKey)
	}
	path := data.KeyFile()
	if empty && data.MasterKeyFile == "" {
		return vault.ReadOrCreateMasterKey(path)
	}
	key, err := vault.ReadMasterKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the master key %s is missing, and without it the secrets in %s cannot be read: restore it, or name another file with --master-key-file", path, data.Dir)
	}
	return key, err
}

// checkMasterKey rejects a key that does not match the data. If a rotation was
// interrupted after the data keys were rewrapped, the draft of the new key matches
// and is used.
func (c *core) checkMasterKey(ctx context.Context, data config.Data) error {
	check, err := c.store.Installation.KeyCheck(ctx)
	if err != nil {
		return fmt.Errorf("read the installation: %w", err)
	}
	if check == nil || bytes.Equal(check, c.vault.Check()) {
		return nil
	}
	if data.MasterKey == "" {
		if next, err := vault.ReadStaged(data.KeyFile()); err == nil {
			if c.vault, err = vault.New(next, c.store.Workspaces); err != nil {
				return err
			}
			if c.rotated = bytes.Equal(check, c.vault.Check()); c.rotated {
				return nil
			}
		}
	}
	return errors.New("the master key does not match this data, which was encrypted with another one: use that one with --master-key-file or STEPMILL_MASTER_KEY")
}
