package postgres

import "time"

// Queued returns the number of queued transactions.
func (db *DB) Queued() int { return len(db.groups.queue) }

// ExpireHorizon makes the next OldestTransaction query the database.
func (db *DB) ExpireHorizon() { db.horizon.queriedAt = time.Time{} }

// ExtendHorizon makes the result of the last query valid for another hour.
func (db *DB) ExtendHorizon() { db.horizon.queriedAt = db.horizon.queriedAt.Add(time.Hour) }

// BeginStatements returns the statements that a transaction begins with.
func (db *DB) BeginStatements() []string { return db.begin }
