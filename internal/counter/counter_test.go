package counter_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/counter"
)

func TestSet(t *testing.T) {
	t.Parallel()
	s := counter.NewSet("a", "b")
	if diff := cmp.Diff(map[string]int64{"a": 0, "b": 0}, s.Counts()); diff != "" {
		t.Errorf("empty set: %s", diff)
	}
	for _, name := range []string{"b", "b", "c", "d", counter.Other} {
		s.Add(name)
	}
	if diff := cmp.Diff(map[string]int64{"a": 0, "b": 2, counter.Other: 3}, s.Counts()); diff != "" {
		t.Error(diff)
	}
}

// A set that lists Other also counts unknown names there.
func TestSetWithOther(t *testing.T) {
	t.Parallel()
	s := counter.NewSet(counter.Other)
	s.Add(counter.Other)
	s.Add("unknown")
	if diff := cmp.Diff(map[string]int64{counter.Other: 2}, s.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	times := counter.NewDurations(time.Millisecond, time.Second)
	for _, took := range []time.Duration{-time.Second, 0, time.Millisecond, time.Millisecond + 1, time.Second, time.Minute} {
		times.ObserveDuration(took)
	}
	want := counter.Snapshot{Bounds: []float64{0.001, 1}, Counts: []uint64{3, 2, 1}, Sum: 61.002000001}
	if diff := cmp.Diff(want, times.Snapshot()); diff != "" {
		t.Error(diff)
	}
	if n := times.Snapshot().Total(); n != 6 {
		t.Errorf("%d values, want 6", n)
	}
	sizes := counter.NewSizes(1, 8)
	for _, size := range []int64{1, 2, 8, 9} {
		sizes.Observe(size)
	}
	want = counter.Snapshot{Bounds: []float64{1, 8}, Counts: []uint64{1, 2, 1}, Sum: 20}
	if diff := cmp.Diff(want, sizes.Snapshot()); diff != "" {
		t.Error(diff)
	}
}

func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	const workers, each = 8, 1000
	s, h := counter.NewSet("a"), counter.NewSizes(10)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range int64(each) {
				s.Add("a")
				s.Add("unknown")
				h.Observe(i % 20)
				_, _ = s.Counts(), h.Snapshot()
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int64{"a": workers * each, counter.Other: workers * each}, s.Counts()); diff != "" {
		t.Error(diff)
	}
	if got := h.Snapshot(); got.Total() != workers*each || got.Sum != workers*each*9.5 {
		t.Errorf("%+v", got)
	}
}

func BenchmarkSet(b *testing.B) {
	s := counter.NewSet("succeeded", "failed", "waiting", "retried")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Add("retried")
		}
	})
}

func BenchmarkHistogram(b *testing.B) {
	h := counter.NewDurations(100*time.Microsecond, time.Millisecond, 5*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond,
		100*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second, 10*time.Second)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h.ObserveDuration(20 * time.Millisecond)
		}
	})
}
