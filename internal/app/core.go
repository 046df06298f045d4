// Package app is the composition root: the only package that imports all others.
// It builds a server, or the parts that a command needs, from the settings and
// runs it until the context ends.
package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
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
	stop   context.CancelFunc
	ended  chan struct{}
	failed error

	rotated bool // the key in use is the draft of an unfinished rotation
}

// openCore opens the data of a complete or a new installation. The writer of the
// database runs until close.
func openCore(ctx context.Context, data config.Data, opts sqlite.Options, notify store.Notify) (*core, error) {
	master, err := locate(data).masterKey(opts.Migrate)
	if err != nil {
		return nil, err
	}
	c, err := openStore(ctx, data, opts, notify)
	if err != nil {
		return nil, err
	}
	if err = c.checkImportComplete(ctx); err == nil {
		err = c.db.resumeClock(ctx, c.store)
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

// openStore opens only the database, without checking its contents.
func openStore(ctx context.Context, data config.Data, opts sqlite.Options, notify store.Notify) (*core, error) {
	db, err := locate(data).open(ctx, opts)
	if err != nil {
		return nil, err
	}
	c := &core{db: db, ended: make(chan struct{})}
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

// openExclusive opens the data of an installation for exclusive use until release. If a
// node starts in the meantime, release fails, because the result may be inconsistent.
func openExclusive(ctx context.Context, data config.Data) (_ *core, release func() error, err error) {
	unlock, err := locate(data).lock(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	c, err := openCore(ctx, data, sqlite.Options{}, store.Notify{})
	if err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	if err = c.db.checkUnused(ctx); err == nil {
		err = locate(data).finishRotation(c)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.close(), unlock())
	}
	return c, func() error { return errors.Join(c.db.checkUnused(ctx), c.close(), unlock()) }, nil
}

// close flushes pending writes and closes the database.
func (c *core) close() error {
	c.stop()
	<-c.ended
	return c.failed
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

// DataLocation describes where the data is, for messages.
func DataLocation(data config.Data) string { return locate(data).describe() }

// Migrate brings the schema of a shared database up to date.
func Migrate(ctx context.Context, data config.Data) error { return locate(data).migrate(ctx) }

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
