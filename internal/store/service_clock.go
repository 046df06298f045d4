package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// The rest is about the machine that wrote it. Before the runs, whose times it
// belongs to.
var serviceClockTable = Table{Name: "service_clock", Key: "id", Int: "id correction settled", NotExported: "seen boot booted_at"}

// ServiceClock reads the record of the steady time. It is empty if there is none.
func (s Installation) ServiceClock(ctx context.Context) (clock.Record, error) {
	found, err := readOne(ctx, s.db, `SELECT correction, seen, boot, booted_at FROM service_clock`, nil, func(row database.Row) (r clock.Record, err error) {
		var correction int64
		err = row.Scan(&correction, &r.Seen, &r.Boot, &r.BootedAt)
		r.Correction = time.Duration(correction) * time.Microsecond
		return r, err
	})
	if found == nil {
		return clock.Record{}, err
	}
	return *found, err
}

// SetServiceClock records the steady time. Only a process that does not share its
// database calls it; nodes record it with their heartbeats.
func (s Installation) SetServiceClock(ctx context.Context, r clock.Record) error {
	return s.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`INSERT INTO service_clock (id, correction, seen, boot, booted_at) VALUES (1, $1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET correction = excluded.correction, seen = excluded.seen, boot = excluded.boot, booted_at = excluded.booted_at`,
			r.Correction.Microseconds(), r.Seen, r.Boot, r.BootedAt)
	})
}

// SettleServiceClock adjusts some steps that wait until a time of day to a clock that was
// set since they began to wait, and in the end the schedules with an interval. It returns
// true if there may be more.
func (s Installation) SettleServiceClock(ctx context.Context) (more bool, err error) {
	var correction, settled int64
	if err := s.db.read(ctx, func(c database.Conn) error {
		return c.Query(`SELECT correction, settled FROM service_clock`, nil, func(r database.Row) error { return r.Scan(&correction, &settled) })
	}); err != nil || correction == settled {
		return false, err
	}
	err = s.db.write(ctx, func(tx *transaction) error {
		waiting, err := runqueue.WithShiftedWait(tx, string(action.AwaitsTime), correction, settleTolerance.Microseconds(), wakeBatch)
		if err != nil {
			return err
		}
		more = len(waiting) == wakeBatch
		for _, runID := range waiting {
			if running, err := runqueue.Lock(tx, runID); err != nil {
				return err
			} else if !running { // it ended in the meantime
				continue
			}
			if err := tx.Do(`UPDATE steps SET wake_at = deadline + $1 WHERE run_id = $2 AND status = 'waiting' AND awaits = $3`,
				correction, runID, string(action.AwaitsTime)); err != nil {
				return err
			}
			if err := announceAnswer(tx, runID, clock.Steady()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || more {
		return more, err
	}
	return false, s.settleIntervals(ctx, correction, settled)
}

// settleIntervals moves the times of schedules with an interval if the clock was set
// back: the next time would be too far away. It notes that everything has been adjusted
// to the correction; not together with the steps, because heartbeats write that row too.
func (s Installation) settleIntervals(ctx context.Context, correction, settled int64) error {
	return s.db.write(ctx, func(tx *transaction) error {
		n, err := tx.Exec(`UPDATE service_clock SET settled = $1 WHERE correction = $1 AND settled = $2`, correction, settled)
		back := correction - settled
		if err != nil || n == 0 || back <= 0 {
			return err
		}
		// Times that were set after the jump are not that far away.
		return tx.Do(`UPDATE triggers SET next_at = next_at - $1 WHERE type = 'schedule' AND next_at > $2 AND (spec LIKE '%"every":%' OR spec LIKE '%@every %')`,
			back, clock.Now().Add(time.Duration(back)*time.Microsecond))
	})
}

// settleTolerance is how far the end of a wait may be off before it is adjusted: the
// correction does not follow small changes of the clock.
const settleTolerance = 2 * clock.MaxStep
