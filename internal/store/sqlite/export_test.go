package sqlite

// Exported for tests.
var (
	Explain = explain
	Fatal   = fatal
)

// Limits of the writer.
const (
	QueueLength = queueLength
	MaxGroup    = maxGroup
)

// Queued returns the number of queued writes.
func (db *DB) Queued() int { return len(db.writer.queue) }

// Readers returns the number of connections in the pool.
func (db *DB) Readers() int { return cap(db.readers.free) }

// Checkpoint truncates the write-ahead log as an idle writer does. The writer
// must be idle.
func (db *DB) Checkpoint() { db.writer.checkpoint(0) }

// Maintain runs the maintenance of an idle writer. The writer must be idle.
func (db *DB) Maintain() { db.writer.maintain() }

// CheckLater makes Run check the file as if it were too large to be checked
// before serving.
func (db *DB) CheckLater() { db.check.later = true }
