package storetest

import (
	"sync/atomic"
	"testing"
	"time"
)

func testTokens(t *testing.T, w *harness) {
	ctx, ws, other := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	minute := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	take := func(t *testing.T, ws string, window time.Time, want, limit, granted, left int) {
		t.Helper()
		g, l, err := w.RateLimits.TakeTokens(ctx, ws, window, want, limit)
		if err != nil || g != granted || l != left {
			t.Errorf("take %d of %d: got %d, %d left, %v; want %d, %d left", want, limit, g, l, err, granted, left)
		}
	}

	t.Run("grants no more than the limit", func(t *testing.T) {
		take(t, ws, minute, 4, 10, 4, 6)
		take(t, ws, minute, 1, 10, 1, 5)
		take(t, ws, minute, 7, 10, 5, 0)
		take(t, ws, minute, 1, 10, 0, 0)
		take(t, ws, minute.Add(time.Minute), 99, 10, 10, 0)
		take(t, other, minute, 10, 10, 10, 0)
		take(t, other, minute, 10, 10, 0, 0)
	})

	t.Run("respects a changed limit", func(t *testing.T) {
		window := minute.Add(time.Hour)
		take(t, ws, window, 5, 10, 5, 5)
		take(t, ws, window, 1, 3, 0, 0)
		take(t, ws, window, 1, 5, 0, 0)
		take(t, ws, window, 4, 7, 2, 0)
		take(t, ws, window, 1, 9, 1, 1)
	})

	t.Run("grants nothing to a request for nothing", func(t *testing.T) {
		window := minute.Add(2 * time.Hour)
		take(t, ws, window, 0, 10, 0, 10)
		take(t, ws, window, 5, 0, 0, 0)
		take(t, ws, window, 10, 10, 10, 0)
	})

	t.Run("is exact under concurrency", func(t *testing.T) {
		var granted atomic.Int64
		concurrently(t, 64, func(i int) (bool, error) {
			n, _, err := w.RateLimits.TakeTokens(ctx, ws, minute.Add(3*time.Hour), 1+i%7, 100)
			granted.Add(int64(n))
			return n > 0, err
		})
		equal(t, "granted", granted.Load(), 100)
	})

	t.Run("purges old windows", func(t *testing.T) {
		const all = `SELECT count(*) FROM rate_windows`
		before := w.count(t, all)
		returns(w.RateLimits.PurgeTokens(ctx, minute.Add(time.Minute), 1))(t, "the first of two", true)
		returns(w.RateLimits.PurgeTokens(ctx, minute.Add(time.Minute), 2))(t, "the second", false)
		equal(t, "purged windows", before-w.count(t, all), 2)
		take(t, ws, minute.Add(time.Minute), 1, 10, 0, 0)
		take(t, ws, minute, 1, 10, 1, 9)
	})
}
