package postgres

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/tally"
)

// names of the kinds of errors that are counted.
var names = map[kind]string{conflict: "conflict", away: "away", unknown: "unknown", full: "full", readOnly: "read_only"}

// counts is what the database counts.
type counts struct {
	units   *tally.Set
	groups  *tally.Histogram
	commits *tally.Histogram
	errors  *tally.Set
}

func newCounts() *counts {
	c := &counts{
		units:  tally.NewSet(store.UnitDone, store.UnitRolledBack, store.UnitFailed),
		groups: tally.NewSizes(1, 2, 4, 8, 16, 32, 64),
		commits: tally.NewTimes(500*time.Microsecond, time.Millisecond, 2500*time.Microsecond, 5*time.Millisecond, 10*time.Millisecond,
			25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second),
	}
	known := []string{tally.Other}
	for _, name := range names {
		known = append(known, name)
	}
	c.errors = tally.NewSet(known...)
	return c
}

// unit counts what came of a unit, by the error that it met last.
func (c *counts) unit(k kind, err error) {
	switch {
	case err == nil:
		c.units.Add(store.UnitDone)
	case k == other && !answered(err):
		c.units.Add(store.UnitRolledBack)
	default:
		c.units.Add(store.UnitFailed)
	}
}

// commit counts a transaction with so many units, whatever came of it.
func (c *counts) commit(units int, begun time.Time) {
	c.groups.Count(int64(units))
	c.commits.Took(time.Since(begun))
}

// failed counts an error of the database, also of what is tried again.
func (c *counts) failed(k kind, err error) {
	if name, known := names[k]; known {
		c.errors.Add(name)
	} else if answered(err) {
		c.errors.Add(tally.Other)
	}
}

// answered tells that the error is one of the database, and not the way in which
// a unit ends that expected something else.
func answered(err error) bool {
	_, is := errors.AsType[*pgconn.PgError](err)
	return is && !errors.Is(err, store.ErrUnexpected)
}

// Stats tells what the database has done.
func (db *DB) Stats() store.Stats {
	c, pool := db.counts, db.pool.Stat()
	return store.Stats{
		Units: c.units.Counts(), Groups: c.groups.Snapshot(), Commits: c.commits.Snapshot(), Errors: c.errors.Counts(), Waiting: len(db.groups.queue),
		Connections: map[string]int64{
			"in_use": int64(pool.AcquiredConns()), "idle": int64(pool.IdleConns()),
			"free": int64(max(0, pool.MaxConns()-pool.AcquiredConns()-pool.IdleConns())),
		},
	}
}
