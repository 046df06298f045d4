package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"
	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/failpoint"
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

// checkLimit bounds how long a start can take after a crash, because no requests are served until
// the check is done. Larger files are checked while serving.
const checkLimit = 128 << 20

// check is the check of the file after an unclean stop.
type check struct {
	later   bool // the file is too large to be checked before serving
	running atomic.Bool

	mu   sync.Mutex
	stop context.CancelCauseFunc // nil if it is not running
}

// checkPause is how long a check pauses that was interrupted.
const checkPause = time.Minute

// errLogExceeded interrupts a check.
var errLogExceeded = errors.New("the write-ahead log has reached its limit")

// interrupt interrupts a check in progress, whose read transaction keeps the log from being
// truncated. It is repeated later.
func (c *check) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop(errLogExceeded)
	}
}

func (c *check) setStop(stop context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
}

func checkAfterCrash(raw *sqlite.Conn, path string) (later bool, err error) {
	if info, err := os.Stat(path); err != nil || info.Size() > failpoint.Limit("CHECK_LIMIT", checkLimit) {
		return true, err
	}
	c := newConn(raw)
	defer c.finalize()
	return false, quickCheck(c, path)
}

// checkWhileServing checks the whole file on its own connection until the context
// ends, again if it was interrupted.
func (db *DB) checkWhileServing(ctx context.Context) error {
	for {
		err := db.checkOnce(ctx)
		if !errors.Is(err, errLogExceeded) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(checkPause):
		}
	}
}

func (db *DB) checkOnce(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	db.check.setStop(cancel)
	defer db.check.setStop(nil)
	raw, err := db.open()
	if err != nil {
		return err
	}
	raw.SetInterrupt(ctx.Done())
	c := newConn(raw)
	db.check.running.Store(true)
	defer func() {
		err = errors.Join(err, c.close())
		db.check.running.Store(false)
	}()
	if err := c.run("BEGIN"); err != nil {
		return err
	}
	err = quickCheck(c, db.path)
	failpoint.Hit(failpoint.DuringCheck, "")
	switch {
	case resultCode(err) != sqlite.ResultInterrupt:
		return err
	case errors.Is(context.Cause(ctx), errLogExceeded):
		return errLogExceeded
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
