package egress

import (
	"container/list"
	"net/http"
	"sync"
)

// pools holds the connections of each workspace apart, for as many workspaces
// as called last.
type pools struct {
	open func() *http.Transport
	max  int

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
	return &pools{open: open, max: most, recent: list.New(), byWorkspace: map[string]*list.Element{}}
}

// take gives the workspace's pool, until it is given back with done.
func (p *pools) take(workspace string) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	element, ok := p.byWorkspace[workspace]
	if ok {
		p.recent.MoveToFront(element)
	} else {
		element = p.recent.PushFront(&pool{workspace: workspace, transport: p.open()})
		p.byWorkspace[workspace] = element
		if p.recent.Len() > p.max {
			p.retire(p.recent.Back())
		}
	}
	taken := poolOf(element)
	taken.users++
	return taken
}

func (p *pools) done(taken *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken.users--
	if taken.retired && taken.users == 0 {
		taken.transport.CloseIdleConnections()
	}
}

// retire forgets a pool. Calls that still use it end in peace, and the last of
// them closes what is left.
func (p *pools) retire(element *list.Element) {
	gone := poolOf(element)
	p.recent.Remove(element)
	delete(p.byWorkspace, gone.workspace)
	gone.retired = true
	gone.transport.CloseIdleConnections()
}

func (p *pools) retireAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.recent.Len() > 0 {
		p.retire(p.recent.Back())
	}
}

func poolOf(element *list.Element) *pool { return element.Value.(*pool) }
