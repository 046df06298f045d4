// Package txn carries write transactions in contexts. Every other writer waits for
// work inside a transaction, so it must be quick.
package txn

import (
	"context"
	"time"
)

// Limit is how long a transaction may take, without the time that the database
// needs to make it durable.
const Limit = 5 * time.Second

type key struct{}

// With returns a context for work inside a transaction, which is of a type that
// the store knows.
func With(ctx context.Context, tx any) context.Context { return context.WithValue(ctx, key{}, tx) }

// From returns the transaction that a context carries, or nil.
func From(ctx context.Context) any { return ctx.Value(key{}) }

// MustBeOutside panics if the context belongs to a transaction. Functions that may
// be slow call it: to run a script, to send a request, to sleep.
func MustBeOutside(ctx context.Context) {
	if From(ctx) != nil {
		panic("slow work inside a write transaction, which blocks all other writers")
	}
}
