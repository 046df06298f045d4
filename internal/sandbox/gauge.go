package sandbox

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// lookEvery is how often the memory is looked at while a script runs. Memory
// that is really used has to be written, and in this time not much can be.
const lookEvery = 2 * time.Millisecond

// gauge tells when a script has used up its memory: what the process uses on
// top of what it had before the first one.
type gauge struct{ base, memory uint64 }

func newGauge(memory int64) *gauge {
	runtime.GC()
	g := &gauge{base: inUse(), memory: uint64(memory)}
	// The collector works harder the nearer it comes, so that garbage does not
	// count against the script.
	debug.SetMemoryLimit(int64(g.base) + memory)
	return g
}

// inUse is what objects and stacks take, garbage included.
func inUse() uint64 {
	samples := [...]metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples[:])
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

// watch looks until it is stopped; the channel is closed when there is too
// much.
func (g *gauge) watch(stop <-chan struct{}) <-chan struct{} {
	exceeded := make(chan struct{})
	go func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				if g.exceeded() {
					close(exceeded)
					return
				}
			}
		}
	}()
	return exceeded
}

// exceeded tells whether there is too much in use. A little over the limit it
// may be garbage: that is collected first. Far over it there is no time for
// that.
func (g *gauge) exceeded() bool {
	used := inUse()
	if used <= g.base+g.memory {
		return false
	}
	if used > g.base+2*g.memory {
		return true
	}
	runtime.GC()
	return inUse() > g.base+g.memory
}
