package postgres

import "time"

// AwaitQueued waits until that many units are queued.
func (db *DB) AwaitQueued(n int) {
	for len(db.groups.queue) < n {
		time.Sleep(time.Millisecond)
	}
}
