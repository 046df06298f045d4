package sqlite

import (
	"os"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/store"
)

// Labels of the errors that are counted.
const (
	errFull     = "full"
	errReadOnly = "read_only"
	errBusy     = "busy" // also for a query that took too long
	errIO       = "io"
	errDamaged  = "damaged"
)

type counts struct {
	transactions *counter.Set
	groups       *counter.Histogram
	commits      *counter.Histogram
	errors       *counter.Set
}

func newCounts() *counts {
	return &counts{
		transactions: counter.NewSet(store.TransactionCommitted, store.TransactionRolledBack, store.TransactionFailed),
		groups:       counter.NewSizes(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
		commits: counter.NewDurations(100*time.Microsecond, 250*time.Microsecond, 500*time.Microsecond, time.Millisecond, 2500*time.Microsecond,
			5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second),
		errors: counter.NewSet(errFull, errReadOnly, errBusy, errIO, errDamaged, counter.Other),
	}
}

// group counts a commit and the writes in it; err is set if all of them failed.
func (c *counts) group(group []*writeRequest, took time.Duration, err error) {
	c.groups.Observe(int64(len(group)))
	c.commits.ObserveDuration(took)
	if err != nil {
		c.failed(err)
	}
	for _, r := range group {
		switch {
		case err != nil:
			c.transactions.Add(store.TransactionFailed)
		case r.err == nil:
			c.transactions.Add(store.TransactionCommitted)
		case isDatabaseError(r.err):
			c.transactions.Add(store.TransactionFailed)
			c.failed(r.err)
		default:
			c.transactions.Add(store.TransactionRolledBack)
		}
	}
}

func (c *counts) failed(err error) {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		c.errors.Add(errFull)
	case sqlite.ResultReadOnly, sqlite.ResultPerm:
		c.errors.Add(errReadOnly)
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultInterrupt:
		c.errors.Add(errBusy)
	case sqlite.ResultIOErr, sqlite.ResultCantOpen:
		c.errors.Add(errIO)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		c.errors.Add(errDamaged)
	default:
		c.errors.Add(counter.Other)
	}
}

// isDatabaseError distinguishes errors of the database from those of the callers'
// code, which have the code that SQLite uses for errors in a statement.
func isDatabaseError(err error) bool { return err != nil && sqlite.ErrCode(err) != sqlite.ResultError }

// Stats returns the counters of the database.
func (db *DB) Stats() store.Stats {
	c := db.counts
	return store.Stats{
		Transactions: c.transactions.Counts(), Groups: c.groups.Snapshot(), Commits: c.commits.Snapshot(), Errors: c.errors.Counts(), Waiting: len(db.writer.queue),
	}
}

// Files is the disk space that the database takes.
type Files struct {
	Bytes    int64 // size of the database file
	LogBytes int64 // size of the write-ahead log
	Free     int64 // space left on the disk; -1 if unknown
}

// Space returns the space left on the disk of the database and the size of the disk, or
// -1 if they are unknown.
func (db *DB) Space() (free, total int64) { return diskSpace(db.path) }

// Files returns the disk space that the database takes.
func (db *DB) Files() Files {
	free, _ := db.Space()
	files := Files{LogBytes: db.writer.log.size(), Free: free}
	if info, err := os.Stat(db.path); err == nil {
		files.Bytes = info.Size()
	}
	return files
}
