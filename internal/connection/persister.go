package connection

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// persister repeats what must not be lost until the store works, such as storing a token
// that a service has issued: it issues each one once.
type persister struct {
	log     *slog.Logger
	running sync.WaitGroup // writes, and the renewals that may need one
	// life ends when the process stops, whether or not the store works again.
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

// retry calls do until the store works, with backoff. It returns the last error if
// that will not pass, or if the process stops.
func (p *persister) retry(operation, id string, do func(context.Context) error) error {
	ctx := context.Background() // the store limits each operation
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

// commit is something that is written until the store works.
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

// storePatience is how long a person waits for the store.
const storePatience = 10 * time.Second

// await waits a while for the commit of what a person has consented to.
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

// shutdown waits for what is running, and then stops to repeat writes. When the context
// ends, it gives up.
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
