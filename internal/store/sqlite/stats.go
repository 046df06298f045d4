package sqlite

import (
	"os"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/tally"
)

// The kinds of errors that are counted.
const (
	errFull     = "full"
	errReadOnly = "read_only"
	errBusy     = "busy" // also a query that took too long
	errIO       = "io"
	errDamaged  = "damaged"
)

// counts is what the database counts.
type counts struct {
	units   *tally.Set
	groups  *tally.Histogram
	commits *tally.Histogram
	errors  *tally.Set
}

func newCounts() *counts {
	return &counts{
		units:  tally.NewSet(store.UnitDone, store.UnitRolledBack, store.UnitFailed),
		groups: tally.NewSizes(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
		commits: tally.NewTimes(100*time.Microsecond, 250*time.Microsecond, 500*time.Microsecond, time.Millisecond, 2500*time.Microsecond,
			5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second),
		errors: tally.NewSet(errFull, errReadOnly, errBusy, errIO, errDamaged, tally.Other),
	}
}

// group counts a commit with the units in it; err says that all are lost.
func (c *counts) group(group []*request, took time.Duration, err error) {
	c.groups.Count(int64(len(group)))
	c.commits.Took(took)
	if err != nil {
		c.failed(err)
	}
	for _, r := range group {
		switch {
		case err != nil:
			c.units.Add(store.UnitFailed)
		case r.result == nil:
			c.units.Add(store.UnitDone)
		case ofDatabase(r.result):
			c.units.Add(store.UnitFailed)
			c.failed(r.result)
		default:
			c.units.Add(store.UnitRolledBack)
		}
	}
}

// failed counts an error of the database.
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
		c.errors.Add(tally.Other)
	}
}

// ofDatabase tells an error of the database from one that comes from above,
// which has the code that SQLite gives to mistakes in a statement.
func ofDatabase(err error) bool { return err != nil && sqlite.ErrCode(err) != sqlite.ResultError }

// Stats tells what the database has done.
func (db *DB) Stats() store.Stats {
	c := db.counts
	return store.Stats{
		Units: c.units.Counts(), Groups: c.groups.Snapshot(), Commits: c.commits.Snapshot(), Errors: c.errors.Counts(), Waiting: len(db.writer.queue),
	}
}

// Files is how much room the database takes.
type Files struct {
	Bytes    int64 // of the file itself
	LogBytes int64 // of the write-ahead log
	Free     int64 // on the disk, for us; -1: not known
}

// Files tells how much room the database takes.
func (db *DB) Files() Files {
	files := Files{LogBytes: db.writer.logSize(), Free: freeBytes(db.path)}
	if info, err := os.Stat(db.path); err == nil {
		files.Bytes = info.Size()
	}
	return files
}
