package egress

import (
	"container/list"
	"net/http"
	"sync"
)

// pools has a separate connection pool for each of the most recently used
// workspaces.
type pools struct {
	newTransport func() *http.Transport
	max          int

	mu          sync.Mutex
	recent      *list.List // of *pool, the last used first
	byWorkspace map[string]*list.Element
}

type pool struct {
	workspace string
	transport *http.Transport
	users     int
	retired   bool
}

func newPools(most int, open func() *http.Transport) *pools {
	return &pools{newTransport: open, max: most, recent: list.New(), byWorkspace: map[string]*list.Element{}}
}

// acquire returns the pool of a workspace. The caller must release it.
func (p *pools) acquire(workspace string) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	element, ok := p.byWorkspace[workspace]
	if ok {
		p.recent.MoveToFront(element)
	} else {
		element = p.recent.PushFront(&pool{workspace: workspace, transport: p.newTransport()})
		p.byWorkspace[workspace] = element
		if p.recent.Len() > p.max {
			p.retire(p.recent.Back())
		}
	}
	acquired := poolOf(element)
	acquired.users++
	return acquired
}

func (p *pools) release(acquired *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	acquired.users--
	if acquired.retired && acquired.users == 0 {
		acquired.transport.CloseIdleConnections()
	}
}

// retire removes a pool. Requests that still use it complete, and the last one
// closes the remaining connections.
func (p *pools) retire(element *list.Element) {
	retired := poolOf(element)
	p.recent.Remove(element)
	delete(p.byWorkspace, retired.workspace)
	retired.retired = true
	retired.transport.CloseIdleConnections()
}

func (p *pools) retireAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.recent.Len() > 0 {
		p.retire(p.recent.Back())
	}
}

func poolOf(element *list.Element) *pool { return element.Value.(*pool) }
