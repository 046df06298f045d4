package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/vault"
)

// openShared opens a database that nodes share.
func openShared(ctx context.Context, data config.Data, migrate bool, notify store.Notify) (*core, error) {
	master, err := sharedMasterKey(data)
	if err != nil {
		return nil, err
	}
	if migrate {
		if err := Migrate(ctx, data); err != nil {
			return nil, err
		}
	}
	db, err := postgres.Open(ctx, sharedOptions(data))
	if err != nil {
		return nil, err
	}
	c, err := newCore(ctx, data, db, master, notify)
	if err != nil {
		return nil, err
	}
	c.pg = db
	return c, nil
}

func sharedOptions(data config.Data) postgres.Options {
	return postgres.Options{URL: data.URL, Connections: data.Connections - jobConnections, Pooled: data.Pooled, Name: "stepmill"}
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
