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
)

// pot is the plainest one: those of the databases are held to the same by the
// conformance suite of the store.
type pot struct {
	mu    sync.Mutex
	taken map[string]int
	calls int
	most  int // that a call gives; 0: any number
	// before runs ahead of each call.
	before func(context.Context) error
}

func newPot() *pot { return &pot{taken: map[string]int{}} }

func (p *pot) TakeTokens(ctx context.Context, key string, window time.Time, want, limit int) (granted, left int, err error) {
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
	if p.most > 0 {
		granted = min(granted, p.most)
	}
	p.taken[id] += granted
	return granted, max(0, limit-p.taken[id]), nil
}

func (p *pot) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// inTime is the clock of a node that is right.
func inTime() time.Duration { return 0 }

func nodes(p ratelimit.Pot, n int) []*ratelimit.Leased {
	all := make([]*ratelimit.Leased, n)
	for i := range all {
		all[i] = ratelimit.NewLeased(p, inTime)
	}
	return all
}

// Whatever comes to which node: never more than the limit passes in a window,
// and when somebody is refused, little of it is left.
func TestNodesShareALimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(100, 2000)).Draw(t, "limit")
		all := nodes(newPot(), rapid.IntRange(1, 4).Draw(t, "nodes"))
		busy := rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 8).Draw(t, "busy")
		now := noon.Truncate(time.Minute)
		for minute := range 2 {
			passed, refused, last := 0, map[int]bool{}, map[int]int{}
			// The last node to be refused may be one with little to do.
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
				if ok && refused[node] || !ok && state.Remaining != 0 {
					t.Fatalf("minute %d, request %d: %t with %+v", minute, i, ok, state)
				}
				if !ok && !refused[node] {
					refused[node] = true
					if least := limit - (len(all)-1)*(limit/20); passed < least {
						t.Fatalf("minute %d: refused after %d of %d requests on %d nodes", minute, passed, limit, len(all))
					}
				}
			}
			if len(refused) != len(last) || passed > limit {
				t.Fatalf("minute %d: %d of %d passed, refused %v", minute, passed, limit, refused)
			}
			if len(refused) == len(all) && passed != limit {
				t.Fatalf("minute %d: all refuse after %d of %d", minute, passed, limit)
			}
			now = now.Add(time.Minute)
		}
	})
}

func TestLeasesAreExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 60, 600, 60_000} {
		p := newPot()
		var passed atomic.Int64
		var wg sync.WaitGroup
		for _, node := range nodes(p, 3) {
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
		t.Logf("a limit of %d took %d leases of 3 nodes", limit, p.asked())
		if most := min(limit, 500) + 9; p.asked() > most {
			t.Errorf("the pot was asked %d times for a limit of %d, at most %d were due", p.asked(), limit, most)
		}
	}
}

func TestThoseWhoComeTogetherAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPot()
		p.before = func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}
		node := ratelimit.NewLeased(p, inTime)
		var passed atomic.Int64
		for range 50 {
			go func() {
				if _, ok, err := node.Take(context.Background(), "ws", 600, noon); ok && err == nil {
					passed.Add(1)
				}
			}()
		}
		synctest.Wait()
		if p.asked() != 1 {
			t.Errorf("the pot was asked %d times at first", p.asked())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		// The first call is for the first one, who came before the others.
		if passed.Load() != 50 || p.asked() != 2 {
			t.Errorf("%d of 50 passed, the pot was asked %d times", passed.Load(), p.asked())
		}
	})
}

func TestARequestDoesNotWaitForeverForThePot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPot()
		p.before = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		node := ratelimit.NewLeased(p, inTime)
		for range 3 {
			begun := time.Now()
			state, ok, err := node.Take(t.Context(), "ws", 600, noon)
			if ok || !fault.Is(err, fault.Unavailable) || state.Limit != 600 || !state.Reset.After(noon) {
				t.Errorf("without an answer: %+v, %t, %v", state, ok, err)
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		}
		// Who goes away is not kept, and takes nobody along.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok, err := node.Take(ctx, "ws", 600, noon); ok || !errors.Is(err, context.DeadlineExceeded) || fault.Is(err, fault.Unavailable) {
			t.Errorf("a request that was given up: %t, %v", ok, err)
		}
		p.mu.Lock()
		p.before = func(context.Context) error { return errors.New("refused") }
		p.mu.Unlock()
		time.Sleep(time.Minute)
		if _, ok, err := node.Take(t.Context(), "ws", 600, noon); ok || !fault.Is(err, fault.Unavailable) {
			t.Errorf("with an error: %t, %v", ok, err)
		}
		p.mu.Lock()
		p.before = nil
		p.mu.Unlock()
		if state, ok := take(t, node, "ws", 600, noon); !ok || state.Remaining != 599 {
			t.Errorf("when the pot answers again: %+v, %t", state, ok)
		}
	})
}

// A pot that is slow and gives little keeps nobody for long.
func TestOneOfManyDoesNotWaitForeverEither(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPot()
		p.most = 1
		p.before = func(context.Context) error {
			time.Sleep(1500 * time.Millisecond)
			return nil
		}
		node := ratelimit.NewLeased(p, inTime)
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
		time.Sleep(time.Minute) // the last call is under way
	})
}

func TestLeasedWindowsAndKeysAreSeparate(t *testing.T) {
	t.Parallel()
	p := newPot()
	node := ratelimit.NewLeased(p, inTime)
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
	use("ws", noon.Add(29*time.Second), true) // a request that came a little earlier
	use("ws", noon.Add(30*time.Second), false)
	use("ws", noon.Add(-time.Hour), true) // a clock that was wrong
	use("ws", noon, false)                // the pot remembers
	asked := p.asked()
	for range 100 {
		use("ws", noon, false)
	}
	if p.asked() != asked {
		t.Error("the pot is asked again although it is empty")
	}
}

func TestANewLimitHoldsAtOnce(t *testing.T) {
	t.Parallel()
	all := nodes(newPot(), 2)
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
	// Tokens at hand do not outlive a limit that is lowered.
	for range 5000 {
		take(t, all[0], "large", 10_000, noon)
	}
	if state, ok := take(t, all[0], "large", 60, noon); ok || state.Remaining != 0 {
		t.Errorf("after the limit was lowered: %+v, %t", state, ok)
	}
}

// Nodes whose clocks differ mean the same window.
func TestNodesFollowTheClockTheyShare(t *testing.T) {
	t.Parallel()
	p := newPot()
	late := ratelimit.NewLeased(p, func() time.Duration { return 10 * time.Minute })
	state, ok := take(t, late, "ws", 1, noon.Add(-10*time.Minute))
	if want := noon.Truncate(time.Minute).Add(time.Minute); !ok || !state.Reset.Equal(want) || state.Wait != 30*time.Second {
		t.Errorf("got %+v, %t", state, ok)
	}
	if _, ok := take(t, ratelimit.NewLeased(p, inTime), "ws", 1, noon); ok {
		t.Error("a node whose clock is right counts another window")
	}
}
