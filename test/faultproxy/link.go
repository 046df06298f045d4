package faultproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pieceSize = 32 << 10
	// underWay is how many pieces a direction holds that are delayed.
	underWay = 64
	// drainTime is how long a server whose client was cut off may take to
	// answer what it was sent.
	drainTime = 10 * time.Second
)

// link is one client with its connection to the server.
type link struct {
	proxy *Proxy
	conns [2]net.Conn // by where data goes
	done  chan struct{}
	once  sync.Once
	// abandoned says that the client is gone while the server has still to
	// answer.
	abandoned atomic.Bool

	mu       sync.Mutex
	dialogue dialogue
}

// piece is data under way, or the end of a stream.
type piece struct {
	data []byte
	due  time.Time
	err  error
	// last cuts the client off when the data has been sent.
	last bool
}

// relay moves data both ways until both have ended or the link is reset.
func (l *link) relay() {
	var wg sync.WaitGroup
	for _, to := range []direction{toServer, toClient} {
		pieces := make(chan piece, underWay)
		wg.Go(func() { l.receive(to, pieces) })
		wg.Go(func() { l.send(to, pieces) })
	}
	wg.Wait()
	l.reset()
}

func (l *link) receive(to direction, pieces chan<- piece) {
	defer close(pieces)
	from := l.conns[1-to]
	for {
		data := make([]byte, pieceSize)
		n, err := from.Read(data)
		p := piece{data: data[:n], err: err, due: time.Now().Add(l.proxy.delay(to))}
		if l.proxy.options.Postgres {
			var cut bool
			if p.data, p.last, cut = l.look(to, p.data); cut {
				l.reset()
			}
		}
		select {
		case pieces <- p:
		case <-l.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// look follows the protocol. It answers what to pass on, whether the client is
// to be cut off afterwards, and whether the whole link is, at once.
func (l *link) look(to direction, data []byte) (pass []byte, last, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == toClient {
		pass, cut = l.dialogue.server(data)
		return pass, false, cut
	}
	return data, l.dialogue.client(data, l.proxy.decide), false
}

func (l *link) send(to direction, pieces <-chan piece) {
	conn := l.conns[to]
	for p := range pieces {
		if !l.pass(p.due) {
			return
		}
		if err := put(conn, p.data); err != nil && (to == toServer || !l.abandoned.Load()) {
			l.reset()
			return
		}
		switch {
		case p.last:
			l.abandoned.Store(true)
			reset(l.conns[toClient])
			_ = l.conns[toServer].SetReadDeadline(time.Now().Add(drainTime))
			return
		case p.err == nil:
		case errors.Is(p.err, io.EOF):
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		default:
			l.reset()
		}
	}
}

func put(conn net.Conn, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	_, err := conn.Write(data)
	return err
}

// pass waits until data may go on its way, and answers false when there is no
// way any more.
func (l *link) pass(due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		select {
		case <-time.After(wait):
		case <-l.done:
			return false
		}
	}
	select {
	case <-l.proxy.gate():
		return true
	case <-l.done:
		return false
	}
}

func (l *link) reset() {
	l.once.Do(func() {
		close(l.done)
		for _, conn := range l.conns {
			reset(conn)
		}
	})
}
