package transport

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/descriptor"
)

const (
	// maxConns limits the open connections of all clients together, and so does half of
	// the process's file descriptors. The other half is for everything else.
	maxConns = 4096
	// maxSpare is how many more connections are accepted, for health checks. All other
	// requests on them are rejected.
	maxSpare = 16
	// reservedConns is how many connections a listener can accept if there are no
	// descriptors left.
	reservedConns = 8
)

// LimitConns limits the open connections, in total and per client: an IPv4 address
// or an IPv6 /64. Loopback and trusted proxies carry many clients, so only the
// total applies to them. It calls report, if that is not nil, when there are too few file
// descriptors.
func LimitConns(inner net.Listener, perClient int, trusted []netip.Prefix, report func()) *LimitListener {
	l := &LimitListener{
		Listener: inner, maxConns: min(maxConns, descriptor.Limit()/2), maxSpare: maxSpare, perClient: perClient, trusted: trusted, open: map[string]int{},
		idle: list.New(), silent: list.New(), reserve: descriptor.NewReserve(reservedConns, report),
	}
	l.changed.L = &l.mu
	return l
}

// LimitListener accepts a limited number of connections. If the total is reached, a
// new connection replaces the one that has been idle longest. If none is idle, or if the
// process has no file descriptors left, the new one is spare: it is only good for health
// checks.
type LimitListener struct {
	net.Listener
	maxConns  int
	maxSpare  int
	perClient int
	trusted   []netip.Prefix
	reserve   *descriptor.Reserve

	mu       sync.Mutex
	changed  sync.Cond // a connection was closed or became idle, or the listener was closed
	open     map[string]int
	total    int
	idle     *list.List // of *limitedConn, idle longest first; those that are spare are not among them
	silent   *list.List // of *limitedConn that are spare and have sent nothing, longest first
	rejected int64
	spare    int   // spare connections that are open
	spared   int64 // and all that were accepted
	closed   bool
}

// Accept returns the next connection that is within the limits.
func (l *LimitListener) Accept() (net.Conn, error) {
	for {
		conn, giveBack, err := l.reserve.Accept(l.Listener, l.shed)
		if err != nil {
			return nil, err
		}
		limited := &limitedConn{Conn: conn, listener: l, spare: giveBack != nil, giveBack: giveBack}
		addr := remoteAddr(conn)
		limited.client = Network(addr)
		if !l.acquire(limited, l.exempt(addr)) {
			_ = limited.closeInner()
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
	l.reserve.Close()
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

// Spared returns the number of connections that were accepted for health checks only.
func (l *LimitListener) Spared() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spared
}

// IsShort reports whether there were too few file descriptors not long ago.
func (l *LimitListener) IsShort() bool { return l.reserve.IsShort() }

// shed closes the connection that has been idle longest. If there is none, and the
// descriptors in reserve are used up, it closes one on which nothing was sent. It spares
// those that may be about to send a request.
func (l *LimitListener) shed(exhausted bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.idle.Front()
	if oldest == nil && exhausted {
		oldest = l.silent.Front()
	}
	if oldest == nil || time.Since(oldest.Value.(*limitedConn).since) < shedAge {
		return false
	}
	l.closeIdle(oldest.Value.(*limitedConn))
	return true
}

// shedAge is how long a connection must be idle before it is closed because there are no
// file descriptors left. The system reports that as soon as the last one is used, not only
// when the next client connects.
const shedAge = time.Second

// MarkSpare lets the handler of a request know whether its connection is spare. It is the
// ConnContext function of the server that uses the listener.
func (l *LimitListener) MarkSpare(ctx context.Context, conn net.Conn) context.Context {
	if c := limitedOf(conn); c != nil && c.spare {
		return context.WithValue(ctx, spareKey{}, true)
	}
	return ctx
}

type spareKey struct{}

// isSpare reports whether a request arrived on a spare connection.
func isSpare(ctx context.Context) bool { return ctx.Value(spareKey{}) != nil }

func limitedOf(conn net.Conn) *limitedConn {
	switch conn := conn.(type) {
	case *limitedConn:
		return conn
	case *halfClosingConn:
		return conn.limitedConn
	}
	return nil
}

// TrackState records which connections are idle. It is the ConnState function of
// the server that uses the listener.
func (l *LimitListener) TrackState(conn net.Conn, state http.ConnState) {
	c := limitedOf(conn)
	if c == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeIdle(c)
	if state != http.StateNew && state != http.StateIdle || c.released {
		return
	}
	c.since = clock.Monotonic()
	if c.spare {
		c.idle = l.silent.PushBack(c)
	} else {
		c.idle = l.idle.PushBack(c)
	}
	l.changed.Broadcast()
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
	for !c.spare && l.total-l.spare >= l.maxConns && !l.closed {
		switch idle, silent := l.idle.Front(), l.silent.Front(); {
		case idle != nil:
			l.closeIdle(idle.Value.(*limitedConn))
		case l.spare < l.maxSpare:
			c.spare = true
			if l.maxConns < maxConns {
				l.reserve.Note()
			}
		case silent != nil:
			l.closeIdle(silent.Value.(*limitedConn))
		default:
			l.changed.Wait()
		}
	}
	if l.closed {
		return false
	}
	l.open[c.client]++
	l.total++
	if c.spare {
		l.spare++
		l.spared++
	}
	return true
}

// closeIdle closes an idle connection. Its server notices that when it reads.
func (l *LimitListener) closeIdle(c *limitedConn) {
	l.release(c)
	_ = c.closeInner() // returns immediately: nothing is being written
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
	if c.spare {
		l.spare--
	}
	if l.open[c.client]--; l.open[c.client] == 0 {
		delete(l.open, c.client)
	}
	l.changed.Broadcast()
}

func (l *LimitListener) removeIdle(c *limitedConn) {
	if c.idle != nil {
		l.idle.Remove(c.idle) // it is in one of them
		l.silent.Remove(c.idle)
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
	since    time.Time     // when it became idle
	released bool
	spare    bool
	giveBack func() // its descriptor to the reserve, once it is closed; nil if it has none from there
}

// closeInner closes the connection itself.
func (c *limitedConn) closeInner() error {
	err := c.Conn.Close()
	if c.giveBack != nil {
		c.giveBack()
	}
	return err
}

// Close closes the connection and releases its slot.
func (c *limitedConn) Close() error {
	err := c.closeInner()
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
