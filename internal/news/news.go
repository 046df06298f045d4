// Package news owns the telling that something has changed: many wait for news
// of a thing, named by its key, and whoever changed it tells them. News has no
// content, so that it never piles up: who hears of it looks for himself. What
// the keys stand for is decided by those who use them.
package news

import (
	"sync"
	"sync/atomic"
)

// Hub connects those who tell with those who wait.
type Hub struct {
	// waiting counts everybody, so that telling costs next to nothing while
	// nobody waits for anything.
	waiting atomic.Int64

	mu    sync.RWMutex
	bells map[string]map[chan struct{}]struct{}
}

// NewHub makes a hub where nobody waits.
func NewHub() *Hub { return &Hub{bells: map[string]map[chan struct{}]struct{}{}} }

// Wait returns a channel that has an element when there was news since the last
// one was taken out, and a function that ends the wait.
func (h *Hub) Wait(key string) (heard <-chan struct{}, stop func()) {
	bell := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bells[key] == nil {
		h.bells[key] = map[chan struct{}]struct{}{}
	}
	h.bells[key][bell] = struct{}{}
	h.waiting.Add(1)
	return bell, sync.OnceFunc(func() { h.leave(key, bell) })
}

func (h *Hub) leave(key string, bell chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.bells[key], bell); len(h.bells[key]) == 0 {
		delete(h.bells, key)
	}
	h.waiting.Add(-1)
}

// Waiting is how many wait.
func (h *Hub) Waiting() int { return int(h.waiting.Load()) }

// Tell tells everybody who waits for news of the key. It waits for nobody.
func (h *Hub) Tell(key string) {
	if h.waiting.Load() == 0 {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	ring(h.bells[key])
}

// TellAll tells everybody.
func (h *Hub) TellAll() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, bells := range h.bells {
		ring(bells)
	}
}

func ring(bells map[chan struct{}]struct{}) {
	for bell := range bells {
		select {
		case bell <- struct{}{}:
		default: // there is news that it has not heard yet
		}
	}
}
