// Package tally counts while the work goes on: how often something happened, by
// names that are known beforehand, and how large it was. Counting costs a few
// nanoseconds and no lock. Who wants to know asks for a copy; what the counts
// are called outside is not decided here.
package tally

import (
	"sync/atomic"
	"time"
)

// Other is the name that everything unknown is counted under.
const Other = "other"

// Set counts by name. The names are fixed when it is made, so that nothing that
// comes from outside can make it grow.
type Set struct {
	counts map[string]*atomic.Int64
	other  atomic.Int64
}

// NewSet makes a set in which every name stands at zero.
func NewSet(names ...string) *Set {
	s := &Set{counts: make(map[string]*atomic.Int64, len(names))}
	for _, name := range names {
		s.counts[name] = &atomic.Int64{}
	}
	return s
}

// Add counts one more.
func (s *Set) Add(name string) {
	if count, known := s.counts[name]; known {
		count.Add(1)
		return
	}
	s.other.Add(1)
}

// Counts returns what was counted so far, with Other if there was any.
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

// Histogram counts values by their size.
type Histogram struct {
	bounds []int64
	unit   float64
	counts []atomic.Uint64 // one more than bounds: what is above them all
	sum    atomic.Uint64
}

// NewTimes makes a histogram of lengths of time, which are told in seconds. The
// bounds grow, and belong to what is below them.
func NewTimes(bounds ...time.Duration) *Histogram {
	numbers := make([]int64, len(bounds))
	for i, bound := range bounds {
		numbers[i] = int64(bound)
	}
	return newHistogram(float64(time.Second), numbers)
}

// NewSizes makes a histogram of numbers that are not negative.
func NewSizes(bounds ...int64) *Histogram { return newHistogram(1, bounds) }

func newHistogram(unit float64, bounds []int64) *Histogram {
	return &Histogram{bounds: bounds, unit: unit, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Took counts a length of time. One that is negative, because a clock was set
// back, counts as none.
func (h *Histogram) Took(length time.Duration) { h.Count(int64(length)) }

// Count counts a number.
func (h *Histogram) Count(value int64) {
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
	// Counts says how many values there were up to each bound and above the one
	// before it, and last how many above all of them.
	Counts []uint64
	Sum    float64
}

// Snapshot returns what was counted so far.
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

// Total is how many values were counted.
func (s Snapshot) Total() uint64 {
	total := uint64(0)
	for _, n := range s.Counts {
		total += n
	}
	return total
}
