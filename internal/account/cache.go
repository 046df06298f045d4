package account

import (
	"sync"
	"time"
)

const (
	// cacheLife bounds how long the end of a session or a change of a role goes
	// unnoticed when another process made it.
	cacheLife = 2 * time.Second
	cacheSize = 10_000
	// touchEvery bounds how often the last use of a session is written.
	touchEvery = 5 * time.Minute
)

type cached struct {
	signedIn SignedIn
	loadedAt time.Time
}

// cache holds sessions that were found, by the hash of their token, and when
// they were used.
type cache struct {
	mu      sync.Mutex
	entries map[string]*cached
	seen    map[string]time.Time // the last use that is or will be written
	due     map[string]time.Time
}

func newCache() *cache {
	return &cache{entries: map[string]*cached{}, seen: map[string]time.Time{}, due: map[string]time.Time{}}
}

func (c *cache) get(hash []byte, now time.Time) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entries[string(hash)]
	if entry == nil || now.Sub(entry.loadedAt) > cacheLife {
		return nil
	}
	return entry
}

func (c *cache) put(hash []byte, in SignedIn, loadedAt time.Time) *cached {
	entry := &cached{in, loadedAt}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheSize {
		clear(c.entries)
		clear(c.seen)
	}
	c.entries[string(hash)] = entry
	return entry
}

// dropUser forgets every session of a user.
func (c *cache) dropUser(userID string) {
	c.drop(func(in SignedIn) bool { return in.User.ID == userID })
}

func (c *cache) drop(which func(SignedIn) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash, entry := range c.entries {
		if which(entry.signedIn) {
			delete(c.entries, hash)
		}
	}
}

func (c *cache) lastSeen(id string) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, ok := c.seen[id]
	return seen, ok
}

// use notes that a session is used, if the last note is old enough.
func (c *cache) use(id string, last, now time.Time) {
	if now.Sub(last) < touchEvery {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[id], c.due[id] = now, now
}

func (c *cache) takeSeen() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.due
	c.due = map[string]time.Time{}
	return due
}
