package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// openShared opens a shared database.
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
	asked := clock.Monotonic()
	if now, steady, err := db.Clock(ctx); err == nil { // the next query reports an error
		clock.Follow(now, asked)
		clock.Resume(steady)
	}
	return db, nil
}

// openSharedExclusive opens a shared database that no node uses, until release.
// If a node starts in the meantime, release fails, because the result may be
// inconsistent.
func openSharedExclusive(ctx context.Context, data config.Data) (_ *core, release func() error, err error) {
	c, err := openCore(ctx, data, sqlite.Options{}, store.Notify{})
	if err != nil {
		return nil, nil, err
	}
	if err := c.checkNoNodes(ctx); err != nil {
		return nil, nil, errors.Join(err, c.close())
	}
	return c, func() error { return errors.Join(c.checkNoNodes(ctx), c.close()) }, nil
}

// checkNoNodes returns an error if nodes use the database.
func (c *core) checkNoNodes(ctx context.Context) error {
	nodes, err := c.pg.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%d nodes use the database, the first is %s on %s: stop all of them", len(nodes), nodes[0].ID, nodes[0].Name)
	}
	return nil
}

// checkNodes makes a service refuse workflows that one of the nodes cannot execute.
func (c *core) checkNodes(workflows *workflow.Service) {
	if c.pg != nil {
		workflows.CheckNodes(c.pg)
	}
}

// DataLocation describes where the data is, for messages.
func DataLocation(data config.Data) string {
	if data.Shared() {
		return postgres.Describe(data.URL)
	}
	return data.Dir
}

func sharedOptions(data config.Data) postgres.Options {
	return postgres.Options{URL: data.URL, Connections: data.Connections - cluster.OwnConnections, Pooled: data.Pooled, Name: data.Node, Timeout: databaseTimeout(data)}
}

// databaseTimeout returns how long a transaction on a shared database may take.
func databaseTimeout(data config.Data) time.Duration {
	return max(time.Second, cmp.Or(data.Timeout, postgres.DefaultTimeout))
}

// sharedMasterKey reads the master key. It never creates one, because all nodes
// must have the same.
func sharedMasterKey(data config.Data) ([]byte, error) {
	if data.MasterKey != "" {
		return vault.ParseMasterKey(data.MasterKey)
	}
	key, err := vault.ReadMasterKey(data.KeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no master key in %s: nodes that share a database also share a master key. "+
			"Pass it with --master-key-file or STEPMILL_MASTER_KEY; `stepmill master-key create FILE` creates one", data.KeyFile())
	}
	return key, err
}

// Migrate brings the schema of a shared database up to date.
func Migrate(ctx context.Context, data config.Data) error {
	if !data.Shared() {
		return errors.New("name the database with --database-url; a data directory is migrated when the server starts")
	}
	return postgres.Migrate(ctx, sharedOptions(data), river.Migrate)
}
