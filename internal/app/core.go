// Package app is the composition root: the only package that knows every
// other. It builds a server, or the few parts that a command needs, from the
// settings, and runs them until told to stop.
package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
)

// core is what every command that touches the data stands on.
type core struct {
	store  *store.Store
	vault  *vault.Vault
	auth   *auth.Service
	people *account.Service

	db     database
	pg     *postgres.DB // nil: the data is in the data directory
	lite   *sqlite.DB   // nil: it is not
	stop   context.CancelFunc
	ended  chan struct{}
	failed error

	rotated bool // the key in use is still to be put in force
}

// openCore opens the data of a whole installation, or of a new one. The writer
// of the database runs until close.
func openCore(ctx context.Context, data config.Data, opts sqlite.Options, notify store.Notify) (*core, error) {
	master, err := masterKey(data, opts.Migrate)
	if err != nil {
		return nil, err
	}
	c, err := openStore(ctx, data, opts, notify)
	if err != nil {
		return nil, err
	}
	if err = c.checkWhole(ctx); err == nil {
		c.vault, err = vault.New(master, c.store)
	}
	if err == nil {
		err = c.checkMasterKey(ctx, data)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.auth, c.people = auth.NewService(c.store, c.vault), account.NewService(c.store)
	return c, nil
}

// openStore opens the database alone, whatever is in it.
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
	// The database outlives the context of its users: they stop first.
	dbCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() {
		defer close(c.ended)
		c.failed = c.db.Run(dbCtx)
	}()
	return c, nil
}

// database is one of the two that there are.
type database interface {
	store.Mover
	Run(ctx context.Context) error
	Stats() store.Stats
}

// checkWhole refuses an installation of which an import has written a part only.
func (c *core) checkWhole(ctx context.Context) error {
	half, err := c.store.Half(ctx)
	if err != nil {
		return fmt.Errorf("read the installation: %w", err)
	}
	if half {
		return fmt.Errorf("%w: run `stepmill import FILE` again, which replaces what is there of it", store.ErrHalf)
	}
	return nil
}

// openAlone opens the data of an installation for one who has it alone, until
// release. The lock on the data directory says that no server runs.
func openAlone(ctx context.Context, data config.Data) (_ *core, release func() error, err error) {
	if data.Shared() {
		return openSharedAlone(ctx, data)
	}
	if _, err := os.Stat(filepath.Join(data.Dir, sqlite.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, explainMissing(sqlite.ErrMissing, data.Dir)
	}
	lock, err := lockDir(data.Dir)
	if err != nil {
		return nil, nil, err
	}
	c, err := openCore(ctx, data, sqlite.Options{}, store.Notify{})
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	release = func() error { return errors.Join(c.close(), lock.Close()) }
	if err := c.settleMasterKey(data); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return c, release, nil
}

// answers tells whether the data can be read.
func (c *core) answers(ctx context.Context) error {
	if c.pg != nil {
		return c.pg.Answers(ctx)
	}
	_, err := c.store.KeyCheck(ctx)
	return err
}

// close writes what is queued and closes the database.
func (c *core) close() error {
	c.stop()
	<-c.ended
	return c.failed
}

func explainMissing(err error, place string) error {
	if errors.Is(err, sqlite.ErrMissing) {
		return fmt.Errorf("there is no Stepmill data in %s: start `stepmill serve` first, or name another place with --data-dir or --database-url", place)
	}
	return err
}

// masterKey reads the master key. Only a server that starts on an empty
// directory makes one: a new key for old data would open nothing.
func masterKey(data config.Data, serving bool) ([]byte, error) {
	if data.Shared() {
		return sharedMasterKey(data)
	}
	_, err := os.Stat(filepath.Join(data.Dir, sqlite.FileName))
	empty := errors.Is(err, fs.ErrNotExist)
	if empty && !serving {
		return nil, explainMissing(sqlite.ErrMissing, data.Dir)
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
		return nil, fmt.Errorf("the master key %s is missing, and without it the secrets in %s cannot be read: put it back, or name it with --master-key-file", path, data.Dir)
	}
	return key, err
}

// checkMasterKey refuses a key that does not fit the data. When a rotation was
// cut short after the data had been sealed anew, the key that was to follow
// fits, and is used.
func (c *core) checkMasterKey(ctx context.Context, data config.Data) error {
	check, err := c.store.KeyCheck(ctx)
	if err != nil {
		return fmt.Errorf("read the installation: %w", err)
	}
	if check == nil || bytes.Equal(check, c.vault.Check()) {
		return nil
	}
	if data.MasterKey == "" {
		if next, err := vault.ReadDraft(data.KeyFile()); err == nil {
			if c.vault, err = vault.New(next, c.store); err != nil {
				return err
			}
			if c.rotated = bytes.Equal(check, c.vault.Check()); c.rotated {
				return nil
			}
		}
	}
	return errors.New("the master key does not fit this data: it was sealed with another one")
}
