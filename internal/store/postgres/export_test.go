package postgres

import "time"

// Queued is how many units are.
func (db *DB) Queued() int { return len(db.groups.queue) }

// LookAnew lets the next look for open transactions be one.
func (db *DB) LookAnew() { db.horizon.asked = time.Time{} }

// Opening are the statements that a transaction begins with.
func (db *DB) Opening() []string { return db.begin }
