package api

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// maxConns bounds the open connections of all clients together.
const maxConns = 4096

// LimitConns bounds how many connections are open, in all and per address.
// Loopback and trusted proxies stand for many clients and only count for the
// first.
func LimitConns(inner net.Listener, perAddress int, trusted []netip.Prefix) *LimitListener {
	return &LimitListener{
		Listener: inner, perAddress: perAddress, trusted: trusted,
		open: map[netip.Addr]int{}, slots: make(chan struct{}, maxConns),
	}
}

// LimitListener accepts only so many connections.
type LimitListener struct {
	net.Listener
	perAddress int
	trusted    []netip.Prefix
	slots      chan struct{}
	refused    atomic.Int64

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
		if !l.enter(addr) {
			<-l.slots
			l.refused.Add(1)
			_ = conn.Close()
			continue
		}
		return &limitedConn{Conn: conn, leave: func() { l.leave(addr) }}, nil
	}
}

// Open is how many connections there are.
func (l *LimitListener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := 0
	for _, n := range l.open {
		total += n
	}
	return total
}

// Refused is how many connections were closed at once because their address had
// too many.
func (l *LimitListener) Refused() int64 { return l.refused.Load() }

func remoteAddr(conn net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

func (l *LimitListener) enter(addr netip.Addr) bool {
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

func (l *LimitListener) leave(addr netip.Addr) {
	l.mu.Lock()
	if l.open[addr]--; l.open[addr] == 0 {
		delete(l.open, addr)
	}
	l.mu.Unlock()
	<-l.slots
}

type limitedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close closes the connection and makes room for another.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
