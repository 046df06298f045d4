package cluster_test

import (
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// recordFault records a fault of a node, or of all nodes if the name is empty. The
// fault lasts from now until end is called and for one more heartbeat, until its
// effects on runs are over.
func (c *cluster) recordFault(node string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.faults)
	c.faults = append(c.faults, fault{node: node, from: time.Now()})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults[n].to = time.Now().Add(c.options.lease / 2)
	}
}

// watch records when nodes release their runs. On a busy machine that happens without
// a fault, and then steps are repeated as they should be. It also records when the
// machine stalls.
func (c *cluster) watch() {
	const interval = 20 * time.Millisecond
	seen := map[*harness.Server]int{}
	for {
		began := time.Now()
		select {
		case <-c.t.Context().Done():
			return
		case <-time.After(interval):
		}
		if length := time.Since(began); length > 5*interval {
			c.mu.Lock()
			c.stalls = append(c.stalls, stall{time.Now(), length})
			c.mu.Unlock()
		}
		for _, m := range c.nodes {
			m.mu.Lock()
			s := m.Server
			m.mu.Unlock()
			n := s.CountLogged(releasedRuns)
			if n == seen[s] {
				continue
			}
			seen[s] = n
			c.mu.Lock()
			c.losses = append(c.losses, loss{m.name, time.Now()})
			c.mu.Unlock()
		}
	}
}

// faultBetween reports whether there was a fault at some time between two moments.
func (c *cluster) faultBetween(from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		if f.from.Before(to) && (f.to.IsZero() || f.to.After(from)) {
			return true
		}
	}
	return false
}

// unplannedLossBetween reports whether a node lost its lease around that time without
// a fault.
func (c *cluster) unplannedLossBetween(from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.losses {
		if !c.causedByFault(l) && l.at.Add(-2*c.options.lease).Before(to) && l.at.Add(c.options.lease).After(from) {
			return true
		}
	}
	return false
}

// stalledSince returns the longest time since then for which the machine stalled.
func (c *cluster) stalledSince(from time.Time) (longest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stalls {
		if s.until.After(from) {
			longest = max(longest, s.length)
		}
	}
	return longest
}

// causedByFault reports whether a fault explains a loss.
func (c *cluster) causedByFault(l loss) bool {
	for _, f := range c.faults {
		if (f.node == "" || f.node == l.node) && f.from.Before(l.at) && (f.to.IsZero() || f.to.After(l.at)) {
			return true
		}
	}
	return false
}
