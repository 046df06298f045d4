package postgres

import "context"

// tidied bounds how many jobs one statement removes.
const tidied = 1000

// Tidy removes the jobs of times that no run waits for any more: a run that was
// to wait for a year may have ended after a second.
func (db *DB) Tidy(ctx context.Context) error {
	for {
		removed, err := db.tidy(ctx)
		if err != nil || removed < tidied {
			return err
		}
	}
}

func (db *DB) tidy(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, unitTime)
	defer cancel()
	tag, err := db.reserve.Exec(ctx, `DELETE FROM `+JobSchema+`.river_job WHERE id IN
		(SELECT j.id FROM `+JobSchema+`.river_job j WHERE j.state = 'scheduled' AND j.kind = 'wake_up' AND NOT EXISTS
			(SELECT 1 FROM run_queue q WHERE q.run_id = j.args->>'run_id' AND q.epoch = (j.args->>'epoch')::bigint) LIMIT $1)`, tidied)
	return tag.RowsAffected(), err
}
