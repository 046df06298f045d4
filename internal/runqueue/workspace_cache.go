package runqueue

import "sync"

// workspaceCache holds what this node last saw in workspace_load. Transactions that
// rely on it check it in the statement that they run on that row anyway.
type workspaceCache struct {
	mu      sync.Mutex
	entries map[string]cachedWorkspace
}

type cachedWorkspace struct {
	subscriberVersion int64
	// nearLimit is set if the workspace had few or no free slots when last checked, so
	// the next transaction must check again.
	nearLimit bool
}

// maxCachedWorkspaces bounds the memory of the cache. A full one is emptied: what is missing is
// read again.
const maxCachedWorkspaces = 10_000

func (c *workspaceCache) get(workspaceID string) (cachedWorkspace, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.entries[workspaceID]
	return found, ok
}

func (c *workspaceCache) setVersion(workspaceID string, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCachedWorkspaces {
		c.entries = map[string]cachedWorkspace{}
	}
	c.entries[workspaceID] = cachedWorkspace{version, c.entries[workspaceID].nearLimit}
}

// setHeadroom records whether a workspace has enough free slots.
func (c *workspaceCache) setHeadroom(workspaceID string, headroom bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.entries[workspaceID]; ok {
		found.nearLimit = !headroom
		c.entries[workspaceID] = found
	}
}
