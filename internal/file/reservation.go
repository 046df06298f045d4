package file

import "sync"

// reservations counts the bytes that are being written, by workspace and by run, so
// that several files that are written at the same time do not exceed a limit together.
// The transaction that records a file checks the limits again.
type reservations struct {
	mu    sync.Mutex
	bytes map[string]int64
}

type claim struct {
	of      *reservations
	owner   string
	allowed int64 // for all files of the owner that are being written
	over    error // what exceeding it means
	bytes   int64
}

func (r *reservations) claim(owner string, allowed int64, over error) *claim {
	return &claim{of: r, owner: owner, allowed: allowed, over: over}
}

func (c *claim) grow(by int64) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.bytes[c.owner]+by > c.allowed {
		return c.over
	}
	c.of.bytes[c.owner] += by
	c.bytes += by
	return nil
}

func (c *claim) release() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.bytes[c.owner] -= c.bytes; c.of.bytes[c.owner] == 0 {
		delete(c.of.bytes, c.owner)
	}
	c.bytes = 0
}
