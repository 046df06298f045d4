package auth

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// cacheTTL bounds how long this process uses a key or plan that another process
	// has revoked or changed.
	cacheTTL  = 2 * time.Second
	cacheSize = 10_000
	// touchInterval is the minimum time between writes of a key's last use.
	touchInterval = time.Minute
)

// Authenticate returns the actor for the value of an API key.
func (s *Service) Authenticate(ctx context.Context, token string) (Actor, error) {
	invalid := fault.New(fault.Unauthorized, "the API key is not valid: it is unknown, revoked or expired")
	lookup, ok := parseToken(token)
	if !ok {
		return Actor{}, invalid
	}
	entry, err := s.lookup(ctx, lookup)
	if err != nil {
		return Actor{}, err
	}
	if entry == nil || subtle.ConstantTimeCompare(entry.key.Hash, hashToken(token)) != 1 {
		return Actor{}, invalid
	}
	now := clock.Now()
	if entry.key.ExpiresAt != nil && !entry.key.ExpiresAt.After(now) {
		return Actor{}, invalid
	}
	s.cache.touch(entry, now)
	return Actor{Workspace: entry.workspace, Type: audit.ActorKey, ID: entry.key.ID, Label: entry.key.Name, Scopes: entry.key.Scopes}, nil
}

func (s *Service) lookup(ctx context.Context, lookup string) (*cachedKey, error) {
	if entry := s.cache.get(lookup, clock.Now()); entry != nil {
		return entry, nil
	}
	loadedAt, generation := clock.Now(), s.cache.currentGeneration()
	key, workspace, err := s.store.KeyByLookup(ctx, lookup)
	if err != nil || key == nil {
		return nil, err
	}
	return s.cache.put(*key, *workspace, loadedAt, generation), nil
}

// FlushLastUsed writes the times of last use that are due. After an error, the
// next call writes them.
func (s *Service) FlushLastUsed(ctx context.Context) error {
	used := s.cache.takeUsed()
	if len(used) == 0 {
		return nil
	}
	err := s.store.TouchKeys(ctx, used)
	if err != nil {
		s.cache.restore(used)
	}
	return err
}

type cachedKey struct {
	key       Key
	workspace Workspace
	loadedAt  time.Time
}

// keyCache holds keys that exist. It does not cache misses, so that a new key
// works at once.
type keyCache struct {
	mu         sync.RWMutex
	entries    map[string]*cachedKey
	generation int // incremented by each drop
	touched    map[string]time.Time
	used       map[string]time.Time
}

func newKeyCache() *keyCache {
	return &keyCache{entries: map[string]*cachedKey{}, touched: map[string]time.Time{}, used: map[string]time.Time{}}
}

func (c *keyCache) get(lookup string, now time.Time) *cachedKey {
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry := c.entries[lookup]
	if entry == nil || now.Sub(entry.loadedAt) > cacheTTL {
		return nil
	}
	return entry
}

// currentGeneration returns the generation to pass to put after a read.
func (c *keyCache) currentGeneration() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.generation
}

// put caches a key that was read. It does not if entries were dropped since the
// read began: the key may have changed in between.
func (c *keyCache) put(key Key, workspace Workspace, loadedAt time.Time, generation int) *cachedKey {
	entry := &cachedKey{key: key, workspace: workspace, loadedAt: loadedAt}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		return entry
	}
	if len(c.entries) >= cacheSize {
		clear(c.entries)
		clear(c.touched)
	}
	c.entries[key.Lookup] = entry
	return entry
}

// dropKey removes a key by its public id.
func (c *keyCache) dropKey(id string) {
	c.drop(func(entry *cachedKey) bool { return entry.key.ID == id })
}

// dropWorkspace removes every key of a workspace.
func (c *keyCache) dropWorkspace(id string) {
	c.drop(func(entry *cachedKey) bool { return entry.workspace.ID == id })
}

func (c *keyCache) drop(which func(*cachedKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	for lookup, entry := range c.entries {
		if which(entry) {
			delete(c.entries, lookup)
		}
	}
}

func (c *keyCache) touch(entry *cachedKey, now time.Time) {
	id := entry.key.ID
	c.mu.RLock()
	recent := now.Sub(c.touched[id]) < touchInterval
	c.mu.RUnlock()
	if recent {
		return
	}
	c.mu.Lock()
	c.touched[id], c.used[id] = now, now
	c.mu.Unlock()
}

func (c *keyCache) takeUsed() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.used
	c.used = map[string]time.Time{}
	return used
}

// restore puts back the times of use that could not be written.
func (c *keyCache) restore(used map[string]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range used {
		if at.After(c.used[id]) {
			c.used[id] = at
		}
	}
}
