package river

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store/postgres"
)

// wakeUp are the arguments of a job: a run that is due.
type wakeUp struct {
	RunID string    `json:"run_id"`
	Epoch int64     `json:"epoch"`
	At    time.Time `json:"at"`
	// Isolated reports whether the run is executed in isolation.
	Isolated bool `json:"suspect,omitempty"`
}

// Kind implements river.JobArgs.
func (wakeUp) Kind() string { return "wake_up" }

type worker struct {
	river.WorkerDefaults[wakeUp]
	dispatcher *Dispatcher
}

const (
	// capacityWait is how long a job waits for capacity on its node before it is
	// snoozed for other nodes.
	capacityWait = 500 * time.Millisecond
	// snoozeMin and snoozeMax are the bounds of the snooze.
	snoozeMin, snoozeMax = 100 * time.Millisecond, fetchEvery + 100*time.Millisecond
)

// snooze returns the error that snoozes a job for a random time. Nodes poll at a
// constant interval, so after a constant time the same full node could fetch the job
// again and again.
//
// River adds the duration to the time of this machine, and the database compares the
// result with its own. If this machine's clock is ahead, the duration can be
// negative, which river.JobSnooze does not accept.
func snooze() error {
	return &river.JobSnoozeError{Duration: snoozeMin + rand.N(snoozeMax-snoozeMin) + clock.Offset()}
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[wakeUp]) error {
	d := w.dispatcher
	wake := run.Wake{RunID: job.Args.RunID, Epoch: job.Args.Epoch, At: job.Args.At}
	if d.Draining() || !wake.At.After(clock.Steady()) && !d.waitForCapacity(ctx, wake.RunID, job.Args.Isolated) {
		return snooze()
	}
	err := d.claim(ctx, wake, func(ctx context.Context, conn database.Conn) error {
		tx, err := postgres.Tx(conn)
		if err == nil {
			_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		}
		return err
	})
	if err != nil {
		d.Unreserve(wake.RunID)
	}
	return err
}

// claim claims a run and queues it, or sets a local timer for it.
func (d *Dispatcher) claim(ctx context.Context, wake run.Wake, complete func(context.Context, database.Conn) error) error {
	claimed, outcome, err := d.store.Claim(ctx, wake, complete)
	if err != nil {
		return err
	}
	switch outcome {
	case run.ClaimOwned, run.ClaimLocalTimer:
		d.Wake(claimed)
	default:
		d.Unreserve(wake.RunID)
	}
	return nil
}

func (d *Dispatcher) waitForCapacity(ctx context.Context, runID string, isolated bool) bool {
	timer := time.NewTimer(capacityWait)
	defer timer.Stop()
	for {
		if d.reserve(runID, d.config.Capacity, isolated) {
			return true
		}
		select {
		case <-d.capacityFreed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
