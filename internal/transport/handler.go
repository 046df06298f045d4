package transport

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/txn"
)

// ErrStale is returned by a commit that wrote nothing because what was prepared is out of
// date. The server then prepares the request again.
var ErrStale = errors.New("the data has changed since the request was prepared")

// boundRequest is a request whose input has been decoded. It is prepared, then committed.
type boundRequest interface {
	// prepare checks the input and does what may be slow, outside of any transaction.
	prepare(ctx context.Context) error
	// commit writes the effect and returns the response. With an Idempotency-Key, tx is the
	// transaction that saves the response too, so commit must be quick.
	commit(ctx context.Context, tx txn.Tx) (*Reply, error)
}

// handler has the two halves of a route.
type handler[In, P any] struct {
	prepare func(context.Context, *In) (P, error)
	commit  func(context.Context, txn.Tx, P) (*Reply, error)
}

// asDecoded prepares a request of a route whose handler is quick: there is nothing to do.
func asDecoded[In any](_ context.Context, in *In) (*In, error) { return in, nil }

// handledRequest is a request of a route with that handler.
type handledRequest[In, P any] struct {
	handler  handler[In, P]
	in       In
	prepared P
}

func (r *handledRequest[In, P]) prepare(ctx context.Context) (err error) {
	r.prepared, err = r.handler.prepare(ctx, &r.in)
	return err
}

func (r *handledRequest[In, P]) commit(ctx context.Context, tx txn.Tx) (*Reply, error) {
	return r.handler.commit(ctx, tx, r.prepared)
}
