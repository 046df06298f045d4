package postgres

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store"
)

// kindNames are the labels of the errors that are counted.
var kindNames = map[kind]string{conflict: "conflict", unavailable: "away", unknown: "unknown", full: "full", readOnly: "read_only"}

type counts struct {
	transactions *counter.Set
	groups       *counter.Histogram
	commits      *counter.Histogram
	errors       *counter.Set
}

func newCounts() *counts {
	c := &counts{
		transactions: counter.NewSet(store.TransactionCommitted, store.TransactionRolledBack, store.TransactionFailed),
		groups:       counter.NewSizes(1, 2, 4, 8, 16, 32, 64),
		commits: counter.NewDurations(500*time.Microsecond, time.Millisecond, 2500*time.Microsecond, 5*time.Millisecond, 10*time.Millisecond,
			25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second),
	}
	known := []string{counter.Other}
	for _, name := range kindNames {
		known = append(known, name)
	}
	c.errors = counter.NewSet(known...)
	return c
}

// transaction counts the outcome of a transaction, by its last error.
func (c *counts) transaction(k kind, err error) {
	switch {
	case err == nil:
		c.transactions.Add(store.TransactionCommitted)
	case k == other && !isDatabaseError(err):
		c.transactions.Add(store.TransactionRolledBack)
	default:
		c.transactions.Add(store.TransactionFailed)
	}
}

// commit counts a commit shared by that many transactions, whatever its outcome.
func (c *counts) commit(transactions int, begun time.Time) {
	c.groups.Observe(int64(transactions))
	c.commits.ObserveDuration(time.Since(begun))
}

// failed counts an error of the database, even if the transaction is retried.
func (c *counts) failed(k kind, err error) {
	if name, known := kindNames[k]; known {
		c.errors.Add(name)
	} else if isDatabaseError(err) {
		c.errors.Add(counter.Other)
	}
}

// isDatabaseError reports whether the database returned the error. An expectation
// that was not met does not count.
func isDatabaseError(err error) bool {
	_, is := errors.AsType[*pgconn.PgError](err)
	return is && !errors.Is(err, database.ErrUnexpected)
}

// Stats returns the counters of the database.
func (db *DB) Stats() store.Stats {
	c, pool := db.counts, db.pool.Stat()
	return store.Stats{
		Transactions: c.transactions.Counts(), Groups: c.groups.Snapshot(), Commits: c.commits.Snapshot(), Errors: c.errors.Counts(), Waiting: len(db.groups.queue),
		Connections: map[string]int64{
			"in_use": int64(pool.AcquiredConns()), "idle": int64(pool.IdleConns()),
			"free": int64(max(0, pool.MaxConns()-pool.AcquiredConns()-pool.IdleConns())),
		},
	}
}
