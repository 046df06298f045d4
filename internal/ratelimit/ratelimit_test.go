package ratelimit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/ratelimit"
)

var noon = time.Date(2026, 11, 15, 12, 0, 30, 0, time.UTC)

type limits interface {
	Take(ctx context.Context, key string, limit int, now time.Time) (ratelimit.State, bool, error)
}

func take(t *testing.T, l limits, key string, limit int, now time.Time) (ratelimit.State, bool) {
	t.Helper()
	state, ok, err := l.Take(t.Context(), key, limit, now)
	if err != nil {
		t.Error(err)
	}
	return state, ok
}

func TestTakeStopsAtTheLimitAndResetsEachMinute(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New()
	for i := range 3 {
		state, ok := take(t, limiter, "ws", 3, noon)
		if !ok || state.Remaining != 2-i || state.Limit != 3 {
			t.Fatalf("request %d: %+v, %v", i, state, ok)
		}
		if want := noon.Truncate(time.Minute).Add(time.Minute); !state.Reset.Equal(want) || state.Wait != 30*time.Second {
			t.Fatalf("reset is %v, in %v, not %v", state.Reset, state.Wait, want)
		}
	}
	if state, ok := take(t, limiter, "ws", 3, noon.Add(29*time.Second)); ok || state.Remaining != 0 {
		t.Fatalf("the fourth request passed: %+v", state)
	}
	if _, ok := take(t, limiter, "other", 3, noon); !ok {
		t.Fatal("another key was rejected")
	}
	if state := limiter.Peek("ws", 3, noon); state.Remaining != 0 {
		t.Fatalf("peek: %+v", state)
	}
	if state, ok := take(t, limiter, "ws", 3, noon.Add(30*time.Second)); !ok || state.Remaining != 2 {
		t.Fatalf("the next minute: %+v, %v", state, ok)
	}
}

func TestClockSetBackDoesNotResetTheWindow(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New()
	take(t, limiter, "ws", 1, noon)
	if _, ok := take(t, limiter, "ws", 1, noon.Add(-45*time.Second)); ok {
		t.Fatal("a second request passed")
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
				if _, ok := take(t, limiter, "ws", 600, noon); ok {
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
