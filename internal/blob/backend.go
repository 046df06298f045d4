package blob

import (
	"context"

	"github.com/stepmill/stepmill/internal/txn"
)

// Ready checks what every method of a backend on one blob requires: no transaction is
// open, the id is valid, and the context has not ended.
func Ready(ctx context.Context, id ID) error {
	txn.MustBeOutside(ctx)
	if err := id.Check(); err != nil {
		return err
	}
	return ctx.Err()
}

// Usable returns an error if a backend's upload cannot go on: it is done, a write of it
// has failed, or its context has ended.
func Usable(ctx context.Context, done bool, failed error) error {
	switch {
	case done:
		return ErrFinished
	case failed != nil:
		return failed
	}
	return ctx.Err()
}
