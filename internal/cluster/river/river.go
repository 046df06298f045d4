// Package river dispatches runs to nodes that share a PostgreSQL database. A node
// executes the runs that it accepts itself if it has capacity. All others, and runs
// that wait for a later time, become jobs of River, a job queue for PostgreSQL. A job
// only says that a run is due. A node claims the run in a transaction that succeeds
// for one node and also completes the job; runs are not executed inside jobs.
package river

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// maxClaims is the number of runs that a node claims at the same time.
	maxClaims = 64
	// fetchPause is the minimum time between two fetches, and between two
	// notifications of other nodes; fetchEvery is the polling interval.
	fetchPause, fetchEvery = 50 * time.Millisecond, time.Second
	// jobTime limits the time to claim one run.
	jobTime = 10 * time.Second
	// jobRetention is how long completed jobs are kept.
	jobRetention = time.Minute
	// scheduleLead is how long before a run is due its job becomes available. The node
	// that gets it sets a local timer, because River only checks scheduled jobs every 5
	// seconds.
	scheduleLead = 2 * time.Second
)

// Store claims runs for this node.
type Store interface {
	// Claim claims a run and calls complete, which completes its job, in the same
	// transaction.
	Claim(ctx context.Context, wake run.Wake, complete func(context.Context, database.Conn) error) (run.Wake, run.Claimed, error)
	// AdmitThrottled gives free slots of a workspace to its throttled runs. It returns
	// true if there may be more.
	AdmitThrottled(ctx context.Context, workspaceID string) (bool, error)
	// Requeue enqueues runs that this node owns but does not execute, for any node.
	Requeue(ctx context.Context, runs []run.Wake) error
}

// Config configures the dispatcher of a node.
type Config struct {
	Node string
	// Capacity is the number of runs that the node executes at a time.
	Capacity int
	// HoldsLease reports whether the node owns the runs that it claims. If its last
	// heartbeat is too old, other nodes may take them over.
	HoldsLease func() bool
	Pool       *pgxpool.Pool
	// PollOnly is set if the pool does not support LISTEN.
	PollOnly bool
	Log      *slog.Logger
}

// Dispatcher is a dispatch.Source.
type Dispatcher struct {
	config Config
	store  Store
	client *river.Client[pgx.Tx]
	log    *slog.Logger

	mu              sync.Mutex
	ready           []run.Wake             // owned by this node, not executing yet
	inFlight        int                    // executing
	isolated        int                    // how many of ready and inFlight are isolated
	reserved        map[string]reservation // for runs that are about to arrive
	timers          timers
	claiming        map[string]bool // due runs that are being claimed
	claimers        sync.WaitGroup  // goroutines that claim runs
	freedWorkspaces map[string]bool // may have slots for throttled runs
	draining        bool

	available          chan struct{} // there may be a run for Next
	capacityFreed      chan struct{} // there may be capacity for another run
	timerChanged       chan struct{} // a timer may be due sooner
	workspaceSlotFreed chan struct{} // freedWorkspaces is not empty
}

type reservation struct {
	until    time.Time
	isolated bool
}

// New returns the dispatcher of a node.
func New(store Store, config Config) (*Dispatcher, error) {
	d := &Dispatcher{
		config: config, store: store, log: config.Log,
		reserved: map[string]reservation{}, claiming: map[string]bool{}, freedWorkspaces: map[string]bool{},
		available: make(chan struct{}, 1), capacityFreed: make(chan struct{}, 1), timerChanged: make(chan struct{}, 1), workspaceSlotFreed: make(chan struct{}, 1),
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{dispatcher: d}); err != nil {
		return nil, err
	}
	var err error
	d.client, err = river.NewClient(riverpgxv5.New(config.Pool), &river.Config{
		ID:                          config.Node,
		Schema:                      Schema,
		Queues:                      queues(release.Known()),
		Workers:                     workers,
		FetchCooldown:               fetchPause,
		FetchPollInterval:           fetchEvery,
		JobTimeout:                  jobTime,
		RescueStuckJobsAfter:        time.Minute,
		CompletedJobRetentionPeriod: jobRetention,
		PollOnly:                    config.PollOnly,
		// The time limits of the connections are too short for a reindex, and an
		// aborted one leaves invalid indexes behind.
		ReindexerSchedule: river.NeverSchedule(),
		RetryPolicy:       constantRetry{},
		Logger:            slog.New(warnOnly{config.Log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the job queue: %w", err)
	}
	return d, nil
}

// constantRetry retries every second, until the database is available again.
type constantRetry struct{}

// NextRetry implements river.ClientRetryPolicy.
func (constantRetry) NextRetry(*rivertype.JobRow) time.Time { return clock.Now().Add(time.Second) }

// warnOnly drops River's log records below the level of warnings.
type warnOnly struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q warnOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}
