package connection

import (
	"sync"
	"time"
)

// pauses is a backoff for requests for tokens that did not help, by connection. Each pause is
// twice as long as the one before. A new epoch ends it, because the credential is another one.
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

// left returns how much of the pause of a connection is left, and its cause; zero if there is
// none.
func (p *pauses) left(c *opened, now time.Time) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[c.ID]
	if !ok || last.epoch != c.Epoch || !now.Before(last.until) {
		return 0, nil
	}
	return last.until.Sub(now), last.cause
}

func (p *pauses) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, id)
}
