package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
)

// Faulty is a driver that now and then does not do what it is asked, or does it
// and says that it did not.
type Faulty struct {
	store.Driver

	mu     sync.Mutex
	random *rand.Rand
	rate   float64
	counts Faults
}

// Faults count what has happened.
type Faults struct {
	Units       int
	Timeout     int // nothing was done, after a while
	Executed    int // everything was done, and an error reported
	Unavailable int // nothing was done
}

// NewFaulty makes a driver fail. It does nothing of the kind until it is told to.
func NewFaulty(driver store.Driver, random *rand.Rand) *Faulty {
	return &Faulty{Driver: driver, random: random}
}

// Fail makes each kind of fault happen at that rate from now on.
func (f *Faulty) Fail(rate float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate = rate
}

// Counts are what has happened so far.
func (f *Faulty) Counts() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// Read implements store.Driver.
func (f *Faulty) Read(ctx context.Context, fn func(store.Conn) error) error {
	return f.around(false, func() error { return f.Driver.Read(ctx, fn) })
}

// ReadAll implements store.Driver.
func (f *Faulty) ReadAll(ctx context.Context, queries func() []store.Query) error {
	return f.around(false, func() error { return f.Driver.ReadAll(ctx, queries) })
}

// Write implements store.Driver.
func (f *Faulty) Write(ctx context.Context, fn func(store.Conn) error) error {
	return f.around(true, func() error { return f.Driver.Write(ctx, fn) })
}

// WriteRun implements store.Driver.
func (f *Faulty) WriteRun(ctx context.Context, runID string, fn func(store.Conn) error) error {
	return f.around(true, func() error { return f.Driver.WriteRun(ctx, runID, fn) })
}

func (f *Faulty) around(writes bool, do func() error) error {
	switch f.next(writes) {
	case timeout:
		time.Sleep(20 * time.Millisecond)
		return unavailable("a fault: nothing was done in time")
	case absent:
		return unavailable("a fault: the store is away")
	case executed:
		if err := do(); err != nil {
			return err
		}
		return unavailable("a fault: it was done")
	default:
		return do()
	}
}

type mishap int

const (
	nothing mishap = iota
	timeout
	absent
	executed
)

func (f *Faulty) next(writes bool) mishap {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.Units++
	switch dice := f.random.Float64(); {
	case dice < f.rate:
		f.counts.Timeout++
		return timeout
	case dice < 2*f.rate:
		f.counts.Unavailable++
		return absent
	case dice < 3*f.rate && writes:
		f.counts.Executed++
		return executed
	}
	return nothing
}

func unavailable(why string) error { return fault.New(fault.Unavailable, "%s", why).After(time.Second) }
