package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/test/lane"
)

// memoryStore is a TokenStore in memory. The conformance suite of the store tests
// the ones in databases.
type memoryStore struct {
	mu       sync.Mutex
	taken    map[string]int
	calls    int
	maxGrant int // tokens per call; 0: no limit
	// before runs before each call.
	before func(context.Context) error
}

func newMemoryStore() *memoryStore { return &memoryStore{taken: map[string]int{}} }

func (p *memoryStore) TakeTokens(ctx context.Context, key string, window time.Time, want, limit int) (granted, left int, err error) {
	p.mu.Lock()
	before := p.before
	p.calls++
	p.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return 0, 0, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id := key + window.String()
	granted = max(0, min(want, limit-p.taken[id]))
	if p.maxGrant > 0 {
		granted = min(granted, p.maxGrant)
	}
	p.taken[id] += granted
	return granted, max(0, limit-p.taken[id]), nil
}

func (p *memoryStore) callCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// noOffset is the clock offset of a node whose clock is right.
func noOffset() time.Duration { return 0 }

// storeTimeout is how long the store may take where time is simulated, and patience
// where it is not.
const storeTimeout, patience = 2 * time.Second, 3 * time.Minute

func newNodes(p ratelimit.TokenStore, n int) []*ratelimit.Leased {
	all := make([]*ratelimit.Leased, n)
	for i := range all {
		all[i] = ratelimit.NewLeased(p, patience, noOffset)
	}
	return all
}

// However requests are spread over nodes, no more than the limit pass in a
// window, and when a request is rejected, few tokens are left.
func TestNodesShareALimit(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(100, 2000)).Draw(t, "limit")
		all := newNodes(newMemoryStore(), rapid.IntRange(1, 4).Draw(t, "nodes"))
		busy := rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 8).Draw(t, "busy")
		now := noon.Truncate(time.Minute)
		for minute := range 2 {
			passed, rejected, last := 0, map[int]bool{}, map[int]int{}
			// The last node to reject requests may be one with little load.
			for i := range (limit + 2) * len(busy) {
				node := busy[i%len(busy)]
				state, ok, err := all[node].Take(context.Background(), "ws", limit, now)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					passed++
				}
				left, known := last[node]
				if last[node] = state.Remaining; known && state.Remaining > left || state.Remaining >= limit {
					t.Fatalf("minute %d, request %d: %d remain after %d of %d", minute, i, state.Remaining, left, limit)
				}
				if ok && rejected[node] || !ok && state.Remaining != 0 {
					t.Fatalf("minute %d, request %d: %t with %+v", minute, i, ok, state)
				}
				if !ok && !rejected[node] {
					rejected[node] = true
					if least := limit - (len(all)-1)*(limit/20); passed < least {
						t.Fatalf("minute %d: rejected after %d of %d requests on %d nodes", minute, passed, limit, len(all))
					}
				}
			}
			if len(rejected) != len(last) || passed > limit {
				t.Fatalf("minute %d: %d of %d passed, rejected %v", minute, passed, limit, rejected)
			}
			if len(rejected) == len(all) && passed != limit {
				t.Fatalf("minute %d: all nodes reject after %d of %d", minute, passed, limit)
			}
			now = now.Add(time.Minute)
		}
	})
}

func TestLeasesAreExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 60, 600, 60_000} {
		p := newMemoryStore()
		var passed atomic.Int64
		var wg sync.WaitGroup
		for _, node := range newNodes(p, 3) {
			for range 32 {
				wg.Go(func() {
					for {
						_, ok, err := node.Take(t.Context(), "ws", limit, noon)
						if err != nil {
							t.Error(err)
						}
						if !ok {
							return
						}
						passed.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if int(passed.Load()) != limit {
			t.Errorf("%d of %d passed", passed.Load(), limit)
		}
		t.Logf("a limit of %d took %d leases of 3 nodes", limit, p.callCount())
		if most := min(limit, 500) + 9; p.callCount() > most {
			t.Errorf("the store was called %d times for a limit of %d, want at most %d", p.callCount(), limit, most)
		}
	}
}

func TestConcurrentRequestsShareOneLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newMemoryStore()
		p.before = func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}
		node := ratelimit.NewLeased(p, storeTimeout, noOffset)
		var passed atomic.Int64
		for range 50 {
			go func() {
				if _, ok, err := node.Take(context.Background(), "ws", 600, noon); ok && err == nil {
					passed.Add(1)
				}
			}()
		}
		synctest.Wait()
		if p.callCount() != 1 {
			t.Errorf("the store was called %d times at first", p.callCount())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		// The first call leases a token for the first request only.
		if passed.Load() != 50 || p.callCount() != 2 {
			t.Errorf("%d of 50 passed, the store was called %d times", passed.Load(), p.callCount())
		}
	})
}

func TestRequestTimesOutWhenTheStoreDoesNotRespond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newMemoryStore()
		p.before = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		node := ratelimit.NewLeased(p, storeTimeout, noOffset)
		for range 3 {
			begun := time.Now()
			state, ok, err := node.Take(t.Context(), "ws", 600, noon)
			if ok || !fault.Is(err, fault.Unavailable) || state.Limit != 600 || !state.Reset.After(noon) {
				t.Errorf("without a response: %+v, %t, %v", state, ok, err)
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		}
		// A cancelled request returns at once and does not affect the others.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok, err := node.Take(ctx, "ws", 600, noon); ok || !errors.Is(err, context.DeadlineExceeded) || fault.Is(err, fault.Unavailable) {
			t.Errorf("a cancelled request: %t, %v", ok, err)
		}
		p.mu.Lock()
		p.before = func(context.Context) error { return errors.New("store error") }
		p.mu.Unlock()
		time.Sleep(time.Minute)
		if _, ok, err := node.Take(t.Context(), "ws", 600, noon); ok || !fault.Is(err, fault.Unavailable) {
			t.Errorf("with an error: %t, %v", ok, err)
		}
		p.mu.Lock()
		p.before = nil
		p.mu.Unlock()
		if state, ok := take(t, node, "ws", 600, noon); !ok || state.Remaining != 599 {
			t.Errorf("when the store responds again: %+v, %t", state, ok)
		}
	})
}

