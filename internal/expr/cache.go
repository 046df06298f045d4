package expr

import (
	"container/list"
	"sync"
)

// Cache caches the most recently used programs and templates by their source, so
// that frequent sources are compiled once. It is safe for concurrent use. It does
// not cache sources that do not compile.
type Cache struct {
	mu      sync.Mutex
	size    int
	order   *list.List // of *entry, the most recently used first
	entries map[cacheKey]*list.Element
}

type cacheKey struct {
	template bool
	source   string
}

type entry struct {
	key   cacheKey
	value any
}

// maxCachedSource is the longest source that is cached, so that the number of
// entries also bounds their memory.
const maxCachedSource = 16 << 10

// NewCache returns a cache of at most size entries.
func NewCache(size int) *Cache {
	return &Cache{size: max(1, size), order: list.New(), entries: make(map[cacheKey]*list.Element)}
}

// CompileBare is [CompileBare] with caching.
func (c *Cache) CompileBare(source string) (*Program, error) {
	return remember(c, cacheKey{source: source}, CompileBare)
}

// CompileTemplate is [CompileTemplate] with caching.
func (c *Cache) CompileTemplate(source string) (*Template, error) {
	return remember(c, cacheKey{template: true, source: source}, CompileTemplate)
}

// Len returns the number of entries.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// remember compiles without holding the lock: two callers may compile the same
// source at the same time, but no caller waits for another source.
func remember[T any](c *Cache, key cacheKey, compile func(string) (T, error)) (T, error) {
	if v, ok := c.get(key); ok {
		return v.(T), nil
	}
	v, err := compile(key.source)
	if err == nil && len(key.source) <= maxCachedSource {
		c.put(key, v)
	}
	return v, err
}

func (c *Cache) get(key cacheKey) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry).value, true
}

func (c *Cache) put(key cacheKey, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; ok {
		return
	}
	c.entries[key] = c.order.PushFront(&entry{key: key, value: value})
	for c.order.Len() > c.size {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.entries, oldest.Value.(*entry).key)
	}
}
