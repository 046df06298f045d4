// Package pubsub notifies subscribers in this process that something has changed.
// Subscribers subscribe to a key, whose meaning is up to the caller. Notifications
// carry no data, so that several can be merged into one: a subscriber reads the
// current state itself.
package pubsub

import (
	"sync"
	"sync/atomic"
)

// Broker connects publishers and subscribers.
type Broker struct {
	// count is the number of subscribers. It makes Publish cheap while there are
	// none.
	count atomic.Int64

	mu          sync.RWMutex
	subscribers map[string]map[chan struct{}]struct{}
}

// NewBroker returns a broker without subscribers.
func NewBroker() *Broker { return &Broker{subscribers: map[string]map[chan struct{}]struct{}{}} }

// Subscribe returns a channel that receives a value after the key was published, and
// a function that ends the subscription. Publications that the subscriber has not
// received yet are merged into one.
func (b *Broker) Subscribe(key string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subscribers[key] == nil {
		b.subscribers[key] = map[chan struct{}]struct{}{}
	}
	b.subscribers[key][ch] = struct{}{}
	b.count.Add(1)
	return ch, sync.OnceFunc(func() { b.unsubscribe(key, ch) })
}

func (b *Broker) unsubscribe(key string, ch chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.subscribers[key], ch); len(b.subscribers[key]) == 0 {
		delete(b.subscribers, key)
	}
	b.count.Add(-1)
}

// Subscribers returns the number of subscribers.
func (b *Broker) Subscribers() int { return int(b.count.Load()) }

// Publish notifies the subscribers of a key. It does not block.
func (b *Broker) Publish(key string) {
	if b.count.Load() == 0 {
		return
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	signalAll(b.subscribers[key])
}

// PublishAll notifies the subscribers of all keys.
func (b *Broker) PublishAll() {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, channels := range b.subscribers {
		signalAll(channels)
	}
}

func signalAll(channels map[chan struct{}]struct{}) {
	for ch := range channels {
		Signal(ch)
	}
}
