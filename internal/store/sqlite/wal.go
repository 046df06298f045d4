package sqlite

import (
	"os"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
)

const (
	// logParts is the number of times that the writer tries to truncate the write-ahead
	// log while it grows to its limit.
	logParts = 4
	// checkpointWait is how long the writer then waits for readers, because under
	// constant reading the log would grow without bound. limitWait is how long it waits
	// when the log has reached its limit; almost all reads end within that time.
	checkpointWait = time.Second
	limitWait      = 4 * time.Second
	// retryEvery is how often the writer tries again while the log exceeds its limit.
	retryEvery = time.Second
)

// logLimit returns the default limit of the size of the write-ahead log. It is several
// times what a busy server needs.
func logLimit() int64 {
	const limit = 256 << 20
	return failpoint.Limit("LOG_LIMIT", limit)
}

// walLimit limits the size of the write-ahead log. Except for exceeded, it belongs to the
// writer.
type walLimit struct {
	path  string
	limit int64
	// tried is the size that the log had after the last attempt to truncate it, triedAt
	// the time of that attempt.
	tried   int64
	triedAt time.Time
	// exceeded is true while the log is larger than its limit because something keeps it
	// from being truncated. onExceeded is called whenever the writer finds this.
	exceeded   *atomic.Bool
	onExceeded func()
}

func (l *walLimit) size() int64 {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// limitLog truncates the log when it has grown by a part of its limit since the last
// attempt, and tries again and again while the log exceeds its limit.
func (w *writer) limitLog() {
	l := &w.log
	size := l.size()
	if size < l.tried { // it has been truncated since
		l.tried = 0
	}
	switch {
	case size > l.limit && l.exceeded.Load():
		if clock.Monotonic().Sub(l.triedAt) >= retryEvery {
			w.checkpoint(0)
		}
	case size > l.limit:
		w.checkpoint(limitWait)
	case size >= l.tried+l.limit/logParts:
		w.checkpoint(checkpointWait)
	default:
		l.exceeded.Store(false)
	}
}

// checkpoint copies the log into the file and truncates it. If a reader is in the way,
// that happens later.
func (w *writer) checkpoint(wait time.Duration) {
	w.conn.raw.SetBusyTimeout(wait)
	_ = w.conn.run("PRAGMA wal_checkpoint(TRUNCATE)")
	w.conn.raw.SetBusyTimeout(busyTimeout)
	l := &w.log
	l.tried, l.triedAt = l.size(), clock.Monotonic()
	exceeded := l.tried > l.limit
	l.exceeded.Store(exceeded)
	if exceeded {
		l.onExceeded()
	}
}

// Log describes the write-ahead log.
type Log struct {
	Bytes int64
	Limit int64
	// Exceeded is true if the log is larger than its limit and cannot be truncated.
	// HeldBy then describes what is in the way.
	Exceeded bool
	HeldBy   string
}

// Log describes the write-ahead log.
func (db *DB) Log() Log {
	l := &db.writer.log
	log := Log{Bytes: l.size(), Limit: l.limit, Exceeded: l.exceeded.Load()}
	if log.Exceeded {
		log.HeldBy = db.holdsLog()
	}
	return log
}

// holdsLog describes what keeps the log from being truncated.
func (db *DB) holdsLog() string {
	const long = time.Second
	switch longest := db.readers.busy(); {
	case db.check.running.Load():
		return "the check of the database after an unclean stop"
	case longest > long:
		return "a read that has taken " + longest.Truncate(time.Second).String()
	default:
		return "reads that follow one another without a pause"
	}
}
