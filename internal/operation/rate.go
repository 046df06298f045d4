package operation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/integration"
)

const (
	// longestPause is how long a request waits for its turn. Longer waits are those of
	// the step.
	longestPause = 2 * time.Second
	// maxBuckets is the most buckets that the limiter keeps.
	maxBuckets = 10_000
)

// limiter delays requests so that services need not reject them. It knows the requests of
// this process only: with several nodes, the services' own limits remain the last word.
type limiter struct {
	mu      sync.Mutex
	buckets map[bucketKey]*bucket
}

// bucketKey says what a rate applies to.
type bucketKey struct {
	workspace, connection string
	rule                  string // the integration or the operation, and the index of the rate
	per                   string
}

// bucket has the time at which the next request may be sent, as in the generic cell rate
// algorithm: it is ahead of the present by what was used of the rate.
type bucket struct{ next time.Time }

// rule is a rate with what it belongs to.
type rule struct {
	integration.Rate
	of string
}

func (e *execution) rules() []rule {
	var out []rule
	for i, r := range e.service.Rates {
		out = append(out, rule{r, fmt.Sprintf("%s/%d", r.Of, i)})
	}
	for i, r := range e.operation.Rates {
		out = append(out, rule{r, fmt.Sprintf("%s/%d", Name(e.service, e.operation), i)})
	}
	return out
}

// bucketOf returns the bucket from which a rate takes a request.
func (e *execution) bucketOf(r rule, env integration.Env) (bucketKey, error) {
	key := bucketKey{workspace: e.req.Workspace, connection: e.req.Connection.Name, rule: r.of}
	if r.Per == nil {
		return key, nil
	}
	value, err := env.Eval(r.Per)
	key.per = fmt.Sprint(value)
	return key, err
}

// awaitTurn waits until the rates of the service allow another request. If that takes
// long, it returns a wait of the step.
func (e *execution) awaitTurn(ctx context.Context, call *integration.Call) (*action.Result, error) {
	env := e.env(call)
	var turns []turn
	for _, r := range e.rules() {
		key, err := e.bucketOf(r, env)
		if err != nil {
			return nil, expressionFailure("rate/per", err)
		}
		turns = append(turns, turn{key, r.Rate})
	}
	pause := e.actions.rates.take(turns)
	switch {
	case pause <= 0:
		return nil, nil
	case pause <= longestPause:
		if !clock.Sleep(ctx, pause) {
			return nil, ctx.Err()
		}
		return nil, nil
	}
	result, err := e.checkpoint(ctx)
	result.Wait = &action.Wait{For: pause, Reason: "waits because " + e.service.Name + " limits the number of requests"}
	return &result, err
}

// turn is a rate that applies to a request.
type turn struct {
	bucketKey
	integration.Rate
}

// take reserves a request, and returns how long it has to wait. A request that would
// have to wait as a step reserves nothing: it asks again.
func (l *limiter) take(turns []turn) time.Duration {
	now := clock.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	var pause time.Duration
	for _, t := range turns {
		b := l.bucket(t.bucketKey, now)
		if b.next.Before(now) {
			b.next = now
		}
		pause = max(pause, b.next.Add(t.interval()).Sub(now)-t.Every) // a burst of Requests is allowed
	}
	if pause > longestPause {
		return pause
	}
	for _, t := range turns {
		b := l.bucket(t.bucketKey, now)
		b.next = b.next.Add(t.interval())
	}
	return pause
}

// interval returns what one request takes of a rate. A rate that the answers of the
// service tell is used up only when they say so.
func (t turn) interval() time.Duration {
	if t.Requests == 0 {
		return 0
	}
	return t.Every / time.Duration(t.Requests)
}

// bucket returns the bucket of a key. If there are too many, those that allow a request
// anyway are forgotten.
func (l *limiter) bucket(key bucketKey, now time.Time) *bucket {
	b, ok := l.buckets[key]
	if ok {
		return b
	}
	if len(l.buckets) >= maxBuckets {
		for key, b := range l.buckets {
			if b.next.Before(now) {
				delete(l.buckets, key)
			}
		}
		if len(l.buckets) >= maxBuckets {
			clear(l.buckets)
		}
	}
	b = &bucket{next: now}
	l.buckets[key] = b
	return b
}

// learn notes what an answer says about the requests that are left.
func (l *limiter) learn(e *execution, env integration.Env) {
	for _, r := range e.rules() {
		if r.Remaining == nil {
			continue
		}
		remaining, err := env.Eval(r.Remaining)
		if left, ok := remaining.(int); err != nil || !ok || left > 0 {
			continue
		}
		reset, resetErr := env.Eval(r.Reset)
		key, keyErr := e.bucketOf(r, env)
		if resetErr != nil || keyErr != nil {
			continue
		}
		pause := min(e.retryAfter(reset), time.Hour)
		l.mu.Lock()
		l.bucket(key, clock.Monotonic()).next = clock.Monotonic().Add(pause)
		l.mu.Unlock()
	}
}
