package ratelimit_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/ratelimit"
)

var noon = time.Date(2026, 11, 15, 12, 0, 30, 0, time.UTC)

func TestTakeStopsAtTheLimitAndBeginsAnewEachMinute(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New()
	for i := range 3 {
		state, ok := limiter.Take("ws", 3, noon)
		if !ok || state.Remaining != 2-i || state.Limit != 3 {
			t.Fatalf("request %d: %+v, %v", i, state, ok)
		}
		if want := noon.Truncate(time.Minute).Add(time.Minute); !state.Reset.Equal(want) {
			t.Fatalf("reset is %v, not %v", state.Reset, want)
		}
	}
	if state, ok := limiter.Take("ws", 3, noon.Add(29*time.Second)); ok || state.Remaining != 0 {
		t.Fatalf("the fourth request passes: %+v", state)
	}
	if _, ok := limiter.Take("other", 3, noon); !ok {
		t.Fatal("another key is refused")
	}
	if state := limiter.Peek("ws", 3, noon); state.Remaining != 0 {
		t.Fatalf("peek: %+v", state)
	}
	if state, ok := limiter.Take("ws", 3, noon.Add(30*time.Second)); !ok || state.Remaining != 2 {
		t.Fatalf("the next minute: %+v, %v", state, ok)
	}
}

func TestAClockSetBackGivesNothingAway(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New()
	limiter.Take("ws", 1, noon)
	if _, ok := limiter.Take("ws", 1, noon.Add(-45*time.Second)); ok {
		t.Fatal("a second request passes")
	}
}

func TestExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New()
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 100 {
				if _, ok := limiter.Take("ws", 600, noon); ok {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 600 {
		t.Fatalf("%d requests passed", passed.Load())
	}
}
