package ownintegration

import (
	"container/list"
	"sync"

	"github.com/stepmill/stepmill/internal/integration"
)

// cachedBytes is how long the texts of the manifests are together whose compiled form is
// kept. Compiled, they need about ten times as much memory.
const cachedBytes = 8 << 20

// cache keeps the integrations that were used last. It is safe for concurrent use. A text
// compiles to the same integration for ever, so an entry is never out of date.
type cache struct {
	mu      sync.Mutex
	order   *list.List // most recently used first
	entries map[cacheKey]*list.Element
	size    int
}

type cacheKey struct{ workspaceID, id, digest string }

type cacheEntry struct {
	key  cacheKey
	one  *integration.Integration
	size int
}

func newCache() *cache { return &cache{order: list.New(), entries: map[cacheKey]*list.Element{}} }

func (c *cache) find(key cacheKey) *integration.Integration {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		return nil
	}
	c.order.MoveToFront(element)
	return element.Value.(cacheEntry).one
}

// add keeps an integration with the length of its text, and returns the one that is kept
// for the key.
func (c *cache) add(key cacheKey, one *integration.Integration, size int) *integration.Integration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.entries[key]; element != nil {
		return element.Value.(cacheEntry).one
	}
	c.entries[key] = c.order.PushFront(cacheEntry{key, one, size})
	for c.size += size; c.size > cachedBytes; {
		oldest := c.order.Back()
		entry := oldest.Value.(cacheEntry)
		c.order.Remove(oldest)
		delete(c.entries, entry.key)
		c.size -= entry.size
	}
	return one
}
