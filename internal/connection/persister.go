package connection

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// persister repeats writes that must not be lost until the store accepts them, such as that of
// a token, which the service does not issue again.
type persister struct {
	log     *slog.Logger
	running sync.WaitGroup // writes, and renewals, which may end with one
	// life ends when the process stops, even if the store still fails.
	life context.Context
	end  context.CancelFunc
}

func newPersister(log *slog.Logger) *persister {
	life, end := context.WithCancel(context.Background())
	return &persister{log: log, life: life, end: end}
}

const (
	minStorePause = 50 * time.Millisecond
	maxStorePause = 5 * time.Second
)

// retry calls do until the store works, with backoff. It returns the last error if a retry
// would not help or the process stops.
func (p *persister) retry(operation, id string, do func(context.Context) error) error {
	ctx := context.Background() // no deadline of a request; the store limits each operation
	for pause := minStorePause; ; pause = min(2*pause, maxStorePause) {
		err := do(ctx)
		if err == nil || !isTemporary(err) {
			return err
		}
		p.log.Error("the store failed; retrying", "operation", operation, "connection", id, "error", err)
		if !clock.Sleep(p.life, pause) {
			p.log.Error("the process stops before the store works", "operation", operation, "connection", id)
			return err
		}
	}
}

// commit is a write that a persister repeats in the background.
type commit struct {
	done chan struct{}
	err  error // after done is closed
}

// persist calls do in the background until the store works.
func (p *persister) persist(operation, id string, do func(context.Context) error) *commit {
	c := &commit{done: make(chan struct{})}
	p.running.Go(func() {
		defer close(c.done)
		c.err = p.retry(operation, id, do)
	})
	return c
}

// storePatience is how long the request of a person waits for the store.
const storePatience = 10 * time.Second

// await waits for the commit of a consent, but not longer than storePatience.
func (c *commit) await(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	select {
	case <-c.done:
		return c.err
	case <-limited.Done():
		return fault.New(fault.Unavailable,
			"the service has allowed the access, but the database failed, so it is not stored yet. Stepmill keeps it and tries again: look at the connection in a few minutes, and connect again only if nothing has changed")
	}
}

// shutdown waits until everything that is running has finished or the context ends, and then
// stops repeating writes.
func (p *persister) shutdown(ctx context.Context) {
	defer p.end()
	done := make(chan struct{})
	go func() {
		p.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		p.log.Warn("the process stops while a token is renewed; its connection may have to be reconnected")
	}
}
