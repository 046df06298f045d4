package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	blobpostgres "github.com/stepmill/stepmill/internal/blob/postgres"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/workflow"
)

// sharedDatabase is a database that nodes share. It implements location.
type sharedDatabase struct{ config.Data }

func (d sharedDatabase) describe() string     { return postgres.Describe(d.URL) }
func (d sharedDatabase) needDirectory() error { return errSharedDatabase }
func (d sharedDatabase) needShared() error    { return nil }

func (d sharedDatabase) migrate(ctx context.Context) error {
	return postgres.Migrate(ctx, d.options(), river.Migrate)
}

func (d sharedDatabase) options() postgres.Options {
	timeout := max(time.Second, cmp.Or(d.Timeout, postgres.DefaultTimeout))
	return postgres.Options{URL: d.URL, Connections: d.Connections - cluster.OwnConnections, Pooled: d.Pooled, Name: d.Node, Timeout: timeout}
}

// masterKey never creates a key, because all nodes must have the same.
func (d sharedDatabase) masterKey(bool) ([]byte, error) {
	key, err := readMasterKey(d.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no master key in %s: nodes that share a database also share a master key. "+
			"Pass it with --master-key-file or STEPMILL_MASTER_KEY; `stepmill master-key create FILE` creates one", d.KeyFile())
	}
	return key, err
}

func (d sharedDatabase) keepsPrevious(filesPlace) bool { return false }
func (d sharedDatabase) commandDir() string            { return "" }

func (d sharedDatabase) inServerOr(_ context.Context, _ []string, _, _ io.Writer, do func(readOnly bool) error) error {
	return do(false)
}

// lock implements location. backend.checkUnused looks for nodes.
func (d sharedDatabase) lock(context.Context, bool) (unlock func() error, err error) {
	return func() error { return nil }, nil
}

func (d sharedDatabase) prepareServer(_ context.Context, _ *storage, serve config.Serve, _ *slog.Logger) (sqlite.Options, error) {
	return sqlite.Options{Migrate: serve.Migrate}, nil
}

// finishRotation implements location. A rotation may be in progress: this node uses the
// key that matches, and leaves the files alone.
func (d sharedDatabase) finishRotation(*core) error { return nil }

func (d sharedDatabase) open(ctx context.Context, opts sqlite.Options) (backend, error) {
	if opts.Migrate {
		if err := d.migrate(ctx); err != nil {
			return nil, err
		}
	}
	db, err := postgres.Open(ctx, d.options())
	if err != nil {
		return nil, err
	}
	asked := clock.Monotonic()
	if now, steady, err := db.Clock(ctx); err == nil { // the next query reports an error
		clock.Follow(now, asked)
		clock.Resume(steady)
	}
	return sharedBackend{db, d}, nil
}

// sharedBackend is a database that nodes share.
type sharedBackend struct {
	*postgres.DB
	at sharedDatabase
}

// resumeClock implements backend. The clock was read when the database was opened.
func (b sharedBackend) resumeClock(context.Context, *store.DB) error { return nil }

func (b sharedBackend) checkUnused(ctx context.Context) error {
	nodes, err := b.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%d nodes use the database, the first is %s on %s: stop all of them", len(nodes), nodes[0].ID, nodes[0].Name)
	}
	return nil
}

func (b sharedBackend) ping(ctx context.Context, _ *store.DB) error { return b.Ping(ctx) }
func (b sharedBackend) stalled(time.Duration) func() bool           { return nil }
func (b sharedBackend) checkNodes(workflows *workflow.Service)      { workflows.CheckNodes(b.DB) }

func (b sharedBackend) snapshot(context.Context, int64, func()) (*sqlite.Snapshot, error) {
	return nil, errSharedDatabase
}

func (b sharedBackend) openFiles() (filesPlace, error) {
	return filesPlace{sharedPlace, blobpostgres.New(b.Pool()), postgresCapacity}, nil
}

// checkFiles implements backend. While there are other nodes, the place cannot change.
func (b sharedBackend) checkFiles(ctx context.Context, st *store.DB, place filesPlace) error {
	nodes, err := b.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	return checkFilesPlace(ctx, st, place, len(nodes) == 0)
}

func (b sharedBackend) openDisk(context.Context, *disk, config.DiskReserve) {}
func (b sharedBackend) watchDisk(context.Context, *disk) error              { return nil }

func (b sharedBackend) collect(ctx context.Context, m *telemetry.Scrape, _ *disk) {
	oldest, err := b.OldestTransaction(ctx)
	if err != nil {
		m.Failed(fmt.Errorf("find the oldest open transaction: %w", err))
		return
	}
	m.Set(telemetry.PostgresXact, oldest.Seconds())
}

func (b sharedBackend) join(ctx context.Context, config cluster.Config, lease time.Duration, place filesPlace) (cluster.Topology, error) {
	topology, err := cluster.Join(ctx, cluster.SharedConfig{
		Config: config, DB: b.DB, Options: b.at.options(), ListenURL: b.at.ListenURL, Lease: max(time.Second, lease),
	})
	if err != nil {
		return nil, err
	}
	// Another node may have started at the same time, with another place for files.
	return topology, checkFilesPlace(ctx, config.Store, place, false)
}
