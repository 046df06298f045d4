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

// Checkpoint empties the write-ahead log as an idle writer does. The
// writer must be idle.
func (db *DB) Checkpoint() { db.writer.checkpoint(0) }

// Tidy does all that the writer does then. The writer must be idle.
func (db *DB) Tidy() { db.writer.tidy() }

// CheckLater makes Run check the file as it does with one that is too large to
// be checked before serving.
func (db *DB) CheckLater() { db.checkLater = true }
