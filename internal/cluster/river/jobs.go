package river

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store/postgres"
)

// queueName returns the River queue for runs of a level. A node fetches from the queues of
// the levels that it knows, and so leaves runs to newer nodes that only they can execute.
func queueName(level int) string {
	if level < release.First {
		return "runs"
	}
	return fmt.Sprintf("runs_%d", level)
}

func queues(known int) map[string]river.QueueConfig {
	all := map[string]river.QueueConfig{}
	for level := release.First - 1; level <= known; level++ {
		all[queueName(level)] = river.QueueConfig{MaxWorkers: maxClaims}
	}
	return all
}

// EnqueueJobs enqueues runs for any node, in the transaction of the caller.
func (d *Dispatcher) EnqueueJobs(ctx context.Context, conn database.Conn, runs []run.Job) error {
	tx, err := postgres.Tx(conn)
	if err != nil {
		return err
	}
	jobs, now := make([]river.InsertManyParams, len(runs)), clock.Steady()
	for i, h := range runs {
		opts := &river.InsertOpts{Queue: queueName(h.Level), Priority: priority(h.InFlight), MaxAttempts: maxAttempts}
		// River checks scheduled jobs only periodically, so due jobs must not have a
		// time. Others have a steady time: see scheduleJobs.
		if at := h.At.Add(-scheduleLead); at.After(now) {
			opts.ScheduledAt = at
		}
		jobs[i] = river.InsertManyParams{Args: wakeUp{RunID: h.RunID, Epoch: h.Epoch, At: h.At, Isolated: h.Isolated()}, InsertOpts: opts}
	}
	// Do not use COPY: if this node is paused during it, the database waits forever
	// and keeps the locks of the transaction.
	_, err = d.client.InsertManyTx(ctx, tx, jobs)
	return err
}

// fetchTimeout is how long a fetched job counts as being worked on. It is longer than jobTime,
// after which its node gives up, so that no job is enqueued again while a node may still claim the
// run.
const fetchTimeout = 15 * time.Second

// HasJob reports which of the given runs have a job that is due about now.
func (d *Dispatcher) HasJob(ctx context.Context, conn database.Conn, ids []string) (map[string]bool, error) {
	tx, err := postgres.Tx(conn)
	if err != nil {
		return nil, err
	}
	// Do not prepare the statement: a generic query plan compares each id with each
	// job.
	rows, err := tx.Query(ctx, `SELECT DISTINCT args->>'run_id' FROM `+jobTable+` WHERE kind = 'wake_up' AND args->>'run_id' = ANY($1)
		AND (state = 'available' OR state IN ('retryable', 'scheduled') AND scheduled_at < $3
		OR state = 'running' AND attempted_at BETWEEN now() - $2::bigint * interval '1 microsecond' AND now() + $2::bigint * interval '1 microsecond')`,
		pgx.QueryExecModeCacheDescribe, ids, fetchTimeout.Microseconds(), clock.Steady().Add(fetchTimeout))
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	hasJob := make(map[string]bool, len(found))
	for _, id := range found {
		hasJob[id] = true
	}
	return hasJob, err
}

// priority prefers runs of workspaces with few runs in flight, so that a workspace
// with one run does not wait for the ten thousand of another.
func priority(inFlight int) int {
	switch {
	case inFlight <= 8:
		return 1
	case inFlight <= 64:
		return 2
	case inFlight <= 256:
		return 3
	}
	return 4
}

// maxAttempts is high because jobs only fail while the database is unavailable.
const maxAttempts = 1000

const (
	// scheduleEvery is how often each node makes scheduled jobs available. Like River,
	// it includes those that become due before the next time.
	scheduleEvery = 5 * time.Second
	// jobBatch bounds how many jobs one statement changes.
	jobBatch = 1000
)

// scheduleJobs makes scheduled jobs available until the context ends. The leader of
// River does this too, but by the clock of its machine: if that is slow or was set, jobs
// would wait too long, or come too early and become local timers. This uses the steady
// time. Available jobs have a time by the clock of the database, before which no node
// fetches them. If that was set back, they get a new one.
func (d *Dispatcher) scheduleJobs(ctx context.Context) {
	for clock.Sleep(ctx, scheduleEvery) {
		err := d.inBatches(ctx, `UPDATE `+jobTable+` SET state = 'available', scheduled_at = CASE state WHEN 'available' THEN now() ELSE now() + (scheduled_at - $1) END WHERE id IN
			(SELECT id FROM `+jobTable+` WHERE kind = 'wake_up' AND (state IN ('retryable', 'scheduled') AND scheduled_at <= $1::timestamptz + $3::bigint * interval '1 microsecond'
				OR state = 'available' AND scheduled_at > now() + 2 * $3 * interval '1 microsecond') ORDER BY scheduled_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
			clock.Steady(), jobBatch, scheduleEvery.Microseconds())
		if err != nil && ctx.Err() == nil {
			d.log.Warn("cannot schedule jobs; retrying", "error", err)
		}
	}
}

// DeleteStaleJobs deletes scheduled jobs that no run waits for any more: a run that
// was going to wait for a year may have ended after a second.
func (d *Dispatcher) DeleteStaleJobs(ctx context.Context) error {
	return d.inBatches(ctx, `DELETE FROM `+jobTable+` WHERE id IN
		(SELECT j.id FROM `+jobTable+` j WHERE j.state = 'scheduled' AND j.kind = 'wake_up' AND NOT EXISTS
			(SELECT 1 FROM run_queue q WHERE q.run_id = j.args->>'run_id' AND q.epoch = (j.args->>'epoch')::bigint) LIMIT $1)`, jobBatch)
}

// inBatches repeats a statement until it changes fewer than jobBatch rows.
func (d *Dispatcher) inBatches(ctx context.Context, statement string, args ...any) error {
	for {
		limit, cancel := context.WithTimeout(ctx, jobTime)
		tag, err := d.config.Pool.Exec(limit, statement, args...)
		cancel()
		if err != nil || tag.RowsAffected() < jobBatch {
			return err
		}
	}
}

// ReleaseJobs makes the jobs that a dead node had fetched available to other nodes,
// and ends its term as the leader of River. It does nothing if the node is alive.
func ReleaseJobs(ctx context.Context, tx pgx.Tx, node string) error {
	const dead = ` AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND NOT dead)`
	_, err := tx.Exec(ctx, `WITH l AS (DELETE FROM `+Schema+`.river_leader WHERE leader_id = $1`+dead+`)
		UPDATE `+jobTable+` SET state = 'available' WHERE state = 'running' AND attempted_by[array_length(attempted_by, 1)] = $1`+dead, node)
	return err
}
