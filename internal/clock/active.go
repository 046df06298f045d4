package clock

import (
	"sync"
	"time"
)

// activeStep is the most that a pause of the process can add to the time of AfterActive.
const activeStep = time.Second

// AfterActive calls a function in a goroutine of its own once the process has been running
// for d. The time during which the process was stopped, or its machine was suspended, does
// not count. Calling stop prevents the call, unless it has begun.
func AfterActive(d time.Duration, call func()) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		for left := d; left > 0; left -= activeStep {
			timer := time.NewTimer(min(left, activeStep))
			select {
			case <-timer.C:
			case <-stopped:
				timer.Stop()
				return
			}
		}
		call()
	}()
	return sync.OnceFunc(func() { close(stopped) })
}
