package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
)

// Faulty is a driver that fails at random: it does nothing, or does what it was
// asked and reports an error.
type Faulty struct {
	database.Driver

	mu     sync.Mutex
	random *rand.Rand
	rate   float64
	counts Faults
}

// Faults counts the calls and the faults.
type Faults struct {
	Calls       int
	Timeout     int // nothing was done, after a delay
	Executed    int // done, but reported as an error
	Unavailable int // nothing was done
}

// NewFaulty wraps a driver. It injects no faults until Fail is called.
func NewFaulty(driver database.Driver, random *rand.Rand) *Faulty {
	return &Faulty{Driver: driver, random: random}
}

// Fail sets the rate of each kind of fault.
func (f *Faulty) Fail(rate float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate = rate
}

// Counts returns the counts so far.
func (f *Faulty) Counts() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// Read implements store.Driver.
func (f *Faulty) Read(ctx context.Context, fn func(database.Conn) error) error {
	return f.call(false, func() error { return f.Driver.Read(ctx, fn) })
}

// ReadAll implements store.Driver.
func (f *Faulty) ReadAll(ctx context.Context, queries func() []database.Query) error {
	return f.call(false, func() error { return f.Driver.ReadAll(ctx, queries) })
}

// Write implements store.Driver.
func (f *Faulty) Write(ctx context.Context, fn func(database.Conn) error) error {
	return f.call(true, func() error { return f.Driver.Write(ctx, fn) })
}

// WriteRun implements store.Driver.
func (f *Faulty) WriteRun(ctx context.Context, runID string, fn func(database.Conn) error) error {
	return f.call(true, func() error { return f.Driver.WriteRun(ctx, runID, fn) })
}

func (f *Faulty) call(writes bool, fn func() error) error {
	switch f.next(writes) {
	case timeout:
		time.Sleep(20 * time.Millisecond)
		return unavailable("injected fault: timeout")
	case down:
		return unavailable("injected fault: the store is unavailable")
	case executed:
		if err := fn(); err != nil {
			return err
		}
		return unavailable("injected fault: done, but reported as an error")
	default:
		return fn()
	}
}

type faultKind int

const (
	noFault faultKind = iota
	timeout
	down
	executed
)

func (f *Faulty) next(writes bool) faultKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.Calls++
	switch x := f.random.Float64(); {
	case x < f.rate:
		f.counts.Timeout++
		return timeout
	case x < 2*f.rate:
		f.counts.Unavailable++
		return down
	case x < 3*f.rate && writes:
		f.counts.Executed++
		return executed
	}
	return noFault
}

func unavailable(why string) error { return fault.New(fault.Unavailable, "%s", why).After(time.Second) }
