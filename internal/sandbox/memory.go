package sandbox

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// pollInterval is how often the monitor measures memory while a script runs. A
// script has to write to the memory it uses, and cannot write much in this time.
const pollInterval = 2 * time.Millisecond

// memoryMonitor detects when a script exceeds its memory limit. It measures what
// the process uses beyond its usage before the first script.
type memoryMonitor struct{ base, memory uint64 }

func newMemoryMonitor(memory int64) *memoryMonitor {
	runtime.GC()
	g := &memoryMonitor{base: inUse(), memory: uint64(memory)}
	// The collector runs more often near the limit, so that garbage does not count
	// against the script.
	debug.SetMemoryLimit(int64(g.base) + memory)
	return g
}

func inUse() uint64 {
	samples := [...]metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples[:])
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

// watch measures until stop is closed. It closes the returned channel if the
// limit is exceeded.
func (g *memoryMonitor) watch(stop <-chan struct{}) <-chan struct{} {
	exceeded := make(chan struct{})
	go func() {
		ticker := time.NewTicker(pollInterval)
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

// exceeded reports whether usage is over the limit. If it is a little over, the
// excess may be garbage, so exceeded collects it and measures again. If it is far
// over, there is no time for that.
func (g *memoryMonitor) exceeded() bool {
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