// A slow store that grants few tokens does not delay requests for long.
func TestEveryWaiterTimesOutWhenTheStoreIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newMemoryStore()
		p.maxGrant = 1
		p.before = func(context.Context) error {
			time.Sleep(1500 * time.Millisecond)
			return nil
		}
		node := ratelimit.NewLeased(p, storeTimeout, noOffset)
		var passed, unavailable atomic.Int64
		begun := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, ok, err := node.Take(context.Background(), "ws", 600, noon)
				if ok {
					passed.Add(1)
				} else if fault.Is(err, fault.Unavailable) {
					unavailable.Add(1)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begun); took > 4*time.Second || passed.Load() != 2 || unavailable.Load() != 8 {
			t.Errorf("after %v %d passed and %d did not", took, passed.Load(), unavailable.Load())
		}
		time.Sleep(time.Minute) // the last call is in flight
	})
}

func TestLeasedSeparatesWindowsAndKeys(t *testing.T) {
	t.Parallel()
	p := newMemoryStore()
	node := ratelimit.NewLeased(p, patience, noOffset)
	use := func(key string, now time.Time, want bool) {
		t.Helper()
		state, ok := take(t, node, key, 2, now)
		if ok != want || state.Limit != 2 || state.Wait <= 0 || state.Wait > 2*time.Minute {
			t.Errorf("%s at %v: %+v, %t", key, now, state, ok)
		}
	}
	use("ws", noon, true)
	use("ws", noon, true)
	use("ws", noon, false)
	use("other", noon, true)
	use("ws", noon.Add(30*time.Second), true)
	use("ws", noon.Add(29*time.Second), true) // a request that arrived a little earlier
	use("ws", noon.Add(30*time.Second), false)
	use("ws", noon.Add(-time.Hour), true) // a clock that was wrong
	use("ws", noon, false)                // the store remembers
	asked := p.callCount()
	for range 100 {
		use("ws", noon, false)
	}
	if p.callCount() != asked {
		t.Error("the store is called again although it is empty")
	}
}

func TestPeekReportsAnExhaustedLimit(t *testing.T) {
	t.Parallel()
	store := newMemoryStore()
	node := newNodes(store, 1)[0]
	for used := range 3 {
		if got := node.Peek("ws", 3, noon).Remaining; got == 0 {
			t.Errorf("nothing remains after %d of 3", used)
		}
		take(t, node, "ws", 3, noon)
	}
	calls := store.callCount()
	if got := node.Peek("ws", 3, noon).Remaining; got != 0 {
		t.Errorf("%d remain after 3 of 3", got)
	}
	// What the store has left after two changes of the limit is not known.
	node.Peek("ws", 1, noon)
	if got := node.Peek("ws", 10, noon).Remaining; got == 0 {
		t.Error("nothing remains after 3 of 10")
	}
	if got := store.callCount(); got != calls {
		t.Errorf("peeking called the store %d times", got-calls)
	}
}

func TestLimitChangeAppliesAtOnce(t *testing.T) {
	t.Parallel()
	all := newNodes(newMemoryStore(), 2)
	for i, step := range []struct {
		node, limit int
		ok          bool
	}{
		{0, 2, true}, {1, 2, true}, {0, 2, false},
		{0, 3, true}, {0, 3, false}, {1, 3, false},
		{0, 1, false}, {1, 4, true}, {1, 4, false}, {0, 0, false}, {0, -1, false},
	} {
		if state, ok := take(t, all[step.node], "ws", step.limit, noon); ok != step.ok || state.Remaining < 0 {
			t.Errorf("request %d under a limit of %d: %+v, %t", i, step.limit, state, ok)
		}
	}
	// Lowering the limit discards leased tokens.
	for range 5000 {
		take(t, all[0], "large", 10_000, noon)
	}
	if state, ok := take(t, all[0], "large", 60, noon); ok || state.Remaining != 0 {
		t.Errorf("after the limit was lowered: %+v, %t", state, ok)
	}
}

// Nodes whose clocks differ use the same window.
func TestNodesUseTheSharedClock(t *testing.T) {
	t.Parallel()
	p := newMemoryStore()
	late := ratelimit.NewLeased(p, patience, func() time.Duration { return 10 * time.Minute })
	state, ok := take(t, late, "ws", 1, noon.Add(-10*time.Minute))
	if want := noon.Truncate(time.Minute).Add(time.Minute); !ok || !state.Reset.Equal(want) || state.Wait != 30*time.Second {
		t.Errorf("got %+v, %t", state, ok)
	}
	if _, ok := take(t, ratelimit.NewLeased(p, patience, noOffset), "ws", 1, noon); ok {
		t.Error("a node whose clock is right uses another window")
	}
}
