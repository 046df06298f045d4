package river

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// wakeUp is the job that says that a run has something to do.
type wakeUp struct {
	RunID string    `json:"run_id"`
	Epoch int64     `json:"epoch"`
	At    time.Time `json:"at"`
	// Suspect says that the run is executed by itself.
	Suspect bool `json:"suspect,omitempty"`
}

// Kind implements river.JobArgs.
func (wakeUp) Kind() string { return "wake_up" }

// worker takes up the runs that jobs tell of.
type worker struct {
	river.WorkerDefaults[wakeUp]
	dispatcher *Dispatcher
}

const (
	// waitForRoom is how long a job waits for room on the node that has it,
	// before it goes back to where others find it.
	waitForRoom = 500 * time.Millisecond
	// comeBackMin and comeBackMax bound when it does.
	comeBackMin, comeBackMax = 100 * time.Millisecond, fetchEvery + 100*time.Millisecond
)

// comeBack is after how long a job can be found again. Nodes ask at an even
// pace: after an even pause it would be found by the same full one again and
// again.
func comeBack() time.Duration {
	return comeBackMin + rand.N(comeBackMax-comeBackMin)
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[wakeUp]) error {
	d := w.dispatcher
	wake := run.Wake{RunID: job.Args.RunID, Epoch: job.Args.Epoch, At: job.Args.At}
	if d.Leaving() || !wake.At.After(clock.Now()) && !d.keep(ctx, wake.RunID, job.Args.Suspect) {
		return river.JobSnooze(comeBack())
	}
	err := d.claim(ctx, wake, func(ctx context.Context, tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
	if err != nil {
		d.Unreserve(wake.RunID)
	}
	return err
}

// claim takes up a run for which there is room, or watches its time.
func (d *Dispatcher) claim(ctx context.Context, wake run.Wake, complete func(context.Context, pgx.Tx) error) error {
	claimed, outcome, err := d.store.Claim(ctx, wake, complete)
	if err != nil {
		return err
	}
	switch outcome {
	case run.ClaimOwned, run.ClaimArmed:
		d.Wake(claimed)
	default:
		d.Unreserve(wake.RunID)
	}
	return nil
}

// keep waits for room for a run that is about to be taken up.
func (d *Dispatcher) keep(ctx context.Context, runID string, suspect bool) bool {
	timer := time.NewTimer(waitForRoom)
	defer timer.Stop()
	for {
		if d.reserve(runID, d.config.Capacity, suspect) {
			return true
		}
		select {
		case <-d.room:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
