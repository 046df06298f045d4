// Package txn puts into contexts what concerns write transactions: whether work
// runs inside one, and how long the caller waits for one. Every other writer waits
// for work inside a transaction, so that work must be quick.
package txn

import (
	"context"
	"time"
)

// Limit is how long a transaction may take, without the time that the database
// needs to make it durable.
const Limit = 5 * time.Second

type insideKey struct{}

// Mark returns a context for work inside a transaction.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, insideKey{}, true) }

// MustBeOutside panics if the context belongs to a transaction. Functions that may
// be slow call it: to run a script, to send a request, to sleep.
func MustBeOutside(ctx context.Context) {
	if ctx.Value(insideKey{}) != nil {
		panic("slow work inside a write transaction, which blocks all other writers")
	}
}

type waitKey struct{}

// LimitWait returns a context in which a caller waits for the disk no longer than
// d. A flush cannot be canceled, so the outcome is then unknown.
func LimitWait(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, waitKey{}, d)
}

// WaitLimit returns the limit that LimitWait has set, or zero.
func WaitLimit(ctx context.Context) time.Duration {
	d, _ := ctx.Value(waitKey{}).(time.Duration)
	return d
}
