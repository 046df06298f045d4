package egress

import (
	"container/list"
	"net/http"
	"net/url"
	"sync"
)

// pools has a separate connection pool for each of the most recently used keys.
type pools struct {
	newTransport func(TLS) (*http.Transport, error)
	max          int

	mu     sync.Mutex
	recent *list.List // of *pool, the last used first
	byKey  map[poolKey]*list.Element
}

// poolKey says who shares connections: the requests of a workspace with the same TLS
// settings.
type poolKey struct {
	workspace string
	tls       TLS
}

type pool struct {
	key       poolKey
	transport *http.Transport
	users     int
	retired   bool
}

func newPools(most int, open func(TLS) (*http.Transport, error)) *pools {
	return &pools{newTransport: open, max: most, recent: list.New(), byKey: map[poolKey]*list.Element{}}
}

// acquire returns the pool of a key. The caller must release it.
func (p *pools) acquire(key poolKey) (*pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	element, ok := p.byKey[key]
	if ok {
		p.recent.MoveToFront(element)
	} else {
		transport, err := p.newTransport(key.tls)
		if err != nil {
			return nil, err
		}
		element = p.recent.PushFront(&pool{key: key, transport: transport})
		p.byKey[key] = element
		if p.recent.Len() > p.max {
			p.retire(p.recent.Back())
		}
	}
	acquired := poolOf(element)
	acquired.users++
	return acquired, nil
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
	delete(p.byKey, retired.key)
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

// route has the pools of one request. Only the hosts of its credential see the TLS
// settings of the credential; a redirect elsewhere uses the pool of all other requests.
type route struct {
	credential Credential
	usual      *pool
	special    *pool // nil: the credential has no TLS settings
}

// acquireRoute acquires the pools of a request. The caller must release them.
func (c *Client) acquireRoute(r Request) (out route, err error) {
	if r.Credential != nil && r.Credential.TLS() != (TLS{}) {
		out.credential = r.Credential
		if out.special, err = c.tlsPools.acquire(poolKey{r.Workspace, r.Credential.TLS()}); err != nil {
			return route{}, fail(InvalidRequest, err, "the TLS settings of the connection are not valid: %v", err)
		}
	}
	if out.usual, err = c.pools.acquire(poolKey{workspace: r.Workspace}); err != nil {
		c.releaseRoute(out)
	}
	return out, err
}

func (c *Client) releaseRoute(r route) {
	if r.special != nil {
		c.tlsPools.release(r.special)
	}
	if r.usual != nil {
		c.pools.release(r.usual)
	}
}

func (r route) to(u *url.URL) http.RoundTripper {
	if r.special != nil && r.credential.Allows(u) {
		return r.special.transport
	}
	return r.usual.transport
}
