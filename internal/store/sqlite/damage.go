package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	driver "modernc.org/sqlite"
	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
)

// isDamage reports whether an error means that the contents of the file are
// invalid.
func isDamage(err error) bool {
	switch resultCode(err) {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return true
	}
	return false
}

func resultCode(err error) sqlite.ResultCode { return extendedCode(err).ToPrimary() }

// extendedCode returns the result code of an error, which comes from this
// package's library or from the driver that runs the migrations.
func extendedCode(err error) sqlite.ResultCode {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return sqlite.ResultCode(e.Code())
	}
	return sqlite.ErrCode(err)
}

// damaged adds to the cause what to do about it.
func damaged(path string, cause error) error {
	return fmt.Errorf("%s is damaged: restore a backup with `stepmill restore FILE`: %w", path, cause)
}

// checkLimit bounds how long a start can take after a crash: larger files are
// checked while serving.
const checkLimit = 128 << 20

func checkAfterCrash(raw *sqlite.Conn, path string) (later bool, err error) {
	if info, err := os.Stat(path); err != nil || info.Size() > checkLimit {
		return true, err
	}
	c := newConn(raw)
	defer c.finalize()
	return false, quickCheck(c, path)
}

// checkWhileServing checks the whole file on its own connection until the context
// ends.
func (db *DB) checkWhileServing(ctx context.Context) (err error) {
	raw, err := db.open()
	if err != nil {
		return err
	}
	raw.SetInterrupt(ctx.Done())
	c := newConn(raw)
	defer func() { err = errors.Join(err, c.close()) }()
	if err := quickCheck(c, db.path); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func quickCheck(c *conn, path string) error {
	verdict := ""
	err := c.Query("PRAGMA quick_check(1)", nil, func(r database.Row) error { return r.Scan(&verdict) })
	switch {
	case err != nil && !fatal(err):
		return fmt.Errorf("check %s: %w", path, err)
	case err != nil:
		verdict = err.Error()
	}
	if verdict != "ok" {
		return damaged(path, errors.New(verdict))
	}
	return nil
}
