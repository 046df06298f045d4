package postgres

import "context"

// tidyBatch bounds how many jobs one statement deletes.
const tidyBatch = 1000

// Tidy deletes scheduled jobs that no run waits for any more: a run that was
// going to wait for a year may have ended after a second.
func (db *DB) Tidy(ctx context.Context) error {
	for {
		removed, err := db.tidy(ctx)
		if err != nil || removed < tidyBatch {
			return err
		}
	}
}

func (db *DB) tidy(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	tag, err := db.reserve.Exec(ctx, `DELETE FROM `+JobSchema+`.river_job WHERE id IN
		(SELECT j.id FROM `+JobSchema+`.river_job j WHERE j.state = 'scheduled' AND j.kind = 'wake_up' AND NOT EXISTS
			(SELECT 1 FROM run_queue q WHERE q.run_id = j.args->>'run_id' AND q.epoch = (j.args->>'epoch')::bigint) LIMIT $1)`, tidyBatch)
	return tag.RowsAffected(), err
}
