package sqlite

// What tests outside of the package need to see of its inside.
var (
	Explain = explain
	Fatal   = fatal
)

// The bounds of the writer.
const (
	QueueLength = queueLength
	MaxGroup    = maxGroup
)

// Queued is how many units wait for the writer.
func (db *DB) Queued() int { return len(db.writer.queue) }

// Readers is how many connections the pool has.
func (db *DB) Readers() int { return cap(db.readers.free) }

// Checkpoint does what the writer does when it has been idle for a while. The
// writer must be idle.
func (db *DB) Checkpoint() { db.writer.checkpoint(0) }

// CheckLater makes Run check the file as it does with one that is too large to
// be checked before serving.
func (db *DB) CheckLater() { db.checkLater = true }
