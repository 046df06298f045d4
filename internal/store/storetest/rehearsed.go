package storetest

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/store"
)

// rehearsed is a driver that does everything twice, and keeps only what was done
// the second time. Databases run a unit again when it met another one or the
// connection was lost: whatever a unit leaves behind in memory, the next time has
// to come to the same.
type rehearsed struct{ store.Driver }

var errRehearsal = errors.New("that was the rehearsal")

// Read implements store.Driver.
func (d rehearsed) Read(ctx context.Context, fn func(store.Conn) error) error {
	if err := d.Driver.Read(ctx, fn); err != nil {
		return err
	}
	return d.Driver.Read(ctx, fn)
}

// ReadAll implements store.Driver.
func (d rehearsed) ReadAll(ctx context.Context, queries func() []store.Query) error {
	if err := d.Driver.ReadAll(ctx, queries); err != nil {
		return err
	}
	return d.Driver.ReadAll(ctx, queries)
}

// Write implements store.Driver.
func (d rehearsed) Write(ctx context.Context, fn func(store.Conn) error) error {
	if err := d.Driver.Write(ctx, rehearse(fn)); !errors.Is(err, errRehearsal) {
		return err
	}
	return d.Driver.Write(ctx, fn)
}

// WriteRun implements store.Driver.
func (d rehearsed) WriteRun(ctx context.Context, runID string, fn func(store.Conn) error) error {
	if err := d.Driver.WriteRun(ctx, runID, rehearse(fn)); !errors.Is(err, errRehearsal) {
		return err
	}
	return d.Driver.WriteRun(ctx, runID, fn)
}

func rehearse(fn func(store.Conn) error) func(store.Conn) error {
	return func(c store.Conn) error {
		if err := fn(c); err != nil {
			return err
		}
		return errRehearsal
	}
}
