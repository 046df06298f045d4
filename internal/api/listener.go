package api

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// maxConns limits the open connections of all clients together.
const maxConns = 4096

// LimitConns limits the open connections, in total and per client: an IPv4 address
// or an IPv6 /64. Loopback and trusted proxies carry many clients, so only the
// total applies to them.
func LimitConns(inner net.Listener, perClient int, trusted []netip.Prefix) *LimitListener {
	l := &LimitListener{Listener: inner, maxConns: maxConns, perClient: perClient, trusted: trusted, open: map[string]int{}, idle: list.New()}
	l.changed.L = &l.mu
	return l
}

// LimitListener accepts a limited number of connections. If the total is reached, a
// new connection replaces the one that has been idle longest; if none is idle, it
// waits.
type LimitListener struct {
	net.Listener
	maxConns  int
	perClient int
	trusted   []netip.Prefix

	mu       sync.Mutex
	changed  sync.Cond // a connection was closed or became idle, or the listener was closed
	open     map[string]int
	total    int
	idle     *list.List // of *limitedConn, idle longest first
	rejected int64
	closed   bool
}

// Accept returns the next connection that is within the limits.
func (l *LimitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limited := &limitedConn{Conn: conn, listener: l}
		addr := remoteAddr(conn)
		limited.client = network(addr)
		if !l.acquire(limited, l.exempt(addr)) {
			_ = conn.Close()
			continue
		}
		if inner, ok := conn.(closeWriter); ok {
			return &halfClosingConn{limited, inner}, nil
		}
		return limited, nil
	}
}

// Close closes the listener. Connections that were accepted stay open.
func (l *LimitListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Open returns the number of open connections.
func (l *LimitListener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// Rejected returns the number of connections that were closed immediately because
// their client had too many.
func (l *LimitListener) Rejected() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rejected
}

// TrackState records which connections are idle. It is the ConnState function of
// the server that uses the listener.
func (l *LimitListener) TrackState(conn net.Conn, state http.ConnState) {
	var c *limitedConn
	switch conn := conn.(type) {
	case *limitedConn:
		c = conn
	case *halfClosingConn:
		c = conn.limitedConn
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeIdle(c)
	if (state == http.StateNew || state == http.StateIdle) && !c.released {
		c.idle = l.idle.PushBack(c)
		l.changed.Broadcast()
	}
}

func remoteAddr(conn net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// acquire counts a connection. It reports false if the client has too many or the
// listener is closed.
func (l *LimitListener) acquire(c *limitedConn, exempt bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[c.client] >= l.perClient && !exempt {
		l.rejected++
		return false
	}
	for l.total >= l.maxConns && !l.closed {
		if oldest := l.idle.Front(); oldest != nil {
			l.closeIdle(oldest.Value.(*limitedConn))
			continue
		}
		l.changed.Wait()
	}
	if l.closed {
		return false
	}
	l.open[c.client]++
	l.total++
	return true
}

// closeIdle closes an idle connection. Its server notices that when it reads.
func (l *LimitListener) closeIdle(c *limitedConn) {
	l.release(c)
	_ = c.Conn.Close() // returns immediately: nothing is being written
}

func (l *LimitListener) exempt(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	for _, prefix := range l.trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// release returns the slot of a connection, once. The caller holds the lock.
func (l *LimitListener) release(c *limitedConn) {
	if c.released {
		return
	}
	c.released = true
	l.removeIdle(c)
	l.total--
	if l.open[c.client]--; l.open[c.client] == 0 {
		delete(l.open, c.client)
	}
	l.changed.Broadcast()
}

func (l *LimitListener) removeIdle(c *limitedConn) {
	if c.idle != nil {
		l.idle.Remove(c.idle)
		c.idle = nil
	}
}

// limitedConn is a connection with a slot. The listener's lock protects idle and
// released.
type limitedConn struct {
	net.Conn
	listener *LimitListener
	client   string        // whom it counts for
	idle     *list.Element // its place among the idle connections; nil if it is in use
	released bool
}

// Close closes the connection and releases its slot.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.release(c)
	return err
}

type closeWriter interface{ CloseWrite() error }

// halfClosingConn is a limitedConn that can close one direction. Without that,
// net/http resets the connection of a client that is still sending.
type halfClosingConn struct {
	*limitedConn
	closeWriter
}
