package mask

import (
	"hash/maphash"
	"slices"
	"sync"
)

// Cache keeps Maskers, so that the one for the same values of a workspace is built
// once. It is safe for concurrent use. Create one with [NewCache].
type Cache struct {
	limit int
	seeds [2]maphash.Seed

	mu      sync.Mutex
	maskers map[cacheKey]*Masker
	size    int
}

// cacheKey identifies values by 128 bits of hashes, whose seeds nobody knows. A Masker can
// therefore not be out of date.
type cacheKey struct {
	workspaceID string
	sums        [2]uint64
}

// NewCache returns a Cache that takes at most about limit bytes of memory.
func NewCache(limit int) *Cache {
	return &Cache{limit: limit, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, maskers: map[cacheKey]*Masker{}}
}

// Of returns the Masker for values of a workspace.
func (c *Cache) Of(workspaceID string, values []string) *Masker {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	if len(values) == 0 {
		return nil
	}
	key := cacheKey{workspaceID, c.hash(values)}
	c.mu.Lock()
	found, ok := c.maskers[key]
	c.mu.Unlock()
	if ok {
		return found
	}
	made := New(values)
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.maskers[key]; ok {
		return found
	}
	c.maskers[key] = made
	c.size += made.size()
	for evicted, m := range c.maskers { // in random order
		if c.size <= c.limit {
			break
		}
		if evicted != key {
			delete(c.maskers, evicted)
			c.size -= m.size()
		}
	}
	return made
}

func (c *Cache) hash(values []string) (sums [2]uint64) {
	for i, seed := range c.seeds {
		var hash maphash.Hash
		hash.SetSeed(seed)
		for _, value := range values {
			maphash.WriteComparable(&hash, len(value)) // tells "ab", "c" from "a", "bc"
			_, _ = hash.WriteString(value)
		}
		sums[i] = hash.Sum64()
	}
	return sums
}

// size returns how much memory a Masker takes, about.
func (m *Masker) size() int {
	const entry, perSet, perBucket, perForm = 200, 9 << 10, 64, 80
	size := entry
	if m != nil {
		for _, s := range m.sets {
			size += perSet + len(s.forms)*perBucket
			for _, bucket := range s.forms {
				size += len(bucket) * perForm
			}
		}
	}
	return size
}
