package connection

import (
	"fmt"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
)

// Pauses after a renewal that failed for now. They double with each failure.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// failedRenewals remembers renewals that failed for now, so that the steps of a
// connection do not all ask a token endpoint that has a problem.
type failedRenewals struct {
	mu   sync.Mutex
	last map[string]failedRenewal // by connection id
}

type failedRenewal struct {
	epoch int64
	pause time.Duration
	until time.Time
	cause error
}

// note records that a renewal failed.
func (f *failedRenewals) note(c *opened, cause error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[string]failedRenewal{}
	}
	for id, old := range f.last {
		if now.Sub(old.until) > maxPause {
			delete(f.last, id)
		}
	}
	next := failedRenewal{epoch: c.Epoch, pause: firstPause, cause: cause}
	if old, ok := f.last[c.ID]; ok && old.epoch == c.Epoch {
		next.pause = min(2*old.pause, maxPause)
	}
	next.until = now.Add(next.pause)
	f.last[c.ID] = next
}

// check returns the failure of a step whose connection is not renewed yet.
func (f *failedRenewals) check(c *opened, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, ok := f.last[c.ID]
	if !ok || last.epoch != c.Epoch || !now.Before(last.until) {
		return nil
	}
	return &action.Failure{
		Code: CodeUnavailable, Retryable: true, RetryAfter: last.until.Sub(now),
		Message: fmt.Sprintf("the token of the connection %q could not be renewed, and is not requested again for a moment: %v", c.Name, last.cause),
	}
}

// forget makes the next renewal start at once.
func (f *failedRenewals) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, id)
}
