package postgres

// Queued is how many units are.
func (db *DB) Queued() int { return len(db.groups.queue) }

// Opening are the statements that a transaction begins with.
func (db *DB) Opening() []string { return db.begin }
