package api

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

// bodyBudget limits the memory that request bodies use in total, so that many
// large requests at once are rejected instead of exhausting the process.
type bodyBudget struct {
	limit int64
	used  atomic.Int64
}

// acquire reserves memory for the body of a request until release is called. A
// request without Content-Length reserves the full limit.
func (b *bodyBudget) acquire(r *http.Request, limit int64) (release func(), err error) {
	size := r.ContentLength
	if size < 0 {
		size = limit
	}
	size = min(size, limit)
	if b.used.Add(size) > b.limit && b.limit > 0 {
		b.used.Add(-size)
		return nil, fault.New(fault.Unavailable, "the service is handling too many large requests at once: try again").After(time.Second)
	}
	return func() { b.used.Add(-size) }, nil
}
