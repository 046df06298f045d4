package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

// maxFraction bounds a batch to 1/maxFraction of the remaining tokens, so that few
// tokens are idle on one node while other nodes reject requests.
const maxFraction = 20

// TokenStore holds the tokens of all keys, one for each allowed request.
type TokenStore interface {
	// TakeTokens takes up to want tokens of a key from the limit tokens of a
	// window. It returns how many it took and how many are left. All calls for a
	// window together never take more than limit.
	TakeTokens(ctx context.Context, key string, window time.Time, want, limit int) (granted, left int, err error)
}

// Leased counts requests by key, together with all other nodes that use the same
// token store. It leases tokens in batches and serves requests from them; a
// request waits for the store only if no token is left. Unused tokens expire at
// the end of the window, so it may allow fewer requests than the limit, never
// more.
type Leased struct {
	store TokenStore
	// timeout bounds a call of the token store. A request waits twice as long at most
	// while other requests keep using up the tokens that arrive.
	timeout     time.Duration
	clockOffset func() time.Duration

	mu    sync.Mutex
	start time.Time
	keys  map[string]*keyState
}

type keyState struct {
	limit  int
	tokens int
	left   int // in the store, as of the last call
	batch  int // size of the last batch, not counting extra tokens for waiting requests
	// exhausted means that the store has no tokens left under this limit.
	exhausted bool
	waiting   int
	call      *call
}

// call is one call of the token store, shared by all requests that wait for it.
type call struct {
	done chan struct{}
	err  error
}

// NewLeased returns a limiter that uses a token store, which has timeout to respond.
// All nodes must agree on the current window: clockOffset returns how far the clock
// they share is ahead of the times passed to Take.
func NewLeased(store TokenStore, timeout time.Duration, clockOffset func() time.Duration) *Leased {
	return &Leased{store: store, timeout: timeout, clockOffset: clockOffset, keys: map[string]*keyState{}}
}

// Take counts one request. It reports false if all nodes together have used up
// the limit, and returns an error if the store does not respond in time.
// State.Remaining does not include tokens that other nodes hold.
func (l *Leased) Take(ctx context.Context, key string, limit int, now time.Time) (State, bool, error) {
	now = now.Add(l.clockOffset())
	var deadline <-chan time.Time
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		s := l.keyState(key, limit, now)
		if s.tokens > 0 {
			s.tokens--
			return l.state(s, now), true, nil
		}
		if s.exhausted || limit <= 0 {
			return l.state(s, now), false, nil
		}
		if deadline == nil {
			deadline = time.After(2 * l.timeout)
		}
		if err := l.await(ctx, s, key, deadline); err != nil {
			return l.state(s, now), false, err
		}
	}
}

// Peek returns the state of a key, as far as this node knows it, without counting
// a request. Nothing remains only if Take would report false.
func (l *Leased) Peek(key string, limit int, now time.Time) State {
	now = now.Add(l.clockOffset())
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.keyState(key, limit, now)
	known := l.state(s, now)
	if known.Remaining == 0 && !s.exhausted && limit > 0 {
		known.Remaining = 1 // the store may have more tokens after a change of the limit
	}
	return known
}

func (l *Leased) keyState(key string, limit int, now time.Time) *keyState {
	if windowOver(l.start, now) {
		l.start, l.keys = now.Truncate(window), map[string]*keyState{}
	}
	s := l.keys[key]
	if s == nil {
		s = &keyState{limit: limit, left: limit}
		l.keys[key] = s
	}
	if s.limit != limit {
		s.left = max(0, s.left+limit-s.limit)
		if limit < s.limit {
			s.tokens = 0 // there may be more than the new limit allows
		}
		s.limit, s.exhausted = limit, false
	}
	return s
}

func (l *Leased) state(s *keyState, now time.Time) State {
	return state(l.start, s.limit, s.tokens+s.left, now)
}

// await waits for the current call of the store, and starts one if there is none.
func (l *Leased) await(ctx context.Context, s *keyState, key string, deadline <-chan time.Time) error {
	s.waiting++
	if s.call == nil {
		s.call = &call{done: make(chan struct{})}
		go l.lease(s, s.call, key, l.start, s.nextBatch(), s.limit) //nolint:gosec // other requests wait for it too
	}
	c := s.call
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		s.waiting--
	}()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	case <-deadline:
		return unavailable(errors.New("other requests used all leased tokens"))
	}
}

// nextBatch returns how many tokens to lease. Batches start small and double, so
// that a node with little load holds few tokens.
func (s *keyState) nextBatch() int {
	s.batch = max(1, min(2*s.batch, s.left/maxFraction))
	return min(max(s.batch, s.waiting), s.limit)
}

// lease calls the store. It does not use the context of a request: if that one is
// cancelled, others still wait for the tokens.
func (l *Leased) lease(s *keyState, c *call, key string, start time.Time, want, limit int) {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	granted, left, err := l.store.TakeTokens(ctx, key, start, want, limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		c.err = unavailable(err)
	case limit == s.limit:
		s.tokens, s.left, s.exhausted = s.tokens+granted, left, left == 0
	case limit < s.limit: // the limit was raised meanwhile: the store has more tokens
		s.tokens += granted
	}
	s.call = nil
	close(c.done)
}

func unavailable(cause error) error {
	return fault.New(fault.Unavailable, "the rate limit cannot be checked because the database is not responding; retry later").After(time.Second).Because(cause)
}
