package expr

import "github.com/stepmill/stepmill/internal/lru"

// Cache caches the most recently used programs and templates by their source, so
// that frequent sources are compiled once. It is safe for concurrent use. It does
// not cache sources that do not compile.
type Cache struct{ values *lru.Cache[cacheKey, any] }

type cacheKey struct {
	template bool
	source   string
}

// maxCachedSource is the longest source that is cached, so that the number of
// entries also bounds their memory.
const maxCachedSource = 16 << 10

// NewCache returns a cache of at most size entries.
func NewCache(size int) *Cache {
	return &Cache{lru.New[cacheKey, any](max(1, size))}
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
func (c *Cache) Len() int { return c.values.Len() }

// remember compiles without holding the lock: two callers may compile the same
// source at the same time, but no caller waits for another source.
func remember[T any](c *Cache, key cacheKey, compile func(string) (T, error)) (T, error) {
	if v, ok := c.values.Get(key); ok {
		return v.(T), nil
	}
	v, err := compile(key.source)
	if err == nil && len(key.source) <= maxCachedSource {
		c.values.Add(key, v, 1)
	}
	return v, err
}
