package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// portion is which part of what the pot holds a node takes at most, so that
	// little lies idle on a node while others are refused.
	portion = 20
	// leaseTime is how long the pot may take to answer, and waitTime how long a
	// request waits when others are always faster to use what came.
	leaseTime = 2 * time.Second
	waitTime  = 2 * leaseTime
)

// Pot holds the tokens of all keys, one for each request that is allowed.
type Pot interface {
	// TakeTokens takes up to want of the tokens that a key has in a window of
	// which there are limit in all. It answers how many it got and how many are
	// left. Over all calls for a window it never gives out more than the limit.
	TakeTokens(ctx context.Context, key string, window time.Time, want, limit int) (granted, left int, err error)
}

// Leased counts by key, together with all others who take from the same pot.
// It takes tokens in batches and serves requests from them; a request waits for
// the pot only when there are none. Tokens that are not used are lost with the
// end of the window, which errs on the side of fewer requests.
type Leased struct {
	pot   Pot
	ahead func() time.Duration

	mu     sync.Mutex
	start  time.Time
	shares map[string]*share
}

// share is what this node knows and holds of a key in the current window.
type share struct {
	limit  int
	tokens int
	left   int // in the pot, when last heard of
	batch  int // how many it asked for last, but for who waited
	// dry says that the pot has nothing more for this limit.
	dry     bool
	waiting int
	call    *call
}

// call is one request to the pot, for all who wait for it.
type call struct {
	done chan struct{}
	err  error
}

// NewLeased makes a limiter on a pot. All nodes have to mean the same window:
// ahead tells by how much the clock that they share is ahead of this node's.
func NewLeased(pot Pot, ahead func() time.Duration) *Leased {
	return &Leased{pot: pot, ahead: ahead, shares: map[string]*share{}}
}

// Take counts one request. It answers false when the limit is used up by all
// nodes together, and an error when the pot does not answer in time. What
// remains does not count tokens that other nodes hold.
func (l *Leased) Take(ctx context.Context, key string, limit int, now time.Time) (State, bool, error) {
	now = now.Add(l.ahead())
	var deadline <-chan time.Time
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		s := l.share(key, limit, now)
		if s.tokens > 0 {
			s.tokens--
			return l.state(s, now), true, nil
		}
		if s.dry || limit <= 0 {
			return l.state(s, now), false, nil
		}
		if deadline == nil {
			deadline = time.After(waitTime)
		}
		if err := l.await(ctx, s, key, deadline); err != nil {
			return l.state(s, now), false, err
		}
	}
}

// share finds what there is for a key in this window, under a limit that may
// have changed.
func (l *Leased) share(key string, limit int, now time.Time) *share {
	if ends(l.start, now) {
		l.start, l.shares = now.Truncate(window), map[string]*share{}
	}
	s := l.shares[key]
	if s == nil {
		s = &share{limit: limit, left: limit}
		l.shares[key] = s
	}
	if s.limit != limit {
		s.left = max(0, s.left+limit-s.limit)
		if limit < s.limit {
			s.tokens = 0 // they may be more than there are now
		}
		s.limit, s.dry = limit, false
	}
	return s
}

func (l *Leased) state(s *share, now time.Time) State {
	return state(l.start, s.limit, s.tokens+s.left, now)
}

// await waits until the pot has answered, and asks it if nobody has.
func (l *Leased) await(ctx context.Context, s *share, key string, deadline <-chan time.Time) error {
	s.waiting++
	if s.call == nil {
		s.call = &call{done: make(chan struct{})}
		go l.lease(s, s.call, key, l.start, s.want(), s.limit) //nolint:gosec // others wait for it, too
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
		return unavailable(errors.New("others used what it gave"))
	}
}

// want is how many tokens to ask for. A node begins with what it needs and asks
// for more each time, so that one with little to do holds little.
func (s *share) want() int {
	s.batch = max(1, min(2*s.batch, s.left/portion))
	return min(max(s.batch, s.waiting), s.limit)
}

// lease asks the pot. Requests that are given up do not end it: others wait for
// its answer.
func (l *Leased) lease(s *share, c *call, key string, start time.Time, want, limit int) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	granted, left, err := l.pot.TakeTokens(ctx, key, start, want, limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		c.err = unavailable(err)
	case limit == s.limit:
		s.tokens, s.left, s.dry = s.tokens+granted, left, left == 0
	case limit < s.limit: // raised meanwhile: there is more than it knew of
		s.tokens += granted
	}
	s.call = nil
	close(c.done)
}

func unavailable(cause error) error {
	return fault.New(fault.Unavailable, "requests cannot be counted now: the store does not answer").After(time.Second).Because(cause)
}
