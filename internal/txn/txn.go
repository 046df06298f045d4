// Package txn marks contexts whose work runs inside a write transaction. Every
// other writer waits for such work, so it must be quick.
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
