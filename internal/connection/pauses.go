package connection

import (
	"sync"
	"time"
)

// pauses remembers connections whose token is not requested for a while, because
// requesting it did not help. A pause ends with the epoch of its credential, and doubles
// if it begins again.
type pauses struct {
	first, longest time.Duration

	mu   sync.Mutex
	last map[string]pause // by connection id
}

type pause struct {
	epoch int64
	long  time.Duration
	until time.Time
	cause error
}

// begin begins a pause of a connection.
func (p *pauses) begin(c *opened, cause error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]pause{}
	}
	for id, old := range p.last {
		if now.Sub(old.until) > p.longest {
			delete(p.last, id)
		}
	}
	next := pause{epoch: c.Epoch, long: p.first, cause: cause}
	if old, ok := p.last[c.ID]; ok && old.epoch == c.Epoch {
		next.long = min(2*old.long, p.longest)
	}
	next.until = now.Add(next.long)
	p.last[c.ID] = next
}

// left returns how long a connection still pauses, and why; zero if it does not.
func (p *pauses) left(c *opened, now time.Time) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[c.ID]
	if !ok || last.epoch != c.Epoch || !now.Before(last.until) {
		return 0, nil
	}
	return last.until.Sub(now), last.cause
}

// end ends the pause of a connection.
func (p *pauses) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, id)
}
