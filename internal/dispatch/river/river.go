// Package river brings runs to nodes that share a PostgreSQL database. What a
// node accepts it executes itself if it has room; River, an engine for jobs in
// PostgreSQL, carries the rest: hand-overs between nodes and the times that runs
// wait for. A job only says that a run has something to do. Taking the run up is
// a write of the store that succeeds for one node, and the job is completed by
// the same write; runs are never executed inside a job.
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
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// queueName is that of ours among River's.
	queueName = "runs"
	// claims is how many runs a node takes up at the same time.
	claims = 64
	// fetchPause bounds how often a node asks for jobs, and tells others of new
	// ones; fetchEvery is how often it asks without having been told.
	fetchPause, fetchEvery = 50 * time.Millisecond, time.Second
	// jobTime bounds the taking up of one run.
	jobTime = 10 * time.Second
	// keepJobs is how long a job that is done can be looked at.
	keepJobs = time.Minute
	// early is how long before its time a run is brought to a node, which then
	// watches the time itself: River looks at what is scheduled every 5 seconds.
	early = 2 * time.Second
)

// Store takes runs up for this node.
type Store interface {
	// Claim takes up a run, and completes what brought it in the same unit; nil
	// when there is nothing to complete.
	Claim(ctx context.Context, wake run.Wake, complete func(context.Context, pgx.Tx) error) (run.Wake, run.Claimed, error)
	// PassOn gives the free slots of a workspace to runs that are parked. It
	// answers true when there may be more.
	PassOn(ctx context.Context, workspaceID string) (bool, error)
	// GiveBack puts runs that this node has, and nobody works on, on their way to
	// any node.
	GiveBack(ctx context.Context, runs []run.Wake) error
}

// Config says how a node takes part.
type Config struct {
	Node string
	// Capacity is how many runs the node executes at a time.
	Capacity int
	// Trusted tells whether what the node takes up stays its own. While it was not
	// seen for too long, others would take it away again.
	Trusted func() bool
	// Pool has the connections of River.
	Pool *pgxpool.Pool
	// Schema is where River's tables are.
	Schema string
	// PollOnly says that the pool cannot be used to listen.
	PollOnly bool
	Log      *slog.Logger
}

// Dispatcher is a dispatch.Source.
type Dispatcher struct {
	config Config
	store  Store
	client *river.Client[pgx.Tx]
	log    *slog.Logger

	mu      sync.Mutex
	ready   []run.Wake       // in our hands, to be worked on
	out     int              // being worked on
	suspect int              // of these and the ready ones, how many are under suspicion
	kept    map[string]place // for runs that are about to come
	timers  timers
	taking  map[string]bool // runs whose time has come, while they are taken up
	takers  sync.WaitGroup  // who do that
	passing map[string]bool
	leaving bool

	more    chan struct{} // there may be something for Next
	room    chan struct{} // there may be room for another run
	earlier chan struct{} // a timer may be due sooner
	freed   chan struct{} // there are slots to pass on
}

// place is one that is kept for a run.
type place struct {
	until   time.Time
	suspect bool
}

// New makes the dispatcher of a node.
func New(store Store, config Config) (*Dispatcher, error) {
	d := &Dispatcher{
		config: config, store: store, log: config.Log,
		kept: map[string]place{}, taking: map[string]bool{}, passing: map[string]bool{},
		more: make(chan struct{}, 1), room: make(chan struct{}, 1), earlier: make(chan struct{}, 1), freed: make(chan struct{}, 1),
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{dispatcher: d}); err != nil {
		return nil, err
	}
	var err error
	d.client, err = river.NewClient(riverpgxv5.New(config.Pool), &river.Config{
		ID:                          config.Node,
		Schema:                      config.Schema,
		Queues:                      map[string]river.QueueConfig{queueName: {MaxWorkers: claims}},
		Workers:                     workers,
		FetchCooldown:               fetchPause,
		FetchPollInterval:           fetchEvery,
		JobTimeout:                  jobTime,
		RescueStuckJobsAfter:        time.Minute,
		CompletedJobRetentionPeriod: keepJobs,
		PollOnly:                    config.PollOnly,
		// It would build indexes anew under time limits that are made for other
		// things, and leave the halves of those that it could not finish.
		ReindexerSchedule: river.NeverSchedule(),
		RetryPolicy:       steady{},
		Test:              river.TestConfig{Time: shared{}},
		Logger:            slog.New(quiet{config.Log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the hand-over of runs: %w", err)
	}
	return d, nil
}

// Hand puts runs on their way to any node, in the transaction of whoever decided
// so.
func (d *Dispatcher) Hand(ctx context.Context, tx pgx.Tx, runs []run.Handover) error {
	jobs, now := make([]river.InsertManyParams, len(runs)), clock.Now()
	for i, h := range runs {
		opts := &river.InsertOpts{Queue: queueName, Priority: priority(h.Under), MaxAttempts: attempts}
		// A job with a time is first looked at when River next looks at those:
		// what is due has none.
		if at := h.At.Add(-early); at.After(now) {
			opts.ScheduledAt = at
		}
		jobs[i] = river.InsertManyParams{Args: wakeUp{RunID: h.RunID, Epoch: h.Epoch, At: h.At, Suspect: h.Isolated()}, InsertOpts: opts}
	}
	// Not with COPY, for which the database waits without end when this node is
	// paused: what the transaction has locked would be locked for as long.
	_, err := d.client.InsertManyTx(ctx, tx, jobs)
	return err
}

// overdue is after which time a node that has fetched a job is not waited for.
const overdue = 15 * time.Second

// Carried tells which of the given runs are on their way to a node: there is a
// job for each that is due about now.
func (d *Dispatcher) Carried(ctx context.Context, tx pgx.Tx, ids []string) (map[string]bool, error) {
	table := pgx.Identifier{d.config.Schema, "river_job"}.Sanitize()
	// Not prepared: a plan that does not know the ids compares each of them with each
	// job.
	rows, err := tx.Query(ctx, `SELECT DISTINCT args->>'run_id' FROM `+table+` WHERE queue = $1 AND args->>'run_id' = ANY($2)
		AND (state IN ('available', 'retryable', 'scheduled') AND scheduled_at < now() + $3::bigint * interval '1 microsecond'
		OR state = 'running' AND attempted_at > now() - $3::bigint * interval '1 microsecond')`,
		pgx.QueryExecModeCacheDescribe, queueName, ids, overdue.Microseconds())
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	carried := make(map[string]bool, len(found))
	for _, id := range found {
		carried[id] = true
	}
	return carried, err
}

// priority puts runs of a workspace that has few under way before those of one
// that has many: the one with a single run is not behind another's ten thousand.
func priority(under int) int {
	switch {
	case under <= 8:
		return 1
	case under <= 64:
		return 2
	case under <= 256:
		return 3
	}
	return 4
}

// attempts is how often a job is tried: as long as the database makes it fail.
const attempts = 1000

// steady tries again after a second: what fails is the database, and it comes
// back.
type steady struct{}

// NextRetry implements river.ClientRetryPolicy.
func (steady) NextRetry(*rivertype.JobRow) time.Time { return clock.Now().Add(time.Second) }

// shared makes River go by the clock that all nodes share: by that of a machine
// that is ahead, others would find what it puts back much later.
type shared struct{}

// Now implements rivertype.TimeGenerator.
func (shared) Now() time.Time { return clock.Reading() }

// NowOrNil implements rivertype.TimeGenerator: the database knows better.
func (shared) NowOrNil() *time.Time { return nil }

// quiet keeps what River tells of its own work out of the log: of runs, the
// store knows better.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}
