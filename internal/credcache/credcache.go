// Package credcache keeps what credentials stand for, such as the key or the session of a
// token, for so short a time that a change by another process is noticed soon, and the times
// of their last use until they are written.
package credcache

import (
	"maps"
	"sync"
	"time"
)

const (
	// life bounds how long this process uses what another one has revoked or changed. It is short
	// because nodes send each other no messages about that, and must notice it within 5 seconds.
	life = 2 * time.Second
	// maxEntries bounds the memory, which holds credentials that were used in the last
	// days, not only in the last two seconds. A full cache is emptied.
	maxEntries = 10_000
)

// Cache holds what exists. It does not cache misses, so that a new credential works at
// once. It is safe for concurrent use.
type Cache[V any] struct {
	interval time.Duration // at which uses are recorded

	mu         sync.RWMutex
	entries    map[string]entry[V] // by credential
	generation int                 // incremented by each Drop
	used       map[string]time.Time
	unwritten  map[string]time.Time
}

type entry[V any] struct {
	value  V
	readAt time.Time
}

// New returns a cache that records at most one use of a credential per interval.
func New[V any](interval time.Duration) *Cache[V] {
	return &Cache[V]{interval: interval, entries: map[string]entry[V]{}, used: map[string]time.Time{}, unwritten: map[string]time.Time{}}
}

// Get returns the value of a credential.
func (c *Cache[V]) Get(credential string, now time.Time) (value V, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found, ok := c.entries[credential]
	if !ok || now.Sub(found.readAt) > life {
		return value, false
	}
	return found.value, true
}

// Generation returns the generation to pass to Put after a read that begins now.
func (c *Cache[V]) Generation() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.generation
}

// Put caches what was read. It does not if entries were dropped since the read began: the
// value may have changed in between.
func (c *Cache[V]) Put(credential string, value V, readAt time.Time, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		return
	}
	if len(c.entries) >= maxEntries {
		clear(c.entries)
		clear(c.used)
	}
	c.entries[credential] = entry[V]{value, readAt}
}

// Drop removes some of the entries.
func (c *Cache[V]) Drop(which func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	maps.DeleteFunc(c.entries, func(_ string, e entry[V]) bool { return which(e.value) })
}

// LastUse returns the last use that was recorded here, or zero. The stored one can be later
// or earlier.
func (c *Cache[V]) LastUse(id string) time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.used[id]
}

// Touch records a use, unless one was recorded less than an interval ago.
func (c *Cache[V]) Touch(id string, now time.Time) {
	if now.Sub(c.LastUse(id)) < c.interval {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[id], c.unwritten[id] = now, now
}

// TakeUnwritten returns the uses to write, by id.
func (c *Cache[V]) TakeUnwritten() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	unwritten := c.unwritten
	c.unwritten = map[string]time.Time{}
	return unwritten
}

// Restore puts back uses that could not be written.
func (c *Cache[V]) Restore(unwritten map[string]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range unwritten {
		if at.After(c.unwritten[id]) {
			c.unwritten[id] = at
		}
	}
}
