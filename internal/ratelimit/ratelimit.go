// Package ratelimit counts requests in fixed windows of one minute, either in
// one process (Limiter) or across nodes that share a token store (Leased). The
// caller decides whom to count and how many requests to allow.
package ratelimit

import (
	"context"
	"sync"
	"time"
)

const window = time.Minute

// State is the state of a key in the current window.
type State struct {
	Limit     int
	Remaining int
	// Reset is the end of the window, and Wait the time until then.
	Reset time.Time
	Wait  time.Duration
}

// Limits counts the requests of workspaces and the calls of hooks.
type Limits interface {
	// Take counts a request against a limit per minute. It always returns the
	// state of the limit, and false if the request exceeds it.
	Take(ctx context.Context, key string, perMinute int, now time.Time) (State, bool, error)
	// Peek returns the state of a limit without counting a request. Nothing remains
	// if the next request would exceed it.
	Peek(key string, perMinute int, now time.Time) State
}

// Limiter counts requests by key in one process.
type Limiter struct {
	mu     sync.Mutex
	start  time.Time
	counts map[string]int
}

// New returns a Limiter.
func New() *Limiter { return &Limiter{counts: map[string]int{}} }

// Take counts one request. It reports false, without counting, if the key has
// used up its limit. The error is always nil.
func (l *Limiter) Take(_ context.Context, key string, limit int, now time.Time) (State, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startWindow(now)
	used := l.counts[key]
	ok := used < limit
	if ok {
		used++
		l.counts[key] = used
	}
	return state(l.start, limit, limit-used, now), ok, nil
}

// Peek returns the state of a key without counting a request.
func (l *Limiter) Peek(key string, limit int, now time.Time) State {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startWindow(now)
	return state(l.start, limit, limit-l.counts[key], now)
}

func (l *Limiter) startWindow(now time.Time) {
	if windowOver(l.start, now) {
		l.start = now.Truncate(window)
		clear(l.counts)
	}
}

// windowOver reports whether the window that began at start is over. Setting the
// clock back does not restart a window.
func windowOver(start, now time.Time) bool {
	next := now.Truncate(window)
	return next.After(start) || start.Sub(next) > window
}

func state(start time.Time, limit, remaining int, now time.Time) State {
	reset := start.Add(window)
	return State{Limit: limit, Remaining: max(0, remaining), Reset: reset, Wait: reset.Sub(now)}
}
