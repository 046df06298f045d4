package storetest

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/database"
)

// retriedDriver runs everything twice and keeps only the effect of the second
// time. Databases run a transaction again after a conflict or a lost connection,
// so what a transaction leaves behind in memory must not change its result.
type retriedDriver struct{ database.Driver }

var errRetry = errors.New("rolled back to run again")

// Read implements store.Driver.
func (d retriedDriver) Read(ctx context.Context, fn func(database.Conn) error) error {
	if err := d.Driver.Read(ctx, fn); err != nil {
		return err
	}
	return d.Driver.Read(ctx, fn)
}

// ReadAll implements store.Driver.
func (d retriedDriver) ReadAll(ctx context.Context, queries func() []database.Query) error {
	if err := d.Driver.ReadAll(ctx, queries); err != nil {
		return err
	}
	return d.Driver.ReadAll(ctx, queries)
}

// Write implements store.Driver.
func (d retriedDriver) Write(ctx context.Context, fn func(database.Conn) error) error {
	if err := d.Driver.Write(ctx, failAfter(fn)); !errors.Is(err, errRetry) {
		return err
	}
	return d.Driver.Write(ctx, fn)
}

// WriteRun implements store.Driver.
func (d retriedDriver) WriteRun(ctx context.Context, runID string, fn func(database.Conn) error) error {
	if err := d.Driver.WriteRun(ctx, runID, failAfter(fn)); !errors.Is(err, errRetry) {
		return err
	}
	return d.Driver.WriteRun(ctx, runID, fn)
}

func failAfter(fn func(database.Conn) error) func(database.Conn) error {
	return func(c database.Conn) error {
		if err := fn(c); err != nil {
			return err
		}
		return errRetry
	}
}
