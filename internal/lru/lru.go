// Package lru keeps what was used last in memory, up to a limit.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps the values that were used last. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	limit   int // of the size of all values together
	size    int
	order   *list.List // of entry, the most recently used first
	entries map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache of values that together have at most this size.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, order: list.New(), entries: map[K]*list.Element{}}
}

// Get returns the value of a key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		return value, false
	}
	c.order.MoveToFront(element)
	return element.Value.(entry[K, V]).value, true
}

// Add keeps a value and returns it. If the key has a value, that one stays and is returned.
func (c *Cache[K, V]) Add(key K, value V, size int) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.entries[key]; element != nil {
		return element.Value.(entry[K, V]).value
	}
	c.entries[key] = c.order.PushFront(entry[K, V]{key, value, size})
	for c.size += size; c.size > c.limit; {
		oldest := c.order.Remove(c.order.Back()).(entry[K, V])
		delete(c.entries, oldest.key)
		c.size -= oldest.size
	}
	return value
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
