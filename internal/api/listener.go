package api

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// maxConns limits the open connections of all clients together.
const maxConns = 4096

// LimitConns limits the open connections, in total and per address. Loopback and
// trusted proxies carry many clients, so only the total applies to them.
func LimitConns(inner net.Listener, perAddress int, trusted []netip.Prefix) *LimitListener {
	return &LimitListener{
		Listener: inner, perAddress: perAddress, trusted: trusted,
		open: map[netip.Addr]int{}, slots: make(chan struct{}, maxConns),
	}
}

// LimitListener accepts a limited number of connections.
type LimitListener struct {
	net.Listener
	perAddress int
	trusted    []netip.Prefix
	slots      chan struct{}
	rejected   atomic.Int64

	mu   sync.Mutex
	open map[netip.Addr]int
}

// Accept returns the next connection that is within the limits.
func (l *LimitListener) Accept() (net.Conn, error) {
	for {
		l.slots <- struct{}{}
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		addr := remoteAddr(conn)
		if !l.acquire(addr) {
			<-l.slots
			l.rejected.Add(1)
			_ = conn.Close()
			continue
		}
		return &limitedConn{Conn: conn, release: func() { l.release(addr) }}, nil
	}
}

// Open returns the number of open connections.
func (l *LimitListener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := 0
	for _, n := range l.open {
		total += n
	}
	return total
}

// Rejected returns the number of connections that were closed immediately because
// their address had too many.
func (l *LimitListener) Rejected() int64 { return l.rejected.Load() }

func remoteAddr(conn net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

func (l *LimitListener) acquire(addr netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[addr] >= l.perAddress && !l.exempt(addr) {
		return false
	}
	l.open[addr]++
	return true
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

func (l *LimitListener) release(addr netip.Addr) {
	l.mu.Lock()
	if l.open[addr]--; l.open[addr] == 0 {
		delete(l.open, addr)
	}
	l.mu.Unlock()
	<-l.slots
}

type limitedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

// Close closes the connection and releases its slot.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}
