package account

import (
	"sync"
	"time"
)

const (
	// cacheTTL bounds how long this process uses a session or role that another
	// process has ended or changed.
	cacheTTL  = 2 * time.Second
	cacheSize = 10_000
	// touchInterval is the minimum time between writes of a session's last use.
	touchInterval = 5 * time.Minute
)

type cached struct {
	signedIn SignedIn
	loadedAt time.Time
}

// cache holds sessions by the hash of their token, and the times of their last
// use that are not written yet.
type cache struct {
	mu         sync.Mutex
	entries    map[string]*cached
	generation int                  // incremented by each drop
	seen       map[string]time.Time // last use, written or due
	due        map[string]time.Time
}

func newCache() *cache {
	return &cache{entries: map[string]*cached{}, seen: map[string]time.Time{}, due: map[string]time.Time{}}
}

func (c *cache) get(hash []byte, now time.Time) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entries[string(hash)]
	if entry == nil || now.Sub(entry.loadedAt) > cacheTTL {
		return nil
	}
	return entry
}

// currentGeneration returns the generation to pass to put after a read.
func (c *cache) currentGeneration() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// put caches a session that was read. It does not if entries were dropped since
// the read began: the session may have changed in between.
func (c *cache) put(hash []byte, in SignedIn, loadedAt time.Time, generation int) *cached {
	entry := &cached{in, loadedAt}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		return entry
	}
	if len(c.entries) >= cacheSize {
		clear(c.entries)
		clear(c.seen)
	}
	c.entries[string(hash)] = entry
	return entry
}

// dropUser removes every session of a user.
func (c *cache) dropUser(userID string) {
	c.drop(func(in SignedIn) bool { return in.User.ID == userID })
}

func (c *cache) drop(which func(SignedIn) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
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

// touch records a use of the session if the last recorded one is old enough.
func (c *cache) touch(id string, last, now time.Time) {
	if now.Sub(last) < touchInterval {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[id], c.due[id] = now, now
}

func (c *cache) takeDue() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.due
	c.due = map[string]time.Time{}
	return due
}

// restore puts back the times of use that could not be written.
func (c *cache) restore(due map[string]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range due {
		if at.After(c.due[id]) {
			c.due[id] = at
		}
	}
}
