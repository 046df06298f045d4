package app

import (
	"errors"
	"sync"
)

// group runs the parts of a server. When one fails, it stops all of them.
type group struct {
	stop func()
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

func newGroup(stop func()) *group { return &group{stop: stop} }

func (g *group) start(part func() error) {
	g.wg.Go(func() {
		if err := part(); err != nil {
			g.mu.Lock()
			g.errs = append(g.errs, err)
			g.mu.Unlock()
			g.stop()
		}
	})
}

func (g *group) wait() error {
	g.wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}
