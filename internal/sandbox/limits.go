package sandbox

import (
	"context"
	"time"
)

// limits bound a request to a child. Zero means no limit.
type limits struct {
	time time.Duration
	// cpu is the processor time that the child may use. Where it cannot be measured,
	// it limits the time instead.
	cpu time.Duration
}

// cpuCheckEvery is how often the processor time of a child is measured. It is measured because a
// script that only waits for a busy processor is not too complex.
const cpuCheckEvery = 100 * time.Millisecond

// apply returns a context that ends when the child exceeds the limits.
func (l limits) apply(ctx context.Context, c *child) (context.Context, context.CancelFunc) {
	if l.time == 0 {
		return ctx, func() {}
	}
	if l.cpu == 0 {
		return context.WithTimeout(ctx, l.time)
	}
	before, ok := c.cpuTime()
	if !ok {
		return context.WithTimeout(ctx, l.cpu)
	}
	ctx, cancel := context.WithTimeout(ctx, l.time)
	go func() {
		check := time.NewTicker(cpuCheckEvery)
		defer check.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-check.C:
			}
			if used, ok := c.cpuTime(); ok && used-before >= l.cpu {
				cancel()
			}
		}
	}()
	return ctx, cancel
}
