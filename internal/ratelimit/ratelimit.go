// Package ratelimit owns the counting of requests in fixed windows of one
// minute: by a single process, aligned to its clock, or by several nodes that
// share one pot. Who is counted, and how many are allowed, is decided by the
// caller.
package ratelimit

import (
	"context"
	"sync"
	"time"
)

const window = time.Minute

// State is where a key stands in the current window.
type State struct {
	Limit     int
	Remaining int
	// Reset is the end of the window, and Wait how long that takes.
	Reset time.Time
	Wait  time.Duration
}

// Limiter counts by key, for one process alone.
type Limiter struct {
	mu     sync.Mutex
	start  time.Time
	counts map[string]int
}

// New makes a limiter.
func New() *Limiter { return &Limiter{counts: map[string]int{}} }

// Take counts one request. It answers false, without counting, when the key
// has used up its limit. It never fails.
func (l *Limiter) Take(_ context.Context, key string, limit int, now time.Time) (State, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll(now)
	used := l.counts[key]
	ok := used < limit
	if ok {
		used++
		l.counts[key] = used
	}
	return state(l.start, limit, limit-used, now), ok, nil
}

// Peek tells where a key stands without counting.
func (l *Limiter) Peek(key string, limit int, now time.Time) State {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll(now)
	return state(l.start, limit, limit-l.counts[key], now)
}

func (l *Limiter) roll(now time.Time) {
	if ends(l.start, now) {
		l.start = now.Truncate(window)
		clear(l.counts)
	}
}

// ends tells whether the window that began at start is over. A clock that is
// set back does not give anybody a second helping of the same window.
func ends(start, now time.Time) bool {
	next := now.Truncate(window)
	return next.After(start) || start.Sub(next) > window
}

func state(start time.Time, limit, remaining int, now time.Time) State {
	reset := start.Add(window)
	return State{Limit: limit, Remaining: max(0, remaining), Reset: reset, Wait: reset.Sub(now)}
}
