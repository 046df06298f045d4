// Package ratelimit owns the counting of requests in fixed windows of one
// minute, aligned to the clock. Who is counted, and how many are allowed, is
// decided by the caller.
package ratelimit

import (
	"sync"
	"time"
)

const window = time.Minute

// State is where a key stands in the current window.
type State struct {
	Limit     int
	Remaining int
	Reset     time.Time
}

// Limiter counts by key.
type Limiter struct {
	mu     sync.Mutex
	start  time.Time
	counts map[string]int
}

// New makes a limiter.
func New() *Limiter { return &Limiter{counts: map[string]int{}} }

// Take counts one request. It answers false, without counting, when the key
// has used up its limit.
func (l *Limiter) Take(key string, limit int, now time.Time) (State, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll(now)
	used := l.counts[key]
	ok := used < limit
	if ok {
		used++
		l.counts[key] = used
	}
	return l.state(used, limit), ok
}

// Peek tells where a key stands without counting.
func (l *Limiter) Peek(key string, limit int, now time.Time) State {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll(now)
	return l.state(l.counts[key], limit)
}

// roll begins a new window when its time has come. A clock that is set back
// does not give anybody a second helping of the same window.
func (l *Limiter) roll(now time.Time) {
	if start := now.Truncate(window); start.After(l.start) || l.start.Sub(start) > window {
		l.start = start
		clear(l.counts)
	}
}

func (l *Limiter) state(used, limit int) State {
	return State{Limit: limit, Remaining: max(0, limit-used), Reset: l.start.Add(window)}
}
