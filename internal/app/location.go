package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/workflow"
)

// location is where the data of an installation is: in a data directory or in a database
// that nodes share. Its methods, and those of the backend that it opens, are all that
// differs between the two.
type location interface {
	describe() string
	// needDirectory returns an error if there is no data directory, for commands that
	// replace its files.
	needDirectory() error
	// needShared returns an error if nodes cannot share the data.
	needShared() error
	// migrate brings the schema up to date for the next start.
	migrate(context.Context) error
	// masterKey reads the master key. Only a server may create one.
	masterKey(serving bool) ([]byte, error)
	// keepsPrevious reports whether there is still a database that a restore replaced,
	// and whose files are in the same place as those of the current one.
	keepsPrevious(filesPlace) bool
	// commandDir returns the directory with the socket on which a server takes commands;
	// empty if commands open the database themselves.
	commandDir() string

	// inServerOr runs a command line in the server that keeps others from opening the
	// data. If there is none, it calls do, which must not write if readOnly is set.
	inServerOr(ctx context.Context, args []string, stdout, stderr io.Writer, do func(readOnly bool) error) error
	// lock keeps servers from using the data until unlock. If there is no data, it creates
	// the location or fails.
	lock(ctx context.Context, create bool) (unlock func() error, err error)
	// prepareServer does what comes before a server opens the data.
	prepareServer(ctx context.Context, d *storage, serve config.Serve, log *slog.Logger) (sqlite.Options, error)
	// finishRotation completes or undoes an interrupted rotation of the master key.
	finishRotation(*core) error
	open(context.Context, sqlite.Options) (backend, error)
}

// locate returns the location that the settings name. No other function asks which of the
// two it is.
func locate(data config.Data) location {
	if data.Shared() {
		return sharedDatabase{data}
	}
	return directory{data}
}

// backend is an open database.
type backend interface {
	store.Mover
	Run(ctx context.Context) error
	Stats() store.Stats
	serving

	// resumeClock continues the steady time of the installation.
	resumeClock(context.Context, *store.DB) error
	// checkUnused returns an error if nodes use the database.
	checkUnused(context.Context) error
	// checkNodes makes a service refuse workflows that one of the nodes cannot execute.
	checkNodes(*workflow.Service)
	// openFiles opens the place of files that belongs to the database.
	openFiles() (filesPlace, error)
}

// serving is what only a server does with an open database.
type serving interface {
	// ping returns an error if the database cannot be read.
	ping(context.Context, *store.DB) error
	// stalled returns a function that reports whether the disk has not responded for
	// longer than the limit; nil if the database limits every call itself.
	stalled(limit time.Duration) func() bool
	// snapshot opens a copy of the database, for a backup.
	snapshot(ctx context.Context, spare int64, progress func()) (*sqlite.Snapshot, error)
	// checkFiles compares a place of files with the recorded one.
	checkFiles(context.Context, *store.DB, filesPlace) error
	// openDisk looks at the disk of the database for the first time, and watchDisk until
	// the context ends.
	openDisk(context.Context, *disk, config.DiskReserve)
	watchDisk(context.Context, *disk) error
	// collect sets the metrics of the database.
	collect(context.Context, *telemetry.Scrape, *disk)
	// join returns the topology of a process that uses the database.
	join(ctx context.Context, config cluster.Config, lease time.Duration, place filesPlace) (cluster.Topology, error)
}
