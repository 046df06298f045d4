package mask

// Size returns the size of everything in the cache.
func (c *Cache) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := 0
	for _, m := range c.maskers {
		size += m.size()
	}
	return size
}
