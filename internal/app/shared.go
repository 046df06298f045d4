package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
)

// openShared opens a database that nodes share.
func openShared(ctx context.Context, data config.Data, migrate bool) (*postgres.DB, error) {
	if migrate {
		if err := Migrate(ctx, data); err != nil {
			return nil, err
		}
	}
	db, err := postgres.Open(ctx, sharedOptions(data))
	if err != nil {
		return nil, err
	}
	if now, err := db.Now(ctx); err == nil { // else whoever asks for more is told
		clock.Follow(now)
	}
	return db, nil
}

// openSharedAlone opens a shared database that no node uses, until release. One
// that comes while it is open makes release fail: what was done may be worth
// nothing.
func openSharedAlone(ctx context.Context, data config.Data) (_ *core, release func() error, err error) {
	c, err := openCore(ctx, data, sqlite.Options{}, store.Notify{})
	if err != nil {
		return nil, nil, err
	}
	if err := c.refuseNodes(ctx); err != nil {
		return nil, nil, errors.Join(err, c.close())
	}
	return c, func() error { return errors.Join(c.refuseNodes(ctx), c.close()) }, nil
}

// refuseNodes refuses a database that nodes use.
func (c *core) refuseNodes(ctx context.Context) error {
	nodes, err := c.pg.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("look for nodes: %w", err)
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%d nodes use the database, the first of them is %s on %s: stop them all", len(nodes), nodes[0].ID, nodes[0].Name)
	}
	return nil
}

// Place tells a person where the data is.
func Place(data config.Data) string {
	if data.Shared() {
		return postgres.Place(data.URL)
	}
	return data.Dir
}

func sharedOptions(data config.Data) postgres.Options {
	return postgres.Options{URL: data.URL, Connections: data.Connections - jobConnections - listenConnections, Pooled: data.Pooled, Name: data.Node}
}

// sharedMasterKey reads the master key. It is never made: all nodes have the
// same one.
func sharedMasterKey(data config.Data) ([]byte, error) {
	if data.MasterKey != "" {
		return vault.ParseMasterKey(data.MasterKey)
	}
	key, err := vault.ReadMasterKey(data.KeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no master key in %s: nodes that share a database share a master key. "+
			"Give it with --master-key-file or STEPMILL_MASTER_KEY; `stepmill master-key create FILE` makes one", data.KeyFile())
	}
	return key, err
}

// Migrate brings the schema of a shared database up to date.
func Migrate(ctx context.Context, data config.Data) error {
	if !data.Shared() {
		return errors.New("name the database with --database-url; data in a directory is migrated when the server starts")
	}
	return postgres.Migrate(ctx, sharedOptions(data))
}
