package api

import (
	"net"
	"net/netip"
	"sync"
)

// maxConns bounds the open connections of all clients together.
const maxConns = 4096

// LimitConns bounds how many connections are open, in all and per address.
// Loopback and trusted proxies stand for many clients and only count for the
// first.
func LimitConns(inner net.Listener, perAddress int, trusted []netip.Prefix) net.Listener {
	return &limitListener{
		Listener: inner, perAddress: perAddress, trusted: trusted,
		open: map[netip.Addr]int{}, slots: make(chan struct{}, maxConns),
	}
}

type limitListener struct {
	net.Listener
	perAddress int
	trusted    []netip.Prefix
	slots      chan struct{}

	mu   sync.Mutex
	open map[netip.Addr]int
}

// Accept returns the next connection that is within the limits.
func (l *limitListener) Accept() (net.Conn, error) {
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
			_ = conn.Close()
			continue
		}
		return &limitedConn{Conn: conn, leave: func() { l.leave(addr) }}, nil
	}
}

func remoteAddr(conn net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

func (l *limitListener) enter(addr netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[addr] >= l.perAddress && !l.exempt(addr) {
		return false
	}
	l.open[addr]++
	return true
}

func (l *limitListener) exempt(addr netip.Addr) bool {
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

func (l *limitListener) leave(addr netip.Addr) {
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
