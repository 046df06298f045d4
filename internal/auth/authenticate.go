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
	// cacheLife bounds how long a revoked key or a changed plan goes unnoticed
	// when another process made the change.
	cacheLife = 2 * time.Second
	cacheSize = 10_000
	// touchEvery bounds how often the last use of a key is written.
	touchEvery = time.Minute
)

// Authenticate finds the actor behind the value of an API key.
func (s *Service) Authenticate(ctx context.Context, token string) (Actor, error) {
	refused := fault.New(fault.Unauthorized, "the API key is not valid: it is unknown, revoked or expired")
	lookup, ok := parseToken(token)
	if !ok {
		return Actor{}, refused
	}
	entry, err := s.lookup(ctx, lookup)
	if err != nil {
		return Actor{}, err
	}
	if entry == nil || subtle.ConstantTimeCompare(entry.key.Hash, hashToken(token)) != 1 {
		return Actor{}, refused
	}
	now := clock.Now()
	if entry.key.ExpiresAt != nil && !entry.key.ExpiresAt.After(now) {
		return Actor{}, refused
	}
	s.cache.use(entry, now)
	return Actor{Workspace: entry.workspace, Type: audit.ActorKey, ID: entry.key.ID, Scopes: entry.key.Scopes}, nil
}

func (s *Service) lookup(ctx context.Context, lookup string) (*cachedKey, error) {
	if entry := s.cache.get(lookup, clock.Now()); entry != nil {
		return entry, nil
	}
	loadedAt := clock.Now()
	key, workspace, err := s.store.KeyByLookup(ctx, lookup)
	if err != nil || key == nil {
		return nil, err
	}
	return s.cache.put(*key, *workspace, loadedAt), nil
}

// FlushUse writes the times of last use that are due.
func (s *Service) FlushUse(ctx context.Context) error {
	used := s.cache.takeUsed()
	if len(used) == 0 {
		return nil
	}
	return s.store.TouchKeys(ctx, used)
}

type cachedKey struct {
	key       Key
	workspace Workspace
	loadedAt  time.Time
}

// keyCache holds keys that were found, never that one was not found: a new key
// works at once.
type keyCache struct {
	mu      sync.RWMutex
	entries map[string]*cachedKey
	touched map[string]time.Time
	used    map[string]time.Time
}

func newKeyCache() *keyCache {
	return &keyCache{entries: map[string]*cachedKey{}, touched: map[string]time.Time{}, used: map[string]time.Time{}}
}

func (c *keyCache) get(lookup string, now time.Time) *cachedKey {
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry := c.entries[lookup]
	if entry == nil || now.Sub(entry.loadedAt) > cacheLife {
		return nil
	}
	return entry
}

func (c *keyCache) put(key Key, workspace Workspace, loadedAt time.Time) *cachedKey {
	entry := &cachedKey{key: key, workspace: workspace, loadedAt: loadedAt}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheSize {
		clear(c.entries)
		clear(c.touched)
	}
	c.entries[key.Lookup] = entry
	return entry
}

// drop forgets a key by its public id.
func (c *keyCache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for lookup, entry := range c.entries {
		if entry.key.ID == id {
			delete(c.entries, lookup)
		}
	}
}

// dropWorkspace forgets every key of a workspace whose plan changed.
func (c *keyCache) dropWorkspace(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for lookup, entry := range c.entries {
		if entry.workspace.ID == id {
			delete(c.entries, lookup)
		}
	}
}

func (c *keyCache) use(entry *cachedKey, now time.Time) {
	id := entry.key.ID
	c.mu.RLock()
	recent := now.Sub(c.touched[id]) < touchEvery
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
