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
	chunkSize = 32 << 10
	// maxInFlight is the maximum number of delayed chunks in each direction.
	maxInFlight = 64
	// drainTime is how long a server may take to respond after its client was
	// disconnected.
	drainTime = 10 * time.Second
)

// link is a client connection with its connection to the server.
type link struct {
	proxy *Proxy
	conns [2]net.Conn // by direction
	done  chan struct{}
	once  sync.Once
	// abandoned is true if the client was disconnected and the server has not yet
	// responded.
	abandoned atomic.Bool

	mu       sync.Mutex
	dialogue dialogue
}

// chunk is data in flight, or the end of a stream.
type chunk struct {
	data []byte
	due  time.Time
	err  error
	// last disconnects the client after the data has been sent.
	last bool
}

// relay relays data in both directions until both have ended or the link is reset.
func (l *link) relay() {
	var wg sync.WaitGroup
	for _, to := range []direction{toServer, toClient} {
		chunks := make(chan chunk, maxInFlight)
		wg.Go(func() { l.receive(to, chunks) })
		wg.Go(func() { l.send(to, chunks) })
	}
	wg.Wait()
	l.reset()
}

func (l *link) receive(to direction, chunks chan<- chunk) {
	defer close(chunks)
	from := l.conns[1-to]
	for {
		data := make([]byte, chunkSize)
		n, err := from.Read(data)
		p := chunk{data: data[:n], err: err, due: time.Now().Add(l.proxy.delay(to))}
		if l.proxy.options.Postgres {
			var cut bool
			if p.data, p.last, cut = l.inspect(to, p.data); cut {
				l.reset()
			}
		}
		select {
		case chunks <- p:
		case <-l.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// inspect follows the protocol. It returns the data to relay, whether to disconnect the
// client afterwards, and whether to reset the whole link now.
func (l *link) inspect(to direction, data []byte) (pass []byte, last, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == toClient {
		pass, cut = l.dialogue.server(data)
		return pass, false, cut
	}
	return data, l.dialogue.client(data, l.proxy.decide), false
}

func (l *link) send(to direction, chunks <-chan chunk) {
	conn := l.conns[to]
	for p := range chunks {
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

// pass waits until data may be sent. It returns false if the link is reset.
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
