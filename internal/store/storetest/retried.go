package storetest

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/store"
)

// retriedDriver runs everything twice and keeps only the effect of the second
// time. Databases run a transaction again after a conflict or a lost connection,
// so what a transaction leaves behind in memory must not change its result.
type retriedDriver struct{ store.Driver }

var errRetry = errors.New("rolled back to run again")

// Read implements store.Driver.
func (d retriedDriver) Read(ctx context.Context, fn func(store.Conn) error) error {
	if err := d.Driver.Read(ctx, fn); err != nil {
		return err
	}
	return d.Driver.Read(ctx, fn)
}

// ReadAll implements store.Driver.
func (d retriedDriver) ReadAll(ctx context.Context, queries func() []store.Query) error {
	if err := d.Driver.ReadAll(ctx, queries); err != nil {
		return err
	}
	return d.Driver.ReadAll(ctx, queries)
}

// Write implements store.Driver.
func (d retriedDriver) Write(ctx context.Context, fn func(store.Conn) error) error {
	if err := d.Driver.Write(ctx, failAfter(fn)); !errors.Is(err, errRetry) {
		return err
	}
	return d.Driver.Write(ctx, fn)
}

// WriteRun implements store.Driver.
func (d retriedDriver) WriteRun(ctx context.Context, runID string, fn func(store.Conn) error) error {
	if err := d.Driver.WriteRun(ctx, runID, failAfter(fn)); !errors.Is(err, errRetry) {
		return err
	}
	return d.Driver.WriteRun(ctx, runID, fn)
}

func failAfter(fn func(store.Conn) error) func(store.Conn) error {
	return func(c store.Conn) error {
		if err := fn(c); err != nil {
			return err
		}
		return errRetry
	}
}
