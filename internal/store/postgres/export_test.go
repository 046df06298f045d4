package postgres

// Queued is how many units are.
func (db *DB) Queued() int { return len(db.groups.queue) }
