// Package counter provides lock-free counters and histograms. Updating one takes a
// few nanoseconds; readers get a copy. Metric names are defined by the callers.
package counter

import (
	"sync/atomic"
	"time"
)

// Other is the name under which unknown names are counted.
const Other = "other"

// Set counts by name. Its names are fixed, so that external input cannot make it
// grow.
type Set struct {
	counts map[string]*atomic.Int64
	other  atomic.Int64
}

// NewSet returns a set with all names at zero.
func NewSet(names ...string) *Set {
	s := &Set{counts: make(map[string]*atomic.Int64, len(names))}
	for _, name := range names {
		s.counts[name] = &atomic.Int64{}
	}
	return s
}

// Add increments the count of a name.
func (s *Set) Add(name string) {
	if count, known := s.counts[name]; known {
		count.Add(1)
		return
	}
	s.other.Add(1)
}

// Counts returns the current counts, including Other if it is not zero.
func (s *Set) Counts() map[string]int64 {
	out := make(map[string]int64, len(s.counts)+1)
	for name, count := range s.counts {
		out[name] = count.Load()
	}
	if n := s.other.Load(); n > 0 {
		out[Other] += n
	}
	return out
}

// Histogram counts values in buckets.
type Histogram struct {
	bounds []int64
	unit   float64
	counts []atomic.Uint64 // the last one counts values above all bounds
	sum    atomic.Uint64
}

// NewDurations returns a histogram of durations, which Snapshot reports in
// seconds. The bounds must be ascending and are inclusive.
func NewDurations(bounds ...time.Duration) *Histogram {
	numbers := make([]int64, len(bounds))
	for i, bound := range bounds {
		numbers[i] = int64(bound)
	}
	return newHistogram(float64(time.Second), numbers)
}

// NewSizes returns a histogram of non-negative numbers.
func NewSizes(bounds ...int64) *Histogram { return newHistogram(1, bounds) }

func newHistogram(unit float64, bounds []int64) *Histogram {
	return &Histogram{bounds: bounds, unit: unit, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// ObserveDuration adds a duration. A negative one, after a clock was set back,
// counts as zero.
func (h *Histogram) ObserveDuration(length time.Duration) { h.Observe(int64(length)) }

// Observe adds a value. A negative one counts as zero.
func (h *Histogram) Observe(value int64) {
	value = max(0, value)
	i := 0
	for i < len(h.bounds) && value > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(uint64(value))
}

// Snapshot is a copy of a histogram.
type Snapshot struct {
	Bounds []float64
	// Counts are the numbers of values in each bucket; the last one is above all
	// bounds.
	Counts []uint64
	Sum    float64
}

// Snapshot returns a copy of the histogram.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Bounds: make([]float64, len(h.bounds)), Counts: make([]uint64, len(h.counts)), Sum: float64(h.sum.Load()) / h.unit}
	for i, bound := range h.bounds {
		s.Bounds[i] = float64(bound) / h.unit
	}
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
	}
	return s
}

// Total returns the number of values.
func (s Snapshot) Total() uint64 {
	total := uint64(0)
	for _, n := range s.Counts {
		total += n
	}
	return total
}
