package sqlite

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/database"
)

// ReadSnapshot implements store.Mover. It uses its own connection, since those of
// the pool are for short reads.
func (db *DB) ReadSnapshot(ctx context.Context, fn func(database.Conn) error) (err error) {
	raw, err := db.open()
	if err != nil {
		return err
	}
	raw.SetInterrupt(ctx.Done())
	c := newConn(raw)
	defer func() {
		raw.SetInterrupt(nil)
		err = errors.Join(err, c.close())
	}()
	if err := c.run("BEGIN"); err != nil {
		return err
	}
	if err := fn(c); err != nil {
		return explain(err)
	}
	return c.run("COMMIT")
}

// LastNumber implements store.Mover.
func (db *DB) LastNumber(c database.Conn, table string) (last int64, err error) {
	err = c.Query(`SELECT seq FROM sqlite_sequence WHERE name = $1`, []any{table}, func(r database.Row) error { return r.Scan(&last) })
	return last, err
}

// Resequence implements store.Mover. SQLite creates a table's sequence with its
// first row.
func (db *DB) Resequence(c database.Conn, table string, last int64) error {
	n, err := c.Exec(`UPDATE sqlite_sequence SET seq = $1 WHERE name = $2 AND seq < $1`, last, table)
	if err != nil || n > 0 {
		return err
	}
	_, err = c.Exec(`INSERT INTO sqlite_sequence (name, seq) SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = $1)`, table, last)
	return err
}

// AfterImport implements store.Mover. It does nothing: the next start looks for
// all runs.
func (db *DB) AfterImport(database.Conn) error { return nil }
