package api

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

// bodies bounds the memory that the bodies of all requests take together: many
// large ones at once are refused instead of ending the process.
type bodies struct {
	most int64
	held atomic.Int64
}

// take makes room for the body of a request, of which only the limit is known
// when it does not say its length. The room is free again after the call of
// release.
func (b *bodies) take(r *http.Request, limit int64) (release func(), err error) {
	size := r.ContentLength
	if size < 0 {
		size = limit
	}
	size = min(size, limit)
	if b.held.Add(size) > b.most && b.most > 0 {
		b.held.Add(-size)
		return nil, fault.New(fault.Unavailable, "the service is working on as many large requests as its memory allows: try again").After(time.Second)
	}
	return func() { b.held.Add(-size) }, nil
}
