// Package txn describes write transactions to packages that do not know the database. Every
// other writer waits for work inside a transaction, so it must be quick.
package txn

import (
	"context"
	"time"
)

// Limit is how long a transaction may take, without the time that the database needs to make it
// durable. The embedded database has one writer, so all tenants wait for as long.
const Limit = 5 * time.Second

// Tx is a write transaction in progress, which only the store can use. Services and stores
// have a method In, which returns the same service as a part of that transaction; nil stands
// for none, so that each of their methods is a transaction of its own.
type Tx interface{ WriteTransaction() }

type key struct{}

// Mark returns a context for work inside a transaction.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Inside reports whether the context is marked.
func Inside(ctx context.Context) bool { return ctx.Value(key{}) != nil }

// MustBeOutside panics if the context belongs to a transaction. Functions that may
// be slow call it: to run a script, to send a request, to sleep.
func MustBeOutside(ctx context.Context) {
	if Inside(ctx) {
		panic("slow work inside a write transaction, which blocks all other writers")
	}
}
